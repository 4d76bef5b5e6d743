r"""A lower bound of the smallest eigenvalue of a Gram matrix, by factorising it once more.

If Cholesky's method in float64 runs through on $A - sI$, then $\lambda_{\min}(A) \ge s - c$ with
$c = \frac{\gamma}{1 - \gamma}\,\mathrm{tr} A + \dots$, $\gamma = (n + 2)u/(1 - (n + 2)u)$, whatever the order of its
operations
(Rump 2006, Verification of positive definiteness). So the bound holds over many devices as on one. The error of the
entries, $2\cdot 10^{-15}\sqrt{a_{ii} a_{jj}}$, is measured and not proved; it is part of c. `bound(..., certify=True)`
encloses the entries themselves, for fewer points.
"""

from __future__ import annotations

import numpy as np

from lnkernel.gp.diagnosis import Factorise
from lnkernel.gp.factor import Factor
from lnkernel.gp.packed import GramRows
from lnkernel.gp.spectrum import EPS, KERNEL_ERROR, by_lanczos

SHARES = (
    1 - 1e-6,
    0.99,
    0.5,
)  # of the eigenvalue as Lanczos' method has it, tried one after the other
SLACK = 1 + 1e-10  # for the roundings of the bound itself


def eigenvalue_floor(factor: Factor, rows: GramRows, factorise: Factorise) -> float:
    """A number that the smallest eigenvalue of A is not below; at least the least noise, as the kernel is positive."""
    least = float(np.min(rows.noise))
    guess = by_lanczos(factor, 0.0).value
    for share in SHARES:
        shift = share * guess - _loss(factor.diagonal, guess)
        floor = shift - _loss(factor.diagonal, shift)
        if floor <= least:
            break
        if factorise(rows, shift=-shift) is not None:
            return floor
    return least


def _loss(diagonal: np.ndarray, shift: float) -> float:
    """How far below the shift the eigenvalue may be."""
    n, trace = len(diagonal), float(diagonal.sum())
    gamma = (n + 2) * EPS / (1 - (n + 2) * EPS)
    rounding = gamma / (1 - gamma) * trace + EPS * (float(diagonal.max()) + abs(shift))
    return (rounding + KERNEL_ERROR * trace) * SLACK
