r"""Linear systems of a Gram matrix in mixed precision: a factor in float32, residuals in float64.

Factorising is most of the work, and takes less time in float32. The factor, of a matrix
$M$ near $A$, only guides the way: residuals are those of $A$, in float64, and every step
$u \to u + M^{-1}(b - A u)$ multiplies them by $G = 1 - A M^{-1}$ (iterative refinement; Higham,
Accuracy and Stability, chapter 12). What converges there is as exact as by a factor in float64.

That it converges is tested: for a random unit vector $v$ the mean of $n |G v|^2$ is $\|G\|_F^2$, and
where $\|G\| < 1$, $A$ is positive definite as $M$ is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from lnkernel.gp.cholesky import FEW, Cholesky, cholesky_in_place
from lnkernel.gp.spectrum import EPS, KERNEL_ERROR

# Below, nothing is gained. Above, the factor in place saves the memory of this one.
FEWEST, MOST = 1000, 10_000
_ROWS = 256  # worked on at a time
_PROBES = 2  # random vectors; the estimate of the norm of G is then good to a few percent
_CONTRACTION = 0.25  # what G is asked for, so that it is below 1/2 for all that is estimated
_STEPS = 60  # at most; 2^-60 is below the rounding error


@dataclass(frozen=True)
class SinglePrecision:
    """A symmetric positive definite matrix A, and a factor of D^-1/2 A D^-1/2 in float32."""

    matrix: np.ndarray  # A, of which what stands above the diagonal is read
    diagonal: np.ndarray  # D, the diagonal of A
    factor: np.ndarray  # in the lower triangle, Fortran order

    def solve(self, b: np.ndarray) -> np.ndarray:
        """A⁻¹ b, for b of shape (n, k)."""
        right = b / self._root
        solution, residual = np.zeros_like(right), right
        size = np.abs(residual).max(axis=0)
        for _ in range(_STEPS):
            solution = solution + self._roughly(residual)
            residual = right - self._times(solution)
            before, size = size, np.abs(residual).max(axis=0)
            if not (size < before / 2).any():
                break
        return np.asarray(solution / self._root)

    def times(self, b: np.ndarray) -> np.ndarray:
        """A b, for b of shape (n, k)."""
        return Cholesky(self.matrix.T, self.diagonal).times(b)

    def in_double(self) -> Cholesky:
        """The factor in float64, in the memory of A. This one goes on working."""
        made = cholesky_in_place(self.matrix)
        if made is None:
            raise AssertionError("what converges is positive definite")
        return made

    def is_good(self) -> bool:
        """Whether refinement converges, and the smallest eigenvalue is above the rounding noise."""
        n = len(self.diagonal)
        probes = np.random.default_rng(0).standard_normal((n, _PROBES))
        probes /= np.linalg.norm(probes, axis=0)
        once = self._roughly(probes)
        left = probes - self._times(once)
        if not np.sqrt(n / _PROBES) * np.linalg.norm(left) < _CONTRACTION:
            return False
        twice = self._roughly(once / np.linalg.norm(once, axis=0))
        # the smallest eigenvalue of M, from above; sharp if tiny
        smallest = 1 / np.linalg.norm(twice, axis=0).max()
        return bool(smallest > 2 * (n * EPS + KERNEL_ERROR) * n)

    @property
    def _root(self) -> np.ndarray:
        return np.asarray(np.sqrt(self.diagonal)[:, None])

    def _times(self, b: np.ndarray) -> np.ndarray:
        """D^-1/2 A D^-1/2 b."""
        return np.asarray(self.times(b / self._root) / self._root)

    def _roughly(self, b: np.ndarray) -> np.ndarray:
        """M⁻¹ b, each column scaled so that none of it leaves the range of float32."""
        size = np.abs(b).max(axis=0)
        size[size == 0] = 1.0
        part = np.asfortranarray(b / size, dtype=np.float32)
        for transposed in (0, 1):
            part = self._triangular(part, transposed)
        return np.asarray(part.astype(np.float64) * size)

    def _triangular(self, b: np.ndarray, transposed: int) -> np.ndarray:
        if b.shape[1] > FEW:
            return np.asarray(
                scipy.linalg.blas.strsm(1.0, self.factor, b, lower=1, trans_a=transposed)
            )
        solve = scipy.linalg.blas.strsv
        columns = [solve(self.factor, column, lower=1, trans=transposed) for column in b.T]
        return np.stack(columns, axis=1)


def single_precision(matrix: np.ndarray) -> SinglePrecision | None:
    """The factor of a symmetric matrix in C order with a positive diagonal; None where float32 does not suffice."""
    if not FEWEST <= len(matrix) <= MOST:
        return None
    diagonal = np.diagonal(matrix).copy()
    factor, failed = scipy.linalg.lapack.spotrf(
        _scale(matrix, 1 / np.sqrt(diagonal)), lower=1, clean=0, overwrite_a=1
    )
    made = SinglePrecision(matrix, diagonal, factor)
    return made if not failed and made.is_good() else None


def _scale(matrix: np.ndarray, by: np.ndarray) -> np.ndarray:
    """The lower triangle of the matrix scaled to unit diagonal, in float32 and Fortran order."""
    n = len(matrix)
    out = np.empty((n, n), dtype=np.float32, order="F")
    for start in range(0, n, _ROWS):
        rows = slice(start, start + _ROWS)  # by symmetry the matrix's rows are our columns
        part = matrix[rows, start:] * by[start:]
        out[start:, rows] = (part * by[rows, None]).T
    return out
