r"""ELU and SELU of pairs in closed form but for one integral, over the direction of a pair.

In polar coordinates u and v are R times functions of the direction, and both keep their signs in four wedges: that
of two positive numbers and that of two negative ones have the angle $\pi - \theta$, the others $\theta$, where
$\theta$ is the angle of the pair. In a wedge of the angle $\Omega$ the sizes of u and v are $aR$ and $bR$ with
$a = r_1\sin\psi$ and $b = r_2\sin(\Omega - \psi)$. Over R the integrals are known. With Mills' ratio $m$,

    I1(c) = ∫ R e^(-R²/2 - cR) dR = 1 - c m(c),   I2 = ∫ R² ... = m - c I1,   I3 = ∫ R³ ... = 2 I1 - c I2,

and with $D(c) = (m(0) - m(c))/c$, of which nothing cancels at short inputs,

    ∫ R e^(-R²/2) (1 - e^(-aR))(1 - e^(-bR)) dR = (a+b)² D(a+b) - a² D(a) - b² D(b),
    ∫ R e^(-R²/2) R (1 - e^(-bR)) dR            = b (D(b) + I1(b)).

Where both are positive $E\,uv = r_1 r_2(\sin\theta + (\pi-\theta)\cos\theta)/2\pi$. Nothing grows with the lengths, as
exponentials of their squares would; the longer the inputs, the more nodes the directions take.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from lnkernel.arch.piecewise import Elu, Selu
from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.closed_pairs import (
    ClosedPair,
    Expectations,
    Own,
    closed_pair,
)
from lnkernel.evaluate.float64.elementary import polynomial

# How many directions suffice up to which length, and how much denser they are at the ends of a wedge, where much
# changes for long inputs: errors of a few 1e-15 are left
DIRECTIONS = {2.0: (20, 0.0), 6.0: (24, 1.0), 24.0: (32, 1.5), 64.0: (40, 2.0), 128.0: (48, 2.0)}
FEW = 512  # pairs, for which all nodes are one operation
LONGEST = max(DIRECTIONS)
SHORTEST = 1e-70
NARROW = 2.0**-8  # the least ratio of lengths
# (c + 4) D(c) in powers of (c - 4)/(c + 4), to 6e-17: the Chebyshev series, whose terms fall like 5^-k
SLOPE = (
    *(2.0333235088038792, -1.1790760152717623, 0.5555308988498694, -0.19604326938336292),
    *(0.04131008805566432, 0.0012629652370667456, -0.003807504133843498, 0.0006049664065158075),
    *(0.00033343635889641616, -0.00010505797097510248, -3.856353440260488e-05),
    *(1.534424199491265e-05, 6.230574508951938e-06, -2.0721305252464156e-06),
    *(-1.243956857678796e-06, 2.1027862986395413e-07, 2.6110539264492104e-07),
    *(5.049756989821516e-09, -5.067086598885586e-08, -1.0320710391119793e-08),
    *(8.031245287947305e-09, 2.8564648499732785e-09, -8.698072570414596e-10),
    *(-3.3534317841254926e-10, 4.407101525514054e-11),
)
# (1 + c/4)^2 I1(c) in powers of the same, to 8e-16 of its value: by D it would cancel at long inputs
FIRST = (
    *(0.21356187338302926, -0.31177255821094635, 0.26961572209986967, -0.15473318132771433),
    *(0.05321631661643472, -0.003816808344472004, -0.005604441033241263, 0.0018768055179461465),
    *(0.0005138514799775119, -0.0003590536366057374, -6.385370181091453e-05, 6.472370447562934e-05),
    *(1.3517415944311821e-05, -1.1603518339850312e-05, -3.882489435374919e-06),
    *(1.8786570879077163e-06, 1.141486187729759e-06, -1.9396389303925358e-07),
    *(-3.0104922113425244e-07, -2.377323529717232e-08, 6.5038261379223e-08),
    *(1.942459654319978e-08, -1.0067087082963904e-08, -5.110631104205927e-09),
    *(8.210911634495595e-10, 5.817314854902305e-10),
)
# (1 + c/3)^4 I3(c) in powers of (c - 3)/(c + 3): by I1 and I2 it would cancel at long inputs
THIRD = (
    *(0.5559879429805017, -0.988325539526455, 0.6191289641226739, 0.014912943148756417),
    *(-0.17710245762237878, 0.010490758664898259, 0.05054856294428938, 0.002412348335186891),
    *(-0.014401494685670854, -0.004129590731619972, 0.0031864309231628353, 0.002340798397245612),
    *(
        -0.0001251985473224541,
        -0.0007994970254521585,
        -0.00031495050344323484,
        0.00011346713911029287,
    ),
    *(
        0.00016217181620944456,
        4.778262593773231e-05,
        -2.859952200873807e-05,
        -3.353946979693666e-05,
    ),
    *(
        -1.0963699131826169e-05,
        5.7350783799063845e-06,
        8.787974600344539e-06,
        3.068366764050397e-06,
    ),
    *(
        -2.2643381720046033e-06,
        -2.253717253882162e-06,
        -1.4161405878946247e-08,
        6.269096076477045e-07,
    ),
    *(1.4506452169931593e-07, -7.115827185222077e-08, -2.5709388458295392e-08),
)


@closed_pair.register
def _(layer: Elu) -> ClosedPair:
    return _form(layer.alpha, 1.0)


@closed_pair.register
def _(layer: Selu) -> ClosedPair:
    return _form(layer.alpha, layer.scale)


def _form(alpha: Any, scale: float) -> ClosedPair:
    return ClosedPair(
        _of_input, partial(_of_pair, alpha, scale), partial(_at_one_length, alpha, scale)
    )


def _of_input(length: Any) -> tuple[Any, ...]:
    return ()


def mills_slope(c: Any) -> Any:
    """D(c) for c >= 0."""
    inverse = 1 / (c + 4.0)
    return inverse * polynomial(SLOPE, (c - 4.0) * inverse)


class _Wedges(NamedTuple):
    """A pair by the angles of the wedges in which both have one sign, and of those in which they have not."""

    r1: Any
    r2: Any
    alike: Any
    unlike: Any

    @classmethod
    def of(cls, r1: Any, r2: Any, w: Any, z: Any) -> _Wedges:
        xp = namespace.of(w, z)
        unlike = 2 * xp.arctan2(xp.sqrt(w), xp.sqrt(z))
        return cls(r1, r2, math.pi - unlike, unlike)

    def positive(self, w: Any, z: Any) -> Any:
        """2 pi E uv where both are positive."""
        sine = 2 * namespace.of(w, z).sqrt(w * z)
        return (self.r1 * self.r2) * (sine + self.alike * (z - w))


def _of_pair(
    alpha: Any, scale: float, one: Own, two: Own, w: Any, z: Any, longest: float
) -> Expectations:
    pair, longest = _Wedges.of(one.length, two.length, w, z), min(longest, LONGEST)
    below, mixed, both, of_one = _sum_over_nodes(pair, longest, _all_terms, w, alpha)
    factor, (r1, r2) = scale * scale / (2 * math.pi), pair[:2]
    product = pair.positive(w, z) + alpha * (alpha * pair.alike * below - pair.unlike * mixed)
    slopes = pair.alike + alpha * (alpha * pair.alike * both + pair.unlike * of_one)
    return Expectations(
        factor * product,
        factor * slopes,
        lambda: factor * _euler_sums(alpha, pair, longest, w, z),
        # of a short and a much longer input the first integral cancels
        (NARROW * r1 <= r2)
        & (NARROW * r2 <= r1)
        & (r1 <= longest)
        & (r2 <= longest)
        & (r1 > SHORTEST)
        & (r2 > SHORTEST),
    )


def _at_one_length(
    alpha: Any, scale: float, length: float, w: np.ndarray, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    if length > LONGEST:
        return np.full(w.shape, np.nan), np.full(w.shape, np.nan)
    pair, factor = _Wedges.of(length, length, w, z), scale * scale / (2 * math.pi)
    both, of_one = _sum_over_nodes(pair, length, _slope_terms, w, alpha)
    sums = pair.alike + alpha * (alpha * pair.alike * both + pair.unlike * of_one)
    return factor * sums, factor * _euler_sums(alpha, pair, length, w, z)


def _euler_sums(alpha: Any, pair: _Wedges, longest: float, w: Any, z: Any) -> Any:
    far, near = _sum_over_nodes(pair, longest, _euler_terms, w, alpha)
    return pair.positive(w, z) + alpha * (alpha * pair.alike * far - pair.unlike * near)


def _both(c: Any) -> tuple[Any, Any]:
    """D and I1."""
    return mills_slope(c), first_integral(c)


def first_integral(c: Any) -> Any:
    """I1(c) for c >= 0."""
    share = 4.0 / (c + 4.0)
    return share * share * polynomial(FIRST, 1 - 2 * share)


def third_integral(c: Any) -> Any:
    """I3(c) for c >= 0."""
    share = 3.0 / (c + 3.0)
    square = share * share
    return square * square * polynomial(THIRD, 1 - 2 * share)


class _Sizes(NamedTuple):
    """In one direction: where both are negative, and where one of them is, in one wedge the one and in the other the
    other."""

    a: Any
    b: Any
    c: Any
    d: Any


Terms = Callable[[_Sizes], tuple[Any, ...]]


def _all_terms(at: _Sizes) -> tuple[Any, ...]:
    """Of the products, and of the slopes."""
    a, b, c, d = at
    both, of_c, of_d = map(_both, (a + b, c, d))
    below = (a + b) * (a + b) * both[0] - a * a * mills_slope(a) - b * b * mills_slope(b)
    mixed = c * d * ((of_d[0] + of_d[1]) + (of_c[0] + of_c[1]))
    return below, mixed, both[1], of_c[1] + of_d[1]


def _slope_terms(at: _Sizes) -> tuple[Any, ...]:
    return first_integral(at.a + at.b), first_integral(at.c) + first_integral(at.d)


def _euler_terms(at: _Sizes) -> tuple[Any, ...]:
    a, b, c, d = at
    return a * b * third_integral(a + b), c * d * (third_integral(c) + third_integral(d))


def _at(xp: Any, pair: _Wedges, terms: Terms, node: Any, weight: Any) -> tuple[Any, ...]:
    """What one direction adds to the integrals over the wedges."""
    widths = pair.alike, pair.unlike
    sines = [(xp.sin(width * node), xp.sin(width * (1 - node))) for width in widths]
    found = terms(
        _Sizes(*(r * s for pair_of in sines for r, s in zip(pair[:2], pair_of, strict=True)))
    )
    return tuple(weight * term for term in found)


def _sum_over_nodes(pair: _Wedges, longest: float, terms: Terms, *numbers: Any) -> tuple[Any, ...]:
    xp = namespace.of(*numbers)
    if xp is np and np.size(pair.r1) and np.size(pair.r2):
        longest = min(longest, max(np.max(pair.r1), np.max(pair.r2)))  # what is longer is not sure
    nodes, weights = _rule(*next(rule for most, rule in DIRECTIONS.items() if longest <= most))
    if xp is np and np.size(pair.alike) <= FEW:
        spread = _Wedges(*(np.asarray(x)[..., None] for x in pair))
        return tuple(term.sum(axis=-1) for term in _at(xp, spread, terms, nodes, weights))
    at = partial(_at, xp, pair, terms)
    totals = at(nodes[0], weights[0])
    if xp is np:
        for node, weight in zip(nodes[1:], weights[1:], strict=True):
            for total, term in zip(totals, at(node, weight), strict=True):
                total += term
        return totals
    count, all_nodes, all_weights = len(nodes), jnp.asarray(nodes), jnp.asarray(weights)

    def step(number: Any, sums: tuple[Any, ...]) -> tuple[Any, ...]:
        terms = at(all_nodes[number], all_weights[number])
        return tuple(total + term for total, term in zip(sums, terms, strict=True))

    found: tuple[Any, ...] = lax.fori_loop(1, count, step, totals)
    return found


@lru_cache(maxsize=len(DIRECTIONS))
def _rule(count: int, dense: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre's nodes and weights for (0, 1), moved to the ends by a hyperbolic tangent."""
    x, weights = np.polynomial.legendre.leggauss(count)
    if dense:
        weights = weights * dense / (np.cosh(dense * x) ** 2 * np.tanh(dense))
        x = np.tanh(dense * x) / np.tanh(dense)
    return 0.5 * x + 0.5, 0.5 * weights
