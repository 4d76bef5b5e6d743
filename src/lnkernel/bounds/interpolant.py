r"""The coefficients $a = (\Theta + \eta I)^{-1} y$ of the mean $\Theta(x, X)\,a$, and with them all
that the bounds are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lnkernel.arch import Node
from lnkernel.check.arrays import Data
from lnkernel.errors import UnresolvedEigenvalueError
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
    quadratic: np.ndarray  # aᵀΘa of the scaled targets, (k,)
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
    two differ by the function of $A^{-1} r$; and the smallest eigenvalue is at least $\sigma^2$."""
    y, a, r = made.data.y, made.coefficients, made.residual
    largest = float(np.abs(y).max()) or 1.0
    image = y - r - np.broadcast_to(np.asarray(made.noise), len(y))[:, None] * a  # Θ a
    native = np.sqrt(np.maximum((a * image).sum(axis=0), 0.0))
    native = native + np.linalg.norm(r, axis=0) / np.sqrt(solver.least_noise)
    quadratic = np.square(native / largest)
    least = Eigenvalue(solver.least_noise, 0.0)
    return Interpolant(float(np.abs(y).max()), a / largest, quadratic, least, True)


def _interpolant(made: Fit, overwrite: bool) -> Interpolant:
    if isinstance(made.solver, Iterative):
        return _by_iteration(made, made.solver)
    factor, y = made.factor, made.data.y
    largest = float(np.abs(y).max())
    a = factor.solve(y / largest if largest else y)
    # Θa itself, and not (Θ + noise I)a - noise a, which cancels where the noise is large
    theta = factor.with_diagonal(diagonal(made.kernel, made.data.x))
    quadratic = (a * theta.times(a)).sum(axis=0)
    resolved = resolution(factor)
    least = smallest_eigenvalue(factor, overwrite=overwrite)
    if least.value < resolved:
        raise UnresolvedEigenvalueError(len(y), least.value, resolved)
    return Interpolant(largest, a, np.maximum(quadratic, 0.0), least)
