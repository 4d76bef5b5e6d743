"""What a number system must offer so that the rules of the calculus run on it.

The rules use `+ - *` on the numbers and, for everything else, the operations below.
float64 (`lnkernel.evaluate.float64`) supplies them with JAX. Numbers of a *pair*
(angles) and numbers of a single *input* (lengths) are kept apart, because there are
n^2 of the one and only n of the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

Number = Any  # a float64 array, a ball, a symbol: whatever the arithmetic works on
Truth = Any


class Cosines(NamedTuple):
    r"""The right triangle with legs $l$ and $k$: $l/h$, $k/h$ and $h^2 = l^2 + k^2$."""

    leg: Number
    other: Number
    square: Number


class Softened(NamedTuple):
    r"""$r/g$ and $g$ for $g = \sqrt{r^2 + \epsilon}$."""

    ratio: Number
    norm: Number


class Tails(NamedTuple):
    r"""The normalised expectation $F_p$ on both sides of the circle, $m = (1 - |\rho|)/2$.

    $F_p(\rho) = E[u_+^p v_+^p]/E[u_+^{2p}]$ for unit Gaussians of correlation $\rho$.
    """

    far: Number  # F_p(-|rho|), small as m -> 0
    gap: Number  # 1 - F_p(|rho|), small as m -> 0
    far_slope: Number  # F_{p-1}(-|rho|)
    near_slope: Number  # F_{p-1}(|rho|)


class Spherical(NamedTuple):
    r"""GroupNorm's $\kappa_\nu$ at $|\rho| = 1 - 2m$: $1 - \kappa_\nu$, $\kappa_\nu$, and $\kappa_\nu'$."""

    gap: Number
    value: Number
    slope: Number


class Arithmetic(Protocol):
    """The operations beyond `+ - *`.

    Squared lengths may be numbers of a kind of their own, with more digits and a larger range:
    those are what `squared`, `power` and `moment` give, and what `sqrt`, `divide`, `cosines`
    and `softened` turn into ordinary numbers.
    """

    # constants
    def real(self, x: float) -> Number:
        """A float64 number of the architecture, exactly."""
        ...

    def moment(self, degree: float) -> Number:
        r"""$c_p = E[u_+^{2p}] = 2^{p-1}\,\Gamma(p + 1/2)/\sqrt{\pi}$; $(2p-1)!!/2$ for integers."""
        ...

    def mean_share(self, degree: float) -> Number:
        r"""$E[u_+^p]/\sqrt{E[u_+^{2p}]} = \Gamma(\frac{p+1}{2})/\sqrt{2\sqrt\pi\,\Gamma(p+\frac12)}$."""
        ...

    # on numbers of a single input
    def squared(self, x: Number) -> Number:
        """x^2 as a squared length."""
        ...

    def sqrt(self, x: Number) -> Number: ...

    def power(self, x: Number, degree: float) -> Number:
        """A squared length to a real power; 0 stays 0 if the power is positive."""
        ...

    def cosines(self, leg_square: Number, other: Number) -> Cosines: ...

    def softened(self, square: Number, eps: Number) -> Softened: ...

    # on numbers of a pair
    def divide(self, x: Number, y: Number) -> Number:
        """x/y for y > 0, and x for y = 0."""
        ...

    def powered_difference(self, e: Number, degree: float, first: Number, second: Number) -> Number:
        """e of two lengths raised to a power: tanh(degree * artanh(e)).

        `first` and `second` are the squares of the new lengths; where these differ much,
        e is near ±1 and has lost the ratio, and they tell it without cancellation.
        """
        ...

    def combined_difference(
        self, e: Number, change: Number, first: Number, second: Number
    ) -> Number:
        """e of lengths that are multiplied: tanh(x + y) from e = tanh x and change = tanh y."""
        ...

    def tails(self, degree: float, m: Number) -> Tails: ...

    def spherical(self, freedom: int, m: Number) -> Spherical: ...

    # on both
    def where(self, condition: Truth, yes: Number, no: Number) -> Number: ...

    def either(self, one: Truth, other: Truth) -> Truth: ...

    def as_number(self, truth: Truth) -> Number: ...
