r"""Eigenvalues and eigenvectors of the tangent kernel $K = J J^T$, and how targets lie among them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from lnkernel.errors import InputError
from lnkernel.tangents.inputs import as_rows
from lnkernel.types import Targets

Rows = Float64[np.ndarray, " rows"]
NO_GRADIENT = (
    "x",
    "inputs at which the gradient is not zero everywhere",
    "a tangent kernel of zeros",
    "Choose more parameters by wrt, or other inputs",
)


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum:
    r"""The eigenvalues of $K$ on some inputs, all or the largest, with their errors; `Tangent.spectrum`
    makes it. Targets are (n,), or (n, k) of k outputs, as K has rows.

    Attributes:
        values: eigenvalues, the largest first: (r,), float64.
        vectors: eigenvectors of length 1: (n, r), or (n, k, r) of k outputs.
        residuals: $|K u - \lambda u|$ of each pair: K has an eigenvalue within that of λ.
        resolution: what is below is rounding, in the precision of the kernel.
        method: "dense", "lanczos" or "nystrom".
    """

    values: Float64[np.ndarray, " r"]
    vectors: Float64[np.ndarray, "*rows r"]
    residuals: Float64[np.ndarray, " r"]
    resolution: float
    method: str
    _times: Callable[[Rows], Rows]  # K v, without the approximation
    _trace: Callable[[], float]
    _frobenius: Callable[[], float]

    def __repr__(self) -> str:
        of = math.prod(self.vectors.shape[:-1])
        return (
            f"Spectrum({self.values.size} of {of} eigenvalues, largest={self.values[0]:.4g}, "
            f"method={self.method!r})"
        )

    @property
    def condition(self) -> float:
        """λ_max/λ_min; infinite where λ_min is not told from 0. It needs all eigenvalues."""
        rows = math.prod(self.vectors.shape[:-1])
        if self.values.size < rows:
            raise InputError(
                "condition",
                f"all {rows} eigenvalues",
                f"the {self.values.size} largest",
                'Ask for all of them: spectrum(x, method="dense")',
            )
        least = float(self.values[-1])
        return float(self.values[0]) / least if least > self.resolution else math.inf

    @property
    def effective_rank(self) -> float:
        r"""$(\sum_i\lambda_i)^2/\sum_i\lambda_i^2 = (\mathrm{tr} K)^2/\|K\|_F^2$ (Bartlett et al. 2020, R₀):
        of r equal eigenvalues it is r. It is that of the whole matrix, however many pairs are known.
        """
        return (self._trace() / self._norm()) ** 2

    def alignment(self, y: Targets) -> float:
        r"""$y^T K y/|y|^2$ (Ortiz-Jiménez et al. 2021): λ_i at the eigenvector i. It takes one product with K."""
        rows = self._rows(y)
        return float(rows @ self._times(rows) / (rows @ rows))

    def kta(self, y: Targets) -> float:
        r"""$y^T K y/(\|K\|_F |y|^2)$, the kernel-target alignment, without centring: at most 1, and 1 if
        K is a multiple of $y y^T$."""
        return self.alignment(y) / self._norm()

    def shares(self, y: Targets) -> Float64[np.ndarray, " r"]:
        r"""$(u_i^T y)^2/|y|^2$, what part of the targets lies along each eigenvector: (r,)."""
        rows = self._rows(y)
        flat = self.vectors.reshape(-1, self.values.size)
        return np.square(flat.T @ rows) / (rows @ rows)

    def _norm(self) -> float:
        """‖K‖_F, where K is not 0."""
        norm = self._frobenius()
        if norm == 0:
            raise InputError(*NO_GRADIENT)
        return norm

    def _rows(self, y: Targets) -> Rows:
        shape = self.vectors.shape[:-1]
        outputs = 1 if len(shape) == 1 else shape[1]
        rows = as_rows("y", y, shape[0], outputs).astype(np.float64).ravel()
        if not rows.any():
            raise InputError(
                "y", "targets that are not all zero", "zeros", "They have no direction"
            )
        return rows
