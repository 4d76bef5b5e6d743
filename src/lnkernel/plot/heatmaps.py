"""The kernel matrix as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from lnkernel.check.arrays import as_array
from lnkernel.errors import InputError
from lnkernel.gram.kernel import Kernel
from lnkernel.types import Array, Line


def heatmap(kernel: Kernel | Float[Array, "n n"], x: Line, *, ax: Any = None, **imshow: Any) -> Any:
    r"""The matrix $k(x_i, x_j)$ of points on a line, as an image over $(x', x)$.

    Args:
        kernel: what `ntk` or `nngp` returns, or the matrix itself, (n, n).
        x: evenly spaced points, (n,) or (n, 1).
        ax: the matplotlib axes to draw into; the current ones by default.
        **imshow: handed to `Axes.imshow`, for example `cmap`.

    Returns:
        the image, for a colour bar: `ax.figure.colorbar(image)`.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt, numpy as np, lnkernel as lnk
    >>> theta, ax = lnk.ntk(lnk.mlp(norm="first")), plt.figure().gca()
    >>> image = lnk.plot.heatmap(theta, np.linspace(-5, 5, 11), ax=ax)
    >>> image.get_array().shape
    (11, 11)
    """
    import matplotlib.pyplot as plt

    points = np.atleast_1d(np.asarray(as_array("x", x), dtype=float))
    line = points.reshape(-1)
    steps = np.diff(line)
    if points.size != len(points) or len(line) < 2 or not _even(steps):
        raise InputError(
            "x",
            "at least two evenly spaced points on a line",
            f"shape {np.shape(x)}",
            "Use e.g. np.linspace(-5, 5, 201)",
        )
    ax = plt.gca() if ax is None else ax
    half = steps[0] / 2
    extent = (line[0] - half, line[-1] + half) * 2
    matrix = np.asarray(kernel(line[:, None]) if isinstance(kernel, Kernel) else kernel)
    if matrix.shape != (len(line), len(line)):
        raise InputError(
            "kernel",
            f"a kernel, or a matrix of shape ({len(line)}, {len(line)}) for these x",
            f"shape {matrix.shape}",
            "Write e.g. lnk.plot.heatmap(lnk.ntk(arch), x)",
        )
    image = ax.imshow(matrix, **{"origin": "lower", "extent": extent, "cmap": "viridis"} | imshow)
    ax.set_xlabel("$x'$")
    ax.set_ylabel("$x$")
    return image


def _even(steps: Float[np.ndarray, " steps"]) -> bool:
    return bool(steps[0] != 0 and np.allclose(steps, steps[0], rtol=1e-6, atol=0))
