"""The diagnosis of a Gram matrix without a factor: its smallest eigenvalue, and the inputs to blame."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
import scipy

from lnkernel.errors import SingularGramError
from lnkernel.gp.factor import Factor
from lnkernel.gp.packed import GramRows, packed_cholesky
from lnkernel.gp.spectrum import EPS, KERNEL_ERROR, by_lanczos, resolution, smallest_eigenvalue

_ROWS = 1024  # worked on at a time
_TINY = 1e-150  # a distance of inputs up to 1 whose square is not zero
_CONSTANT = 1e-6  # relative spread of a diagonal up to which it counts as constant


def is_resolved(factor: Factor) -> bool:
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
    """The error that explains why the Gram matrix is singular. `gram` is used as work space."""
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


class Factorise(Protocol):
    """How a matrix without room for a square array is factorised: the factor of A + shift I, or None."""

    def __call__(self, rows: GramRows, shift: float = 0.0) -> Factor | None: ...


def singular_rows(rows: GramRows, factorise: Factorise = packed_cholesky) -> SingularGramError:
    """The same for a matrix that is too large for a square array: it is computed and factorised again, with as much
    added to its diagonal as it takes, and Lanczos' method finds the eigenvalue."""
    n = len(rows.x)
    diagonal = np.asarray(rows.kernel.diagonal(rows.x)) + rows.noise
    zeros = np.flatnonzero(diagonal == 0)
    if zeros.size:
        limit = (n * EPS + KERNEL_ERROR) * float(diagonal.sum())
        return SingularGramError(n, 0.0, limit, zero=int(zeros[0]))
    scaled = bool(np.ptp(diagonal) > _CONSTANT * diagonal.max())
    unit = replace(rows, scale=1 / np.sqrt(diagonal))
    work = unit if scaled else rows
    limit = (n * EPS + KERNEL_ERROR) * (n if scaled else float(diagonal.sum()))
    shift = limit
    while (factor := factorise(work, shift=shift)) is None:
        shift *= 10
    value = by_lanczos(factor, 0.0).value - shift
    alike = _most_alike_rows(unit)
    return SingularGramError(n, value, limit, nearest=nearest(rows.x), alike=alike, scaled=scaled)


def _most_alike_rows(unit: GramRows) -> tuple[int, int, float] | None:
    """`most_alike` of a matrix with unit diagonal, some rows at a time."""
    best: tuple[int, int, float] | None = None
    for start, rows in unit:
        rows[np.triu(np.ones(rows.shape, dtype=bool), start)] = -np.inf  # the diagonal, and beyond
        i, j = np.unravel_index(rows.argmax(), rows.shape)
        short = 1 - float(rows[i, j])
        if short < (np.inf if best is None else best[2]):
            best = int(j), start + int(i), short
    return best


def most_alike(gram: np.ndarray, diagonal: np.ndarray) -> tuple[int, int, float] | None:
    """The pair i < j with the largest normalised kernel, and how much this is short of 1."""
    n, root = len(gram), np.sqrt(diagonal)
    if n < 2:
        return None
    partners, values = np.empty(n, dtype=int), np.empty(n)
    for start in range(0, n, _ROWS):
        rows = slice(start, min(start + _ROWS, n))
        likeness = gram[rows] / root[rows, None] / root
        here = np.arange(len(likeness))
        likeness[here, here + start] = -np.inf
        partners[rows] = likeness.argmax(axis=1)
        values[rows] = likeness[here, partners[rows]]
    best = int(values.argmax())
    i, j = sorted((best, int(partners[best])))
    return i, j, 1 - float(gram[i, j] / root[i] / root[j])


def nearest(x: np.ndarray) -> tuple[int, int, float] | None:
    """The two inputs i < j next to each other, and their distance."""
    if len(x) < 2:
        return None
    x = x.reshape(len(x), -1)  # of images all numbers
    power = int(np.frexp(np.abs(x).max())[1])
    plain = np.ldexp(x, -power)  # no square overflows, and no digit is lost
    # Two neighbours of itself, because the first is the point or its equal. In hundreds of
    # dimensions a tree rules little out, unless it knows how near the nearest are at most.
    within = max(_near_along_a_line(plain) * (1 + 1e-9), _TINY)
    distances, neighbours = scipy.spatial.KDTree(plain).query(
        plain, k=2, distance_upper_bound=within
    )
    best = int(distances[:, 1].argmin())
    first, second = map(int, neighbours[best])
    i, j = sorted((best, second if first == best else first))
    return i, j, float(np.ldexp(np.linalg.norm(plain[i] - plain[j]), power))


def _near_along_a_line(x: np.ndarray) -> float:
    """The least distance of inputs that come one after the other in a random direction.

    It is at least that of the nearest, and mostly theirs if they nearly coincide.
    """
    order = np.argsort(x @ np.random.default_rng(0).standard_normal(x.shape[1]))
    return float(np.linalg.norm(np.diff(x[order], axis=0), axis=1).min())
