r"""How far two classes are apart for linear maps: sums of squares within the classes, against all."""

from __future__ import annotations

import numpy as np

from lnkernel.check.arrays import as_points, check_dimensions
from lnkernel.errors import InputError
from lnkernel.types import MorePoints, Points


def ssr(X1: Points, X2: MorePoints) -> float:
    r"""$\mathrm{SSR}(X_1, X_2) = \frac{SS(X_1) + SS(X_2)}{SS(X_1 \cup X_2)}$, the share of the sum of squares that
    is within the two classes, where $SS(X) = \sum_i |x_i - \bar x|^2$.

    0 says that each class is one point, 1 that both have the same mean.

    Args:
        X1: the points of the first class, (n, d).
        X2: the points of the second class, (m, d).

    >>> import lnkernel as lnk
    >>> lnk.nonlinearity.ssr([[0.0], [2.0]], [[5.0], [7.0]])         # (2 + 2)/(2 + 2 + 25)
    0.1379...
    >>> lnk.nonlinearity.ssr([[0.0, 0.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]])                      # XOR
    1.0
    """
    first, second = _classes(X1, X2)
    (n1, n2), both = (len(first), len(second)), np.concatenate([first, second])
    scale = np.abs(both - both[0]).max()  # sums of squares stay in the range of float64
    first, second = (first - both[0]) / scale, (second - both[0]) / scale
    within = sum(float(((x - x.mean(0)) ** 2).sum()) for x in (first, second))
    between = n1 * n2 / (n1 + n2) * float(((first.mean(0) - second.mean(0)) ** 2).sum())
    return within / (within + between)


def lssr(X1: Points, X2: MorePoints) -> float:
    r"""$\mathrm{LSSR}(X_1, X_2) = \inf_{W} \mathrm{SSR}(X_1 W, X_2 W)$ over all linear maps, in closed form:

    $$\lambda_{\min}(S_t^{-1} S_w) = 1 - \tfrac{n_1 n_2}{n_1 + n_2}\, m^T S_t^{-1} m,
    \qquad m = \bar x_1 - \bar x_2,$$

    with the scatter matrices $S_w$ within the classes and $S_t$ in total. One neuron attains it. It is
    computed as what linear regression leaves of the labels, $1 - R^2$, which is the same number without
    the difference; directions in which the points differ by less than rounding do not count.

    Args:
        X1: the points of the first class, (n, d).
        X2: the points of the second class, (m, d).

    >>> import lnkernel as lnk
    >>> lnk.nonlinearity.lssr([[0.0, 0.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]])      # XOR: no linear map helps
    1.0
    >>> round(lnk.nonlinearity.lssr([[0.0, 5.0], [0.0, -9.0]], [[1.0, 7.0], [1.0, 0.0]]), 12)
    0.0
    """
    first, second = _classes(X1, X2)
    both = np.concatenate([first, second])
    n1, n2, n = len(first), len(second), len(both)
    columns = both - both[0]
    largest = np.abs(columns).max(0)
    columns = columns[:, largest > 0] / largest[largest > 0]  # a linear map, and so without effect
    columns = columns - columns.mean(0)
    labels = np.concatenate([np.full(n1, n2 / n), np.full(n2, -n1 / n)]) / np.sqrt(n1 * n2 / n)
    basis, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    basis = basis[:, sizes > max(columns.shape) * np.finfo(float).eps * sizes[0]]
    left = labels - basis @ (basis.T @ labels)
    return min(1.0, float(left @ left))


def _classes(X1: Points, X2: MorePoints) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.asarray(as_points("X1", X1)), np.asarray(as_points("X2", X2))
    check_dimensions(first, second)
    if (first == first[0]).all() and (second == first[0]).all():
        raise InputError(
            "X1 and X2",
            "points that are not all the same",
            f"{len(first) + len(second)} times one point",
            "Both sums of squares are 0 there, and their ratio has no meaning",
        )
    return first, second
