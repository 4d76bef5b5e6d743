"""Why a Gram matrix has no factor: its smallest eigenvalue and the inputs that are to blame."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnkernel.errors import SingularGramError
from lnkernel.gp.cholesky import Cholesky
from lnkernel.gp.spectrum import EPS, KERNEL_ERROR, resolution, smallest_eigenvalue

_ROWS = 1024  # worked on at a time
_CONSTANT = 1e-6  # relative spread of a diagonal up to which it counts as constant


def is_resolved(factor: Cholesky) -> bool:
    r"""Whether the smallest eigenvalue stands out from the rounding noise, quickly estimated.

    What counts for Cholesky's method is the matrix scaled to unit diagonal, $H$ (Demmel 1989):
    inputs of very different norms do no harm by themselves. Two steps of the power method on
    $H^{-1}$ find an upper bound of $\lambda_{\min}(H)$, which is sharp where it is tiny.
    """
    n, root = len(factor.diagonal), np.sqrt(factor.diagonal)[:, None]
    vector = np.random.default_rng(0).standard_normal((n, 1))
    length = 0.0
    for _ in range(2):
        vector = root * factor.solve_roughly(root * (vector / np.linalg.norm(vector)))
        length = float(np.linalg.norm(vector))
    return 1 / length > (n * EPS + KERNEL_ERROR) * n


def singular(gram: np.ndarray, x: np.ndarray) -> SingularGramError:
    """The error that explains it. `gram` is used as work space."""
    diagonal = np.diagonal(gram).copy()
    zeros = np.flatnonzero(diagonal == 0)
    if zeros.size:
        # a zero on the diagonal of a semi-definite matrix: its row is zero, and an eigenvalue
        return SingularGramError(len(x), 0.0, resolution(gram), zero=int(zeros[0]))
    alike = most_alike(gram, diagonal)
    scaled = bool(np.ptp(diagonal) > _CONSTANT * diagonal.max())
    if scaled:
        root = np.sqrt(diagonal)
        gram /= root[:, None]
        gram /= root
    limit = resolution(gram)
    return SingularGramError(
        len(x),
        smallest_eigenvalue(gram, overwrite=True).value,
        limit,
        nearest=nearest(x),
        alike=alike,
        scaled=scaled,
    )


def most_alike(gram: np.ndarray, diagonal: np.ndarray) -> tuple[int, int, float] | None:
    """The pair with the largest normalised kernel, and how much this is short of 1."""
    root = np.sqrt(diagonal)

    def likeness(rows: slice) -> np.ndarray:
        return np.asarray(gram[rows] / root[rows, None] / root)

    found = _largest(len(gram), likeness)
    if found is None:
        return None
    i, j = found
    return i, j, 1 - float(gram[i, j] / root[i] / root[j])


def nearest(x: np.ndarray) -> tuple[int, int, float] | None:
    """The two inputs next to each other, and their distance."""
    power = int(np.frexp(np.abs(x).max())[1])
    plain = np.ldexp(x, -power)  # no square overflows, and no digit is lost
    centred = plain - plain.mean(axis=0)
    squares = (centred * centred).sum(axis=1)

    def closeness(rows: slice) -> np.ndarray:
        return np.asarray(2 * centred[rows] @ centred.T - squares[rows, None] - squares)

    def exactly(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return -np.linalg.norm(plain[i] - plain[j], axis=1)

    found = _largest(len(x), closeness, exactly)
    if found is None:
        return None
    i, j = found
    return i, j, float(np.ldexp(np.linalg.norm(plain[i] - plain[j]), power))


def _largest(n: int, block: Any, exactly: Any = None) -> tuple[int, int] | None:
    """The pair i < j of the largest entry of a symmetric matrix given by blocks of rows.

    The best partner of every row is found first; if `exactly` is given, it decides among them.
    """
    if n < 2:
        return None
    partners, values = np.empty(n, dtype=int), np.empty(n)
    for start in range(0, n, _ROWS):
        rows = slice(start, min(start + _ROWS, n))
        entries = block(rows)
        here = np.arange(len(entries))
        entries[here, here + start] = -np.inf
        partners[rows] = entries.argmax(axis=1)
        values[rows] = entries[here, partners[rows]]
    best = int(np.argmax(values if exactly is None else exactly(np.arange(n), partners)))
    return min(best, int(partners[best])), max(best, int(partners[best]))
