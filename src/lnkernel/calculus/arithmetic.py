"""What a number system must offer so that the rules of the calculus run on it.

The rules use `+ - *` on the numbers and, for everything else, the operations below.
float64, balls and leading terms (`lnkernel.evaluate`) supply them. What only some activations
need is not among them: those functions belong to the activation (`lnkernel.calculus.special`).
Numbers of a *pair* (angles) and numbers of a single *input* (lengths) are kept apart, because
there are n^2 of the one and only n of the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

Number = Any  # a float64 array, a ball, a symbol: whatever the arithmetic works on
Truth = Any


class Cosines(NamedTuple):
    r"""The right triangle with legs $l$ and $k$: $l/h$, $k/h$ and $h^2 = l^2 + k^2$.

    `rest` may say the relative rounding error of the first, which a product of two then leaves out. Where both inputs
    of every pair are one and the same, `share` may say $(l/h)^2$ with more digits.
    """

    leg: Number
    other: Number
    square: Number
    rest: Number = None
    share: Number = None


class Softened(NamedTuple):
    r"""$r/g$ and $g$ for $g = \sqrt{r^2 + \epsilon}$."""

    ratio: Number
    norm: Number


class Arithmetic(Protocol):
    """The operations beyond `+ - *`.

    Squared lengths may be numbers of a kind of their own, with more digits and a larger range:
    those are what `squared` and `power` give, and what `sqrt`, `divide`, `cosines`
    and `softened` turn into ordinary numbers.

    `name` and `purpose` are for messages: "balls", "certificate".

    `rounds_angles` is for networks that make little of a rounding error of the cosine: angles are then taken from
    it, and small ones have no digits of their own.
    """

    name: str
    purpose: str

    @property
    def rounds_angles(self) -> bool: ...

    # constants
    def real(self, x: float) -> Number:
        """A float64 number of the architecture, exactly."""
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

    def length_difference(self, first: Number, second: Number) -> Number:
        """e of two lengths, from their squares; 0 where both are 0."""
        ...

    # on both
    def where(self, condition: Truth, yes: Number, no: Number) -> Number: ...

    def either(self, one: Truth, other: Truth) -> Truth: ...

    def as_number(self, truth: Truth) -> Number: ...
