r"""The coefficients $a = (\Theta + \eta I)^{-1} y$ of the mean $\Theta(x, X)\,a$, and with them all
that the bounds are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lnkernel.arch import Node
from lnkernel.check import Data
from lnkernel.errors import UnresolvedEigenvalueError
from lnkernel.gp.cholesky import Cholesky, restored
from lnkernel.gp.fit import diagonal, fit
from lnkernel.gp.spectrum import Eigenvalue, resolution, smallest_eigenvalue


@dataclass(frozen=True)
class Interpolant:
    """A data set with its coefficients. The targets are divided by their largest absolute value,
    so that no square overflows."""

    largest: float  # max |y|
    coefficients: np.ndarray  # a of the scaled targets, (n, k)
    quadratic: np.ndarray  # aᵀΘa of the scaled targets, (k,)
    lambda_min: Eigenvalue  # of Θ + noise I


def interpolant(arch: Node, data: Data, noise: float) -> Interpolant:
    """One matrix in memory: it is factorised in place, restored, and given to the eigensolver."""
    made = fit(arch, "ntk", data.x, data.y, noise)
    largest = float(np.abs(data.y).max())
    a = made.factor.solve(data.y / largest if largest else data.y)
    # Θa itself, and not (Θ + noise I)a - noise a, which cancels where the noise is large
    theta = Cholesky(made.factor.both, diagonal(made.kernel, data.x))
    quadratic = (a * theta.times(a)).sum(axis=0)
    gram = restored(made.factor)  # the factor is gone from here on
    resolved = resolution(gram)
    least = smallest_eigenvalue(gram, overwrite=True)
    if least.value < resolved:
        raise UnresolvedEigenvalueError(len(data.x), least.value, resolved)
    return Interpolant(largest, a, np.maximum(quadratic, 0.0), least)
