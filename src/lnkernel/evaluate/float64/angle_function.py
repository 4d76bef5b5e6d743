r"""All layers behind a normalisation as one function of the angle.

Where a norm without eps has given all vectors one length, only the angle is left: $K$ is a function of it, and
$\Theta$ behind is $A\,t + B$, with the NTK $t$ that arrives there. Behind smooth activations these are polynomials
in $\rho$ to all digits; with kinks they are analytic in $\sqrt m$, $m = \min(w, z)$, for acute and for obtuse
angles. So a network of any depth costs as much for each pair as one activation, and all of them share one program.
The coefficients come from the rules themselves, at Chebyshev points, and are compared with them in between: where they
do not agree to the last digits (an activation of degree 0.6 has other powers), there is no such function.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.chebyshev import cheb2poly

from lnkernel.arch import Node, Serial
from lnkernel.arch.compose import layers_of
from lnkernel.arch.facts import needs_range, needs_sharp_lengths
from lnkernel.arch.node import node, static
from lnkernel.arch.traits import traits
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.rules import rule
from lnkernel.calculus.state import State, at_input
from lnkernel.check.plain import known_zero
from lnkernel.evaluate.float64.arithmetic import EagerFloat64
from lnkernel.evaluate.float64.elementary import chebyshev, half_root, polynomial
from lnkernel.evaluate.float64.precise import as_precise, plain
from lnkernel.types import Array

Coefficients = tuple[float, ...]
Curve = tuple[Coefficients, ...]  # in rho; or in sqrt(m), for acute and for obtuse angles


class Shape(NamedTuple):
    """The shape of a curve: there are few, so that few programs are compiled."""

    coefficients: int
    pieces: int
    powers: bool  # of the variable, which are cheap; or Chebyshev's polynomials, which are safe where there are many


SHAPES = (  # in the order of their cost
    Shape(32, 1, True),
    Shape(44, 1, True),
    Shape(24, 2, True),
    Shape(26, 2, True),
    Shape(30, 2, True),
    Shape(48, 1, False),
    Shape(36, 2, True),
    Shape(64, 1, False),
    Shape(44, 2, False),
    Shape(64, 2, False),
    Shape(96, 2, False),
)
END = 0.5**0.5  # of the range of sqrt(m)
NODES = 112
AGREEMENT = 8e-16  # of curve and rules, relative to the largest value: a few roundings of either
STEEPEST = 2.5  # slope of a curve beside its largest value, up to which it is gentle
SHALLOW = 20  # layers; the roundings of more of them add up
LONG = np.longdouble  # a few digits more, where there are any
PI = np.arccos(LONG(-1))
NOT_ZERO = 1e-290  # stands for a coefficient that is exactly 0, which would be another structure


@node
class AngleFunction(Node):
    """Takes the place of all layers behind a normalisation; only the kernels can be asked for behind it."""

    nngp: Curve = ()
    ntk: Curve = ()  # B; or all of it, if t is the cosine itself, or 0
    carried: Curve = ()  # A
    powers: bool = static(default=True)


@rule.register
def _(layer: AngleFunction, state: State, num: Arithmetic) -> State:
    cov = state.total

    def along(curve: Curve) -> Array:
        return _evaluate(curve, layer.powers, cov, num)

    t = along(layer.ntk) if layer.ntk else 0.0
    if layer.carried:
        t = t + along(layer.carried) * state.t
    unit = Length(1.0)
    product = along(layer.nngp) if layer.nngp else cov.c
    made = Covariance(unit, unit, cov.w, cov.z, product, 0.0)
    return State(made, made, t=t)


def _evaluate(curve: Curve, powers: bool, cov: Covariance, num: Arithmetic) -> Array:
    summed = polynomial if powers else chebyshev
    if len(curve) == 1:
        return summed(curve[0], cov.c)
    t = half_root(num.where(cov.acute, cov.w, cov.z)) * (4 / END) - 1
    near, far = (summed(coefficients, t) for coefficients in curve)
    return num.where(cov.acute, near, far)


# ---------------------------------------------------------------- from a network to its function


def with_angle_function(arch: Node, ntk: bool = True, nngp: bool = True) -> Serial | None:
    """The network, with plain numbers as hyperparameters, and one function in place of all layers behind its first
    normalisation; None if it has none, or if that is not exact enough. For K and Θ, or one of them alone."""
    layers = layers_of(arch)
    count = next((k for k, layer in enumerate(layers, 1) if traits(layer).fixes_length), 0)
    if not 0 < count < len(layers):
        return None
    before, behind = Serial(layers[:count]), Serial(layers[count:])
    with np.errstate(all="ignore"):
        state = _state_behind(before)
        if state is None:
            return None
        num = EagerFloat64(needs_range(arch), sharp=needs_sharp_lengths(arch))
        values = _curves_through(behind, state, num)[: None if ntk else 1]
        agreement = AGREEMENT * max(1.0, len(behind.layers) / SHALLOW)
        for shape in SHAPES:
            curves = [_fit(shape, each, agreement) for each in values]
            found = [curve for curve in curves if curve is not None]
            if len(found) == len(curves):
                product, theta, carried, *_ = [*found, (), ()]
                made = AngleFunction(product if nngp else (), theta, carried, shape.powers)
                return Serial((*before.layers, made))
    return None


def is_gentle(arch: Serial) -> bool:
    """Whether such a network makes little of a rounding error of the cosine, for all pairs alike: it is one polynomial
    in it, of no large slope, and nothing but linear layers stand before it. Then no pair asks for more care."""
    *before, _norm, last = arch.layers
    assert isinstance(last, AngleFunction)
    if last.carried or not all(traits(layer).is_linear for layer in before):
        return False
    return all(_is_gentle(curve, last.powers) for curve in (last.nngp, last.ntk) if curve)


def _is_gentle(curve: Curve, powers: bool) -> bool:
    if len(curve) > 1 or not powers:
        return False
    function, places = Polynomial(curve[0]), _angles().c
    value, slope = (np.max(np.abs(f(places))) for f in (function, function.deriv()))
    return bool(slope <= STEEPEST * value)


def _state_behind(before: Serial) -> State | None:
    """The state of some pairs there; None unless it is a function of the angle and of t."""
    num = EagerFloat64()
    w, first, second = np.array([0.25, 0.75]), np.array([1.0, 4.0]), np.array([9.0, 1.0])
    e = num.length_difference(first, second)
    lengths = Length(as_precise(first)), Length(as_precise(second))
    raw = Covariance(lengths[0], lengths[1], w, 1 - w, 1 - 2 * w, e)
    state = rule(before, at_input(raw, raw), num)
    lengths = state.total.first, state.total.second
    one_length = all(length.live is True and np.ndim(plain(length.q)) == 0 for length in lengths)
    alone = state.centred is state.total and state.mean is None
    return state if one_length and alone and (state.o is None or np.ndim(state.o) == 0) else None


@lru_cache(maxsize=1)
def _angles() -> Covariance:
    """Chebyshev points in rho, in sqrt(m) on both sides, and points in between, NODES of each but the last."""
    places, other = (PI / (2 * NODES) * k for k in (_odd(), 2 * np.arange(1, NODES)))
    m = (1 + np.cos(places)) ** 2 / 8
    w = np.concatenate([np.sin(places / 2) ** 2, m, 1 - m, np.sin(other / 2) ** 2])
    z = np.concatenate([np.cos(places / 2) ** 2, 1 - m, m, np.cos(other / 2) ** 2])
    w, z, c = (x.astype(np.float64) for x in (w, z, z - w))
    unit = Length(1.0)
    return Covariance(unit, unit, w, z, c, 0.0)


def _odd() -> np.ndarray:
    return 2 * np.arange(NODES) + 1


def _curves_through(behind: Serial, state: State, num: EagerFloat64) -> list[np.ndarray]:
    """K, B and, if it is needed, A at all `_angles`, computed with all care."""
    cov = _angles().with_lengths(state.total.first, state.total.first, 0.0)

    def kernels(t: Number) -> list[np.ndarray]:
        end = rule(behind, replace(state, total=cov, centred=cov, t=t), num).kernels(num)
        return [np.broadcast_to(plain(kernel), cov.w.shape) for kernel in end]

    if state.t is state.total.c:
        return kernels(cov.c)
    nngp, ntk = kernels(0.0)
    return [nngp, ntk] if known_zero(state.t) else [nngp, ntk, kernels(1.0)[1] - ntk]


def _fit(shape: Shape, values: np.ndarray, agreement: float) -> Curve | None:
    """The curve of this shape through the values at all `_angles`, if it agrees with all of them."""
    whole, near, far, _ = np.split(values, NODES * np.arange(1, 4))
    largest = np.max(np.abs(values))
    curve = []
    for part in [whole] if shape.pieces == 1 else [near, far]:
        series = (_waves() * part).sum(axis=1)
        if np.max(np.abs(series[shape.coefficients :])) > agreement * largest:
            return None
        numbers = series[: shape.coefficients]
        numbers = _to_powers(len(numbers)) @ numbers if shape.powers else numbers
        curve.append(tuple(float(number) or NOT_ZERO for number in numbers))
    found = _evaluate(tuple(curve), shape.powers, _angles(), EagerFloat64())
    agrees = np.max(np.abs(found - values)) <= agreement * largest
    return tuple(curve) if agrees else None


@lru_cache(maxsize=len(SHAPES))
def _to_powers(count: int) -> np.ndarray:
    """Takes a Chebyshev series to the coefficients of the powers; they are whole numbers."""
    columns = [cheb2poly(np.eye(count)[k]) for k in range(count)]
    return np.stack([np.pad(c, (0, count - len(c))) for c in columns], axis=1).astype(LONG)


@lru_cache(maxsize=1)
def _waves() -> np.ndarray:
    """Takes values at Chebyshev points to their series. Whole multiples of the angle are reduced exactly."""
    turns = np.arange(NODES)[:, None] * _odd() % (4 * NODES)
    waves = np.cos(PI / (2 * NODES) * turns) * (2 / LONG(NODES))
    waves[0] /= 2
    return waves
