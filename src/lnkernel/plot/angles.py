"""The kernel of two inputs of one length, as a function of the angle between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnkernel.errors import InputError
from lnkernel.gram.kernel import Kernel


def angle(
    kernel: Kernel, *, norm: float = 1.0, points: int = 181, ax: Any = None, **line: Any
) -> Any:
    r"""The curve of $k(x, x')/k(x, x)$ over the angle between x and x', from 0° to 180°.

    Both have the same norm. For a linear network without biases it is the cosine.

    Args:
        kernel: what `ntk` or `nngp` returns.
        norm: $|x|/\sqrt d$ of both inputs.
        points: how many angles, evenly spaced.
        ax: the matplotlib axes to draw into; the current ones by default.
        **line: handed to `Axes.plot`, for example `label`.

    Returns:
        the line.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt, lnkernel as lnk
    >>> ax, linear = plt.figure().gca(), lnk.serial(lnk.Dense(8), lnk.LayerNorm(), lnk.Dense(1))
    >>> curve = lnk.plot.angle(lnk.nngp(linear), points=4, ax=ax)
    >>> curve.get_xdata().round(9).tolist(), curve.get_ydata().round(9).tolist()
    ([0.0, 60.0, 120.0, 180.0], [1.0, 0.5, -0.5, -1.0])
    """
    import matplotlib.pyplot as plt

    if not 0 < norm < np.inf:
        raise InputError("norm", "a positive number", repr(norm), "The default is 1")
    ax = plt.gca() if ax is None else ax
    degrees = np.linspace(0.0, 180.0, points)
    turned = np.deg2rad(degrees)
    circle = norm * np.sqrt(2.0) * np.stack([np.cos(turned), np.sin(turned)], axis=1)
    values = np.asarray(kernel(circle[:1], circle))[0]
    curve = ax.plot(degrees, values / values[0], **line)[0]
    ax.set_xticks(np.arange(0, 181, 45))
    ax.set_xlabel("angle between $x$ and $x'$, in degrees")
    ax.set_ylabel("$k(x, x')/k(x, x)$")
    return curve
