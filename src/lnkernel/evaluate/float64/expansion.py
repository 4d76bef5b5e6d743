"""How many Hermite polynomials the activations of a network need for given inputs.

A kernel of given inputs is computed with as few as suffice. The longer the vectors before an activation,
the more it takes. Where the largest choice does not suffice, and where there are kinks, pairs are integrated.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import numpy as np

from lnkernel.arch import Node
from lnkernel.arch.compose import layers_of
from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.facts import needs_range, reads_centred_input
from lnkernel.arch.flow import rows_of
from lnkernel.arch.smooth import Smooth
from lnkernel.arch.traits import traits
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.forms import form_of
from lnkernel.calculus.positions import Positions
from lnkernel.calculus.quadrature import Grading, Integrated, Table, graded_quadrature
from lnkernel.calculus.rules import rule
from lnkernel.calculus.series import Expanded, expectations
from lnkernel.calculus.state import Mean, at_input
from lnkernel.errors import ActivationRangeError
from lnkernel.evaluate.float64 import geometry, pixels
from lnkernel.evaluate.float64.arithmetic import EagerFloat64, Float64
from lnkernel.evaluate.float64.choice import choice_for, longest_series
from lnkernel.evaluate.float64.functions import function_of
from lnkernel.evaluate.float64.hermite_features import SHORTEST, nodes_and_weights
from lnkernel.evaluate.float64.hermite_tables import Parity
from lnkernel.evaluate.float64.integration import prepare_integrals
from lnkernel.evaluate.float64.moments import moments_of, moments_rule
from lnkernel.evaluate.float64.own import Longest
from lnkernel.evaluate.float64.resolution import FARTHEST
from lnkernel.types import Array

FEW_IMAGES = 8
MOST_SHARED = 1024  # terms of a table that shorter vectors of other layers share
SKEW = 2.0**-10  # an error that shows what is known roughly
SHORT, COARSE = 2.0, 4  # vectors up to this length are followed with so many nodes fewer
SOME = 64  # inputs that are followed: by their lengths all the others lie between them


def has_series(arch: Node) -> bool:
    """Whether a network has activations that are computed in a way that depends on the inputs."""
    return any(map(_follows_lengths, _parts(arch)))


def sums_series(arch: Node) -> bool:
    """Whether some of them have no closed form, so that a pair that asks for care takes hundreds of terms."""
    return any(_follows_lengths(part) and form_of(part, Float64()) is None for part in _parts(arch))


def fixes_lengths(arch: Node) -> bool:
    """Whether the lengths before all of these activations are the same for all inputs, because a layer that fixes
    them stands before the first."""
    for layer in layers_of(arch):
        if traits(layer).fixes_length:
            return True
        if has_series(layer):
            return False
    return True


def _fixes_some_lengths(arch: Node) -> bool:
    """Whether somewhere, in a branch perhaps, all vectors have one length."""
    return any(traits(layer).fixes_length for _, layer, _ in rows_of(arch))


def count_series(arch: Node) -> int:
    """How many such activations a program computes one after the other. Those behind a layer that fixes the lengths are
    one function of the angle, and count only where there are no others."""
    count = 0
    for layer in layers_of(arch):
        if traits(layer).fixes_length:
            return max(count, 1) if has_series(arch) else 0
        count += sum(map(_follows_lengths, _parts(layer)))
    return count


def expand(arch: Node, *inputs: Array, finer: bool = False, few: bool = False) -> Node:
    """`arch`, with what each of its activations takes for these inputs (n, d); or `finer` than that. For `few` pairs
    equal activations share tables, which take longer than the pairs do."""
    if not (sums_series(arch) or _fixes_some_lengths(arch)):
        return arch  # closed forms serve all lengths, and tables only one
    parts = [part for part in _parts(arch) if _follows_lengths(part)]
    # as plain numbers, by which the choices are remembered
    plain = [jax.tree.map(float, part) for part in parts]
    lengths = _lengths(arch, np.concatenate([representatives(np.asarray(x)) for x in inputs]))
    most = _longest_by_kind(plain, lengths) if few else {}
    made = [_prepare(*each, most) for each in zip(parts, plain, lengths, strict=True)]
    if few:
        made = _with_shared_tables(plain, made)
    rest = iter(map(_finer, made) if finer else made)
    expanded: Node = jax.tree.map(
        lambda part: next(rest) if _follows_lengths(part) else part, arch, is_leaf=_follows_lengths
    )
    return expanded


def _longest_by_kind(plain: list[Any], lengths: list[Reach]) -> dict[Any, float]:
    """The largest length before any of the activations that are equal."""
    longest: dict[Any, float] = {}
    for kind, reach in zip(plain, lengths, strict=True):
        longest[kind] = max(longest.get(kind, 0.0), reach.length)
    return longest


def _with_shared_tables(plain: list[Any], made: list[Node]) -> list[Node]:
    """Series with tables for the longest vectors before any of the activations that are equal."""
    longest: dict[Any, float] = {}
    reaches = [_reach_of_table(layer) for layer in made]
    for kind, reach in zip(plain, reaches, strict=True):
        longest[kind] = max(longest.get(kind, 0.0), reach)
    return [
        dataclasses.replace(layer, longest=_halved(longest[kind], reach))
        if reach and isinstance(layer, Expanded)
        else layer
        for kind, reach, layer in zip(plain, reaches, made, strict=True)
    ]


def _reach_of_table(layer: Node) -> float:
    """Up to which length its table goes; 0 if there is none, or one of very many polynomials."""
    if isinstance(layer, Expanded) and layer.terms <= MOST_SHARED:
        return layer.longest or 0.0
    return 0.0


def _halved(longest: float, least: float) -> float:
    """`longest`, or a half of it, a quarter, ..., as long as it is not below the least that is needed."""
    return float(longest * 0.5 ** math.floor(math.log2(longest / least)))


class Reach(NamedTuple):
    """The largest length before an activation; whether it is that of all inputs; and whether of any inputs, to the last
    digits."""

    length: float
    of_all: bool
    of_any: bool


def _prepare(part: Any, plain: Elementwise, reach: Reach, longest: dict[Any, float]) -> Node:
    """The activation, ready for vectors of up to this length; some equal layers are ready for longer ones."""
    has_form, length = form_of(plain, Float64()) is not None, reach.length
    if has_form and not reach.of_all:  # a table is for one length
        return part
    choice = None if function_of(plain).kinks else choice_for(plain, length)
    if choice is not None:
        return Expanded(part, *choice)
    if has_form:
        return part
    try:
        # an error of a shared table is the same in all layers, and grows with what else it holds
        most = _halved(longest.get(plain, length), length) if length > 0 else length
        return prepare_integrals(part, plain, length, reach.of_any, most)
    except ActivationRangeError as problem:
        most = max(problem.most, longest_series(plain, length))
        raise ActivationRangeError(type(plain).__name__, length, most) from None


def _finer(made: Any) -> Node:
    """Without tables, with more terms or panels."""
    if isinstance(made, Expanded):
        return dataclasses.replace(made, terms=2 * made.terms, degrees=None, longest=None)
    if isinstance(made, Integrated):
        return dataclasses.replace(made, table=(), grading=made.grading._replace(fineness=2))
    return made


def _follows_lengths(part: Any) -> bool:
    return isinstance(part, Elementwise) and traits(part).follows_lengths


def _parts(arch: Node) -> list[Any]:
    """The parts in the order of the data, which is that of the tree."""
    return jax.tree.leaves(arch, is_leaf=_follows_lengths)


def representatives(x: np.ndarray, count: int = SOME) -> np.ndarray:
    """Some inputs, from the shortest to the longest; of images, those of one length at all positions, and some."""
    if x.ndim > 2:
        lengths = representatives(x.reshape(-1, x.shape[-1]), count)
        even = np.broadcast_to(
            lengths.reshape(count, *(1,) * (x.ndim - 2), -1), (count, *x.shape[1:])
        )
        longest = np.argsort(np.abs(x).reshape(len(x), -1).max(axis=1))[-FEW_IMAGES:]
        return np.concatenate([even, x[longest]])
    largest = np.abs(x).max(axis=1)
    scaled = x / np.where(largest > 0, largest, 1.0)[:, None]  # no square overflows
    order = np.argsort(largest * np.linalg.norm(scaled, axis=1), kind="stable")
    return np.asarray(x[order[np.linspace(0, len(x) - 1, count).round().astype(int)]])


def are_live(*inputs: Array) -> bool:
    """Whether none of these points (n, ..., d) is the zero vector."""
    return all(bool((np.asarray(x) != 0).any(axis=-1).all()) for x in inputs)


def _lengths(arch: Node, x: np.ndarray) -> list[Reach]:
    """How long the vectors before each of these activations are, in the order of the data."""
    num = _follow_all(arch, x, 0.0)
    if not (num.rough and any(reach.of_any for reach in num.found)):
        return num.found
    skewed = _follow_all(arch, x, SKEW)
    return [
        reach._replace(of_any=reach.of_any and reach.length == other.length)
        for reach, other in zip(num.found, skewed.found, strict=True)
    ]


def _follow_all(arch: Node, x: np.ndarray, skew: float) -> Probe:
    with jax.enable_x64(True), np.errstate(all="ignore"):
        num = Probe(needs_range(arch), skew)
        if x.ndim > 2:
            at = Positions(x.shape[1:-1], False, Longest())
            both = [pixels.prepare(x, centre, num.with_range) for centre in (False, True)]
            if are_live(x):
                both[0] = both[0]._replace(live=None)
            raw, centred = (pixels.of_same(each, at, True) for each in both)
            rule(arch, at_input(raw, centred, at), num)
            return num
        all_live = are_live(x)
        raw = geometry.itself(geometry.prepare(x, False, num.with_range), all_live)
        centred = raw
        if reads_centred_input(arch):
            centred = geometry.itself(geometry.prepare(x, True, num.with_range), all_live=False)
        rule(arch, at_input(raw, centred), num)
    return num


class Probe(EagerFloat64):
    """float64 that follows single inputs, and notes how long they are before each activation.

    Most activations are followed roughly, and `skew` is a relative error of theirs on purpose: what it changes is not
    known to the last digits."""

    def __init__(self, with_range: bool, skew: float = 0.0):
        super().__init__(with_range)
        self.found: list[Reach] = []
        self.skew, self.rough = 1.0 + skew, False


@graded_quadrature.register
def _(num: Probe, layer: Elementwise, cov: Covariance, grading: Grading, table: Table) -> Dual:
    return _follow(num, layer, cov)


@expectations.register
def _(
    num: Probe,
    layer: Smooth,
    cov: Covariance,
    terms: int,
    degrees: Parity | None = None,
    longest: float | None = None,
) -> Dual:
    return _follow(num, layer, cov)


def _follow(num: Probe, layer: Elementwise, cov: Covariance) -> Dual:
    """Lengths and means, roughly."""
    r = np.maximum(num.sqrt(cov.first.q), SHORTEST)
    live = r[r > SHORTEST] if np.ndim(r) else r
    of_all = bool(np.size(live) and np.ptp(live) == 0)
    num.found.append(Reach(float(np.max(r)), of_all, np.ndim(r) == 0))
    if np.ndim(r) == 0 and moments_rule(layer) is not None:
        found = moments_of(layer, float(r))
        return _of_lengths(num, layer, cov, found.square, found.mean, found.variance)
    num.rough = True
    x, weights = nodes_and_weights(2)
    phi = function_of(layer)
    # of a smooth function of short vectors every fourth node tells enough
    step = COARSE if not phi.kinks and np.max(r) <= SHORT else 1
    x, density = x[::step], step * weights[::step, 0]
    # longer ones are refused, but by closed forms
    values = phi(np.minimum(r, FARTHEST)[..., None] * x)
    square, mean = num.skew * (np.square(values) @ density), num.skew * (values @ density)
    variance = np.maximum(square - np.square(mean), 1e-300)
    return _of_lengths(num, layer, cov, square, mean, variance)


def _of_lengths(
    num: Probe, layer: Elementwise, cov: Covariance, square: Any, mean: Any, variance: Any
) -> Dual:
    """The dual, as far as lengths tell it."""
    live = cov.first.live
    stays = live if function_of(layer).vanishes else True
    length, rest = (
        Length(q, alive).masked(num, q) for q, alive in ((square, stays), (variance, live))
    )
    total = Covariance(length, length, cov.w, cov.z, cov.c, cov.e)
    share = mean / np.sqrt(square)
    return Dual(
        total,
        Mean(share, share, cov.e),
        slope=1.0,
        euler=1.0,
        derivative=lambda: (1.0,),
        centred=Covariance(rest, rest, cov.w, cov.z, cov.c, cov.e),
    )
