r"""GroupNorm's kernel $\kappa_\nu$ of a pair of Gaussian coordinates, of $\nu$ degrees of freedom."""

from __future__ import annotations

from typing import NamedTuple

from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.special import special


class Spherical(NamedTuple):
    r"""GroupNorm's $\kappa_\nu$ at $|\rho| = 1 - 2m$: $1 - \kappa_\nu$, $\kappa_\nu$, and $\kappa_\nu'$."""

    gap: Number
    value: Number
    slope: Number


@special
def spherical(num: Arithmetic, freedom: int, m: Number) -> Spherical:
    """GroupNorm's kernel at |rho| = 1 - 2m."""
    raise NotImplementedError
