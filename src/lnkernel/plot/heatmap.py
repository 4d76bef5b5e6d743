"""The kernel matrix as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnkernel.errors import InputError
from lnkernel.gram.kernel import Kernel


def heatmap(kernel: Kernel, x: Any, *, ax: Any = None, **imshow: Any) -> Any:
    r"""The matrix $k(x_i, x_j)$ of points on a line, as an image over $(x', x)$.

    Args:
        kernel: what `ntk` or `nngp` returns.
        x: evenly spaced points, (n,) or (n, 1).
        ax: the matplotlib axes to draw into; the current ones by default.
        **imshow: handed to `Axes.imshow`, for example `cmap`.

    Returns:
        the image, for a colour bar: `ax.figure.colorbar(image)`.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import numpy as np, lnkernel as lnk
    >>> image = lnk.plot.heatmap(lnk.ntk(lnk.mlp(norm="first")), np.linspace(-5, 5, 11))
    >>> image.get_array().shape
    (11, 11)
    """
    import matplotlib.pyplot as plt

    points = np.asarray(x, dtype=float).reshape(-1)
    if len(points) < 2 or not np.allclose(np.diff(points), points[1] - points[0], rtol=1e-6):
        raise InputError(
            "x",
            "at least two evenly spaced points on a line",
            f"shape {np.shape(x)}",
            "Use e.g. np.linspace(-5, 5, 201)",
        )
    ax = plt.gca() if ax is None else ax
    half = (points[1] - points[0]) / 2
    extent = (points[0] - half, points[-1] + half) * 2
    matrix = np.asarray(kernel(points[:, None]))
    image = ax.imshow(matrix, **{"origin": "lower", "extent": extent, "cmap": "viridis"} | imshow)
    ax.set_xlabel("$x'$")
    ax.set_ylabel("$x$")
    return image
