r"""A matrix of low rank below a Gram matrix, from few of its columns: randomly pivoted Cholesky.

$\hat K = F F^T$ is made from columns of K whose numbers are drawn with probabilities proportional to the diagonal of
what is left, $K - \hat K$, block by block (Chen, Epperly, Tropp and Webber 2022). In exact arithmetic
$0 \preceq \hat K \preceq K$, so that the diagonal of what is left tells all: $\mathrm{tr}(K - \hat K)$ bounds its norm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from lnkernel.progress import Bar

BLOCK = 128  # columns at a time, at most
NOTHING = 1e-13  # of the trace: what is left is rounding error
Columns = Callable[[np.ndarray], np.ndarray]  # of K, by their numbers: (n, many)


class LowRank(NamedTuple):
    """F of shape (n, r), and the diagonal of K - F Fᵀ."""

    factor: np.ndarray
    left: np.ndarray


def pivoted_cholesky(diagonal: np.ndarray, columns: Columns, rank: int, seed: int = 0) -> LowRank:
    """F of at most so many columns; fewer, where K has no higher rank in float64.

    >>> import numpy as np
    >>> x = np.arange(4.0)
    >>> k = np.outer(x, x) + 1
    >>> F, left = pivoted_cholesky(np.diagonal(k), lambda some: k[:, some], rank=3)
    >>> F.shape, bool(np.allclose(F @ F.T, k)), bool(left.max() < 1e-12)
    ((4, 2), True, True)
    """
    draw, total = np.random.default_rng(seed), float(diagonal.sum())
    factor = np.zeros((len(diagonal), rank), order="F")
    left, done = np.array(diagonal, dtype=np.float64), 0
    with Bar(None, rank, "columns", "preconditioner") as bar:
        while done < rank and left.sum() > NOTHING * total:
            few = min(BLOCK, rank - done, int(np.count_nonzero(left)))
            chosen = np.sort(draw.choice(len(left), few, replace=False, p=left / left.sum()))
            known = factor[:, :done]
            rest = columns(chosen) - known @ known[chosen].T
            some = _independent(rest[chosen])
            if not len(some):
                break
            lower = np.linalg.cholesky(rest[np.ix_(chosen[some], some)])
            made = scipy.linalg.solve_triangular(lower, rest[:, some].T, lower=True).T
            factor[:, done : done + len(some)] = made
            left = np.maximum(left - np.square(made).sum(axis=1), 0.0)
            left[chosen[some]] = 0.0
            done += len(some)
            bar.update(len(some))
    return LowRank(np.asfortranarray(factor[:, :done]), left)


def _independent(corner: np.ndarray) -> np.ndarray:
    """Numbers of rows of a semi-definite matrix that float64 can tell from being dependent, largest pivots first."""
    limit = 1e-10 * float(np.diagonal(corner).max())
    if limit <= 0:
        return np.empty(0, dtype=int)
    _, order, rank, _ = scipy.linalg.lapack.dpstrf(corner, lower=1, tol=limit)
    return np.asarray(order[:rank] - 1)
