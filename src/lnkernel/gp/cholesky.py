r"""The Cholesky factor of a Gram matrix, made in place, with all that is solved by it.

LAPACK writes $L$ with $L L^T = A$ over the lower triangle of $A$ and leaves the strictly upper
one alone; with the old diagonal kept aside, both $L$ and $A$ live on in the memory of $A$. So
20,000 points take one matrix (3.2 GB), and solutions can be refined all the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load at their first use, so that `import lnkernel` stays quick

from lnkernel.gp.factor import Factor

_ROWS = 256  # rows worked on at a time, where there is no memory for a second matrix
FEW = 4  # columns, which are faster one by one than by the methods for matrices
_NEAR = 4  # times as large as A's the diagonal of L may be, where a product with one is corrected to one with the other


@dataclass(frozen=True)
class Cholesky(Factor):
    """A symmetric positive definite matrix A and its factor, in one array."""

    both: np.ndarray  # Fortran order: L in the lower triangle, A's entries above the diagonal
    diagonal: np.ndarray  # the diagonal of A

    @property
    def stored(self) -> np.ndarray:
        return self.both

    def times(self, b: np.ndarray) -> np.ndarray:
        """A b, for b of shape (n, k)."""
        ends = np.diagonal(self.both)
        if (np.abs(ends) / _NEAR > np.abs(self.diagonal)).any():
            return self._times_by_blocks(b)
        correction = (self.diagonal - ends)[:, None] * b
        if b.shape[1] <= FEW:
            columns = [scipy.linalg.blas.dsymv(1.0, self.both, column, lower=0) for column in b.T]
            return np.stack(columns, axis=1) + correction
        product = scipy.linalg.blas.dsymm(1.0, self.both, np.asfortranarray(b), lower=0)
        return np.asarray(product + correction)

    def _times_by_blocks(self, b: np.ndarray) -> np.ndarray:
        """The same without a product with the diagonal of L, beside whose rounding errors small numbers would be lost:
        those of a kernel far below 1, or of one without the large noise with which L was made."""
        product = self.diagonal[:, None] * b
        for start in range(0, len(self.both), _ROWS):
            stop = start + _ROWS
            corner = np.triu(self.both[start:stop, start:stop], 1)
            right = self.both[start:stop, stop:]
            product[start:stop] += corner @ b[start:stop] + corner.T @ b[start:stop]
            product[start:stop] += right @ b[stop:]
            product[stop:] += right.T @ b[start:stop]
        return product

    def half_solve(self, b: np.ndarray) -> np.ndarray:
        """L⁻¹ b, for b of shape (n, k)."""
        return self._triangular(b, transposed=False)

    def log_determinant(self) -> float:
        """log det A."""
        return 2 * float(np.log(np.diagonal(self.both)).sum())

    def frobenius(self) -> float:
        """The Frobenius norm of A. LAPACK's function does not overflow, and nor does `hypot`."""
        norm = scipy.linalg.lapack.dlange
        above = (
            norm("F", np.triu(self.both[start : start + _ROWS, start:], 1).T)
            for start in range(0, len(self.both), _ROWS)
        )
        return math.hypot(
            norm("F", self.diagonal[:, None]), *(math.sqrt(2) * part for part in above)
        )

    def with_diagonal(self, diagonal: np.ndarray) -> Cholesky:
        return Cholesky(self.both, diagonal)

    def solve_roughly(self, b: np.ndarray) -> np.ndarray:
        """A⁻¹ b, for b of shape (n, k), without refinement."""
        return self._triangular(self._triangular(b, transposed=False), transposed=True)

    def _triangular(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        if b.shape[1] <= FEW:
            solve, trans = scipy.linalg.blas.dtrsv, int(transposed)
            columns = [solve(self.both, column, lower=1, trans=trans) for column in b.T]
            return np.stack(columns, axis=1)
        return np.asarray(
            scipy.linalg.blas.dtrsm(1.0, self.both, b, lower=1, trans_a=int(transposed))
        )


def restore(factor: Cholesky) -> np.ndarray:
    """A itself, in the memory of the factor, which is gone afterwards."""
    return _restore(factor.both, factor.diagonal)


def full_copy(factor: Cholesky) -> np.ndarray:
    """A itself, in memory of its own."""
    return _restore(factor.both.copy(order="F"), factor.diagonal)


def cholesky_in_place(matrix: np.ndarray) -> Cholesky | None:
    """The factor, written over `matrix`; None, and `matrix` as it was, where there is none.

    `matrix` is a symmetric float64 array in C or Fortran order. A factor exists in exact
    arithmetic iff the matrix is positive definite; in floating-point arithmetic it is found
    wherever the smallest eigenvalue is above the resolution (`spectrum.resolution`).
    """
    columns = matrix if matrix.flags.f_contiguous else matrix.T  # LAPACK's order, without a copy
    if not (columns.flags.f_contiguous and columns.dtype == np.float64 and matrix.flags.writeable):
        raise TypeError("cholesky_in_place needs a contiguous, writeable float64 array")
    diagonal = np.diagonal(matrix).copy()
    both, info = scipy.linalg.lapack.dpotrf(columns, lower=1, clean=0, overwrite_a=1)
    if info > 0:
        _restore(columns, diagonal)
        return None
    return Cholesky(both, diagonal)


def _restore(both: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """The lower triangle of `both` written anew from the upper one, block by block."""
    n = len(both)
    np.fill_diagonal(both, diagonal)
    for start in range(0, n, _ROWS):
        stop = min(start + _ROWS, n)
        both[stop:, start:stop] = both[start:stop, stop:].T
        corner = both[start:stop, start:stop]
        corner[:] = np.triu(corner) + np.triu(corner, 1).T
    return both
