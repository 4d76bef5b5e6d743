r"""The eigenvalues of a Gram matrix: all of them, or the smallest, with its error and what float64
can resolve.

Up to 5,000 points a symmetric eigensolver finds the smallest, above that Lanczos on the factorised
inverse, whose largest eigenvalue is $1/\lambda_{\min}$.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from lnkernel.gp.cholesky import Cholesky, cholesky_in_place, full_copy, restore
from lnkernel.gp.factor import Factor
from lnkernel.gram.memory import demand_memory

EPS = float(np.finfo(np.float64).eps)
KERNEL_ERROR = 2e-15  # error of an entry of a Gram matrix, relative to the root of a_ii a_jj
DIRECT = 5000  # points up to which the eigensolver is used
LANCZOS_TOLERANCE = 1e-8  # relative; the error that is left is measured and reported


class Eigen(NamedTuple):
    """The eigenvalues of A, in ascending order, and its eigenvectors, in columns."""

    values: np.ndarray
    vectors: np.ndarray

    def apply(self, phi: Callable[[np.ndarray], np.ndarray], b: np.ndarray) -> np.ndarray:
        """phi(A) b, for a function phi of the eigenvalues and b of shape (n, k)."""
        weights = phi(self.values)[:, None]
        return np.asarray(self.vectors @ (weights * (self.vectors.T @ b)))


def eigen(factor: Cholesky) -> Eigen:
    """All eigenvalues and eigenvectors of the matrix that was factorised, from a copy of it."""
    values, vectors = scipy.linalg.eigh(
        full_copy(factor), driver="evd", overwrite_a=True, check_finite=False
    )
    return Eigen(values, vectors)


class Eigenvalue(NamedTuple):
    """An eigenvalue of a float64 matrix, and a bound on the distance to the exact one."""

    value: float
    error: float


def resolution(gram: np.ndarray | Factor) -> float:
    r"""The size below which an eigenvalue of this Gram matrix is rounding noise in float64:
    $(n\,\varepsilon + 2\cdot 10^{-15})\,\mathrm{tr} A$.

    Two errors meet. An entry is known up to $2\cdot 10^{-15}\sqrt{a_{ii} a_{jj}}$, which moves an
    eigenvalue by at most $2\cdot 10^{-15}\,\mathrm{tr} A$ (the Frobenius norm of such errors).
    And Cholesky's method and the eigensolver give exact results for a matrix that is up to
    $n\,\varepsilon\,\mathrm{tr} A$ away (Higham, Accuracy and Stability, theorem 10.3).

    >>> import numpy as np
    >>> f"{resolution(np.eye(4)):.4g}"
    '1.155e-14'
    """
    diagonal = gram.diagonal if isinstance(gram, Factor) else np.diagonal(gram)
    # multiplied before they are added: the trace itself may be beyond float64
    return float(((len(diagonal) * EPS + KERNEL_ERROR) * diagonal).sum())


def smallest_eigenvalue(gram: np.ndarray | Factor, *, overwrite: bool = False) -> Eigenvalue:
    r"""$\lambda_{\min}$ of a symmetric matrix, with its error.

    It is returned however small it is: compare it with `resolution(gram)` before trusting it.

    Args:
        gram: the matrix, or the matrix with its factor. Above 5,000 points the factor is used, and
            nothing is copied.
        overwrite: whether `gram` may be used as work space. Otherwise the matrix is copied.

    The error is $n\,\varepsilon\,\|A\|_F$ for the eigensolver, and for Lanczos that and the
    residual: $\|A^{-1}v - \mu v\| \le r$ for a unit vector $v$ says that $A^{-1}$ has an eigenvalue
    within $r$ of $\mu$, so $A$ has one between $1/(\mu+r)$ and $1/(\mu-r)$.

    >>> import numpy as np
    >>> value, error = smallest_eigenvalue(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> abs(value - 1) <= error < 1e-14
    True
    """
    if isinstance(gram, Factor):
        n = len(gram.diagonal)
        if n > DIRECT or not isinstance(gram, Cholesky):
            return by_lanczos(gram, n * EPS * gram.frobenius())
        if overwrite:
            return _by_eigensolver(restore(gram), overwrite=True)
        demand_memory(n, 1, "A copy of the Gram matrix")
        return _by_eigensolver(full_copy(gram), overwrite=True)
    if len(gram) <= DIRECT:
        return _by_eigensolver(gram, overwrite)
    return _by_shifted_lanczos(gram if overwrite else gram.copy())


def _by_eigensolver(gram: np.ndarray, overwrite: bool) -> Eigenvalue:
    error = len(gram) * EPS * _frobenius(gram)
    values = scipy.linalg.eigh(
        gram.T if gram.flags.c_contiguous else gram,
        eigvals_only=True,
        subset_by_index=(0, 0),
        overwrite_a=overwrite,
        check_finite=False,
    )
    return Eigenvalue(float(values[0]), error)


def _by_shifted_lanczos(gram: np.ndarray) -> Eigenvalue:
    """The smallest eigenvalue by Lanczos, after factorising A in place, or A + sI where A itself has no factor."""
    rounding = len(gram) * EPS * _frobenius(gram)
    step, shift = resolution(gram), 0.0
    while (made := cholesky_in_place(gram)) is None:
        shift += step
        gram[np.diag_indices(len(gram))] += step
        step *= 10
    value, error = by_lanczos(made, rounding)
    return Eigenvalue(value - shift, error)


def by_lanczos(factor: Factor, rounding: float) -> Eigenvalue:
    """The smallest eigenvalue of A, from the largest of its inverse; `rounding` is added to its error."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    n = len(factor.diagonal)

    def inverse(b: np.ndarray) -> np.ndarray:
        return factor.solve_roughly(b.reshape(n, 1)).reshape(b.shape)

    operator = LinearOperator((n, n), matvec=inverse, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n)  # the same result in every run
    values, vectors = eigsh(operator, k=1, which="LA", v0=start, tol=LANCZOS_TOLERANCE)
    mu, vector = float(values[0]), vectors[:, 0] / np.linalg.norm(vectors[:, 0])
    residual = float(np.linalg.norm(inverse(vector) - mu * vector))
    return Eigenvalue(1 / mu, residual / (mu * max(mu - residual, EPS * mu)) + rounding)


def _frobenius(matrix: np.ndarray) -> float:
    """The Frobenius norm by LAPACK, which does not overflow; it is at least the largest eigenvalue."""
    columns = matrix.T if matrix.flags.c_contiguous else matrix
    return float(scipy.linalg.lapack.dlange("F", columns))
