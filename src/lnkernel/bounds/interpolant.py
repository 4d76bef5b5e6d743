r"""The coefficients $a = (\Theta + \eta I)^{-1} y$ of the mean $\Theta(x, X)\,a$, and with them all
that the bounds are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lnkernel.arch import Node
from lnkernel.check.arrays import Data
from lnkernel.errors import UnresolvedEigenvalueError
from lnkernel.gp.factor import Factor
from lnkernel.gp.fit import Fit, diagonal, fit
from lnkernel.gp.iterative import Iterative
from lnkernel.gp.noise import Variance
from lnkernel.gp.spectrum import Eigenvalue, resolution, smallest_eigenvalue


@dataclass(frozen=True)
class Interpolant:
    """A data set with its coefficients. The targets are divided by their largest absolute value,
    so that no square overflows."""

    largest: float  # max |y|
    coefficients: np.ndarray  # a of the scaled targets, (n, k)
    norms: np.ndarray  # √(aᵀΘa) of the scaled targets, (k,)
    lambda_min: Eigenvalue  # of Θ + noise I
    is_floor: bool = False  # whether this is a lower bound of it


def interpolant(arch: Node, data: Data, noise: Variance) -> Interpolant:
    """The interpolant of the data. One matrix is in memory: the eigensolver works in that of the factor."""
    return _interpolant(fit(arch, "ntk", data.x, data.y, noise), overwrite=True)


def interpolant_of(made: Fit) -> Interpolant:
    """The interpolant of a fit with the NTK that others hold as well: it stays as it is."""
    return _interpolant(made, overwrite=False)


def _by_iteration(made: Fit, solver: Iterative) -> Interpolant:
    r"""From a solution with a residual r: the exact mean's norm is at most $\sqrt{a^T\Theta a} + |r|/\sigma$, since the
    two differ by the function of $A^{-1} r$; its norm is also at most $\sqrt{\mathrm{tr}\,\Theta}\,|r|/\sigma^2$. The
    smallest eigenvalue is at least $\sigma^2$."""
    y, r = made.data.y, made.residual
    largest = float(np.abs(y).max())
    a = made.coefficients / (largest or 1.0)
    own, noise = diagonal(made.kernel, made.data.x), solver.least_noise
    share = min(1.0, float(np.sqrt((own / noise).sum())))
    missing = np.linalg.norm(r / (largest or 1.0), axis=0) / np.sqrt(noise) * share
    norms = _native_norms(solver, own, a) + missing
    return Interpolant(largest, a, norms, Eigenvalue(noise, 0.0), True)


def _native_norms(factor: Factor, own: np.ndarray, a: np.ndarray) -> np.ndarray:
    """√(aᵀΘa), (k,), from the diagonal of Θ and what A has off it.

    Θa itself, and not (Θ + noise I)a - noise a or y - noise a, which cancel where the noise is large; and a is divided
    by its largest, because its square may be below the range of float64.
    """
    theta = factor.with_diagonal(own)
    size = np.abs(a).max(axis=0)
    unit = a / np.where(size > 0, size, 1.0)
    return np.asarray(size * np.sqrt(np.maximum((unit * theta.times(unit)).sum(axis=0), 0.0)))


def _interpolant(made: Fit, overwrite: bool) -> Interpolant:
    if isinstance(made.solver, Iterative):
        return _by_iteration(made, made.solver)
    factor, y = made.factor, made.data.y
    largest = float(np.abs(y).max())
    a = factor.solve(y / largest if largest else y)
    norms = _native_norms(factor, diagonal(made.kernel, made.data.x), a)
    resolved = resolution(factor)
    least = smallest_eigenvalue(factor, overwrite=overwrite)
    if least.value < resolved:
        raise UnresolvedEigenvalueError(len(y), least.value, resolved)
    return Interpolant(largest, a, norms, least)
