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
from functools import lru_cache, partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from lnkernel.arch.piecewise import Elu, Selu
from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.closed_pairs import (
    NO_MOMENTS,
    ClosedPair,
    Expectations,
    Own,
    closed_pair,
)
from lnkernel.evaluate.float64.elementary import polynomial

# How many directions suffice up to which length: so many leave errors of a few 1e-15
COUNTS = {1.0: 16, 2.0: 20, 3.0: 24, 6.0: 32, 12.0: 48}
FEW = 512  # pairs, for which all nodes are one operation
LONGEST = 12.0
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
    of_pair = partial(_of_pair, alpha, scale)

    def at_one_length(length: float, w: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        one = Own(np.asarray(length), NO_MOMENTS, ())
        found = of_pair(one, one, w, z)
        slopes, euler = found.slopes, found.euler()
        return (slopes, euler) if found.sure else (np.nan * slopes, np.nan * euler)

    return ClosedPair(_of_input, of_pair, at_one_length)


def _of_input(length: Any) -> tuple[Any, ...]:
    return ()


def mills_slope(c: Any) -> Any:
    """D(c) for c >= 0."""
    inverse = 1 / (c + 4.0)
    return inverse * polynomial(SLOPE, (c - 4.0) * inverse)


def _of_pair(
    alpha: Any, scale: float, one: Own, two: Own, w: Any, z: Any, longest: float = LONGEST
) -> Expectations:
    xp = namespace.of(w, alpha)
    r1, r2 = one.length, two.length
    angle = 2 * xp.arctan2(xp.sqrt(w), xp.sqrt(z))
    rest = math.pi - angle
    right = (r1 * r2) * (2 * xp.sqrt(w * z) + rest * (z - w))
    longest = min(longest, LONGEST)
    sums = _sum_over_nodes(xp, r1, r2, angle, rest, longest)
    below, below_slopes, mixed, mixed_slopes = sums

    def euler() -> Any:
        far, near = _sum_over_nodes(xp, r1, r2, angle, rest, longest, with_euler=True)
        return factor * (right + alpha * (alpha * rest * far - angle * near))

    factor = scale * scale / (2 * math.pi)
    return Expectations(
        factor * (right + alpha * (alpha * rest * below - angle * mixed)),
        factor * (rest + alpha * (alpha * rest * below_slopes + angle * mixed_slopes)),
        euler,
        # of a short and a much longer input the first integral cancels
        (NARROW * r1 <= r2)
        & (NARROW * r2 <= r1)
        & (r1 <= longest)
        & (r2 <= longest)
        & (r1 > SHORTEST)
        & (r2 > SHORTEST),
    )


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


def _at(
    xp: Any, r1: Any, r2: Any, angle: Any, rest: Any, with_euler: bool, node: Any, weight: Any
) -> tuple[Any, ...]:
    """What one direction adds to the integrals over the wedges: both negative, and of different signs."""
    sines = [(xp.sin(width * node), xp.sin(width * (1 - node))) for width in (rest, angle)]
    (a, b), (c, d) = ((r1 * s, r2 * t) for s, t in sines)
    # of different signs there are two wedges: in one c is of the negative number, in the other d
    if with_euler:
        near = third_integral(c) + third_integral(d)
        return weight * (a * b * third_integral(a + b)), weight * (c * d * near)
    both, of_c, of_d = map(_both, (a + b, c, d))
    below = (a + b) * (a + b) * both[0] - a * a * mills_slope(a) - b * b * mills_slope(b)
    mixed = c * d * ((of_d[0] + of_d[1]) + (of_c[0] + of_c[1]))
    return weight * below, weight * both[1], weight * mixed, weight * (of_c[1] + of_d[1])


def _sum_over_nodes(
    xp: Any, r1: Any, r2: Any, angle: Any, rest: Any, longest: float, with_euler: bool = False
) -> tuple[Any, ...]:
    if xp is np and np.size(r1) and np.size(r2):
        longest = min(longest, max(np.max(r1), np.max(r2)))  # what is longer is not sure
    nodes, weights = _rule(next(count for most, count in COUNTS.items() if longest <= most))
    if xp is np and np.size(angle) <= FEW:
        r1, r2, angle, rest = (np.asarray(x)[..., None] for x in (r1, r2, angle, rest))
        return tuple(
            term.sum(axis=-1) for term in _at(xp, r1, r2, angle, rest, with_euler, nodes, weights)
        )
    at = partial(_at, xp, r1, r2, angle, rest, with_euler)
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


@lru_cache(maxsize=len(COUNTS))
def _rule(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre's nodes and weights for (0, 1)."""
    x, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 * x + 0.5, 0.5 * weights
