"""Polynomials as activations."""

from __future__ import annotations

import math
from typing import Any

from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.node import node, static
from lnkernel.arch.traits import Traits, traits
from lnkernel.check.layers import integer_at_least
from lnkernel.check.numbers import as_number
from lnkernel.check.plain import known, known_zero
from lnkernel.errors import ArchitectureError

HIGHEST = 20  # degree: up to here the integers of the formulas are float64 numbers


@node
class Polynomial(Elementwise):
    r"""$\phi(u) = c_0 + c_1 u + \dots + c_k u^k$.

    Args:
        coefficients: $(c_0, \dots, c_k)$, with $k$ up to 20.

    >>> import lnkernel as lnk
    >>> k = lnk.nngp(lnk.serial(lnk.Dense(8), lnk.Polynomial((1.0, 0.0, 2.0)), lnk.Dense(1)))
    >>> k.diagonal([[1.0]]).round(12).tolist()             # E (1 + 2u²)² = 1 + 4 + 12
    [17.0]
    """

    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        given = self.coefficients
        if isinstance(given, tuple | list):
            plain = (as_number(c) if known(c) or not hasattr(c, "aval") else c for c in given)
            object.__setattr__(self, "coefficients", tuple(plain))
        _check_coefficients(self.coefficients, given)


@node
class Hermite(Elementwise):
    r"""$\phi(u) = \mathit{He}_n(u)/\sqrt{n!}$, the orthonormal Hermite polynomial of degree $n$, from 1 to 20.

    Between inputs of unit length with the cosine $\rho$ its kernel is $\rho^n$.

    >>> import lnkernel as lnk
    >>> k = lnk.nngp(lnk.serial(lnk.Dense(8), lnk.RMSNorm(), lnk.Hermite(3), lnk.Dense(1)))
    >>> round(float(k([[1.0, 0.0]], [[3.0, 4.0]])[0, 0]), 14)       # 0.6³
    0.216
    """

    degree: int = static()

    def __post_init__(self) -> None:
        integer_at_least(self, "degree", 1)
        if self.degree > HIGHEST:
            _refuse("Hermite", f"degree must be at most {HIGHEST}, got {self.degree}")

    @property
    def integers(self) -> tuple[float, ...]:
        """The coefficients of He_n: whole numbers."""
        last, this = [0], [1]
        for n in range(self.degree):
            last, this = (
                this,
                [
                    up - n * down
                    for up, down in zip(
                        [0, *this], last + [0] * (len(this) + 1 - len(last)), strict=True
                    )
                ],
            )
        return tuple(map(float, this))


@traits.register(Hermite)
@traits.register(Polynomial)
def _(layer: Polynomial | Hermite) -> Traits:
    degree = layer.degree if isinstance(layer, Hermite) else len(layer.coefficients) - 1
    return Traits(reads_centred=False, steepness=float(degree))


def _check_coefficients(coefficients: Any, given: Any) -> None:
    numbers = isinstance(coefficients, tuple) and coefficients
    if not numbers or any(c is None or (known(c) and not math.isfinite(c)) for c in coefficients):
        _refuse("Polynomial", f"coefficients must be a tuple of finite numbers, got {given!r}")
    if len(coefficients) > HIGHEST + 1:
        _refuse("Polynomial", f"its degree must be at most {HIGHEST}, got {len(coefficients) - 1}")
    if all(known_zero(c) for c in coefficients[1:]):
        _refuse("Polynomial", f"it is constant, with coefficients {coefficients}")


def _refuse(name: str, reason: str) -> None:
    remedy = {
        "Hermite": "Take a lower degree",
        "Polynomial": "Write e.g. Polynomial((0.0, 1.0, 0.5)) for u + u²/2",
    }
    raise ArchitectureError(name, "", reason, remedy[name])
