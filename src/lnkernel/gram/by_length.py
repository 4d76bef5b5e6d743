r"""Networks prepared for the lengths of their inputs, and kept for all inputs of such lengths.

How a smooth activation is computed depends on the largest length before it. But for a norm of the raw input,
everything that happens to a single input is a function of its length; so what was found for a range of lengths holds
for all data within it.

For a range of moderate lengths such a network is often *gentle*: a rounding error of the cosine between two inputs,
the same for small angles as for large ones, stays one. Then no pair asks for more care than the others. Its kernels
are positive, sums of $a_n(r_1)\,a_n(r_2)\,\rho^n$, so that their slope in $\rho$ is, beside the root of the
diagonals, at most that of equal inputs at $\rho = 1$ (Cauchy-Schwarz).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lnkernel.arch import Node
from lnkernel.arch.compose import layers_of
from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.traits import traits
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.evaluate.float64.expansion import SOME, expand
from lnkernel.evaluate.float64.functions import function_of
from lnkernel.evaluate.float64.gaps import NOTHING_DELICATE
from lnkernel.evaluate.float64.precise import as_precise
from lnkernel.gram import pairs
from lnkernel.gram.network import Network
from lnkernel.gram.program import Dissected, dissect_numbers, select
from lnkernel.gram.structure import Structure, assemble
from lnkernel.types import Array

STEPS = 64  # lengths are rounded to powers of 2^(1/64)
MODERATE = 1 << 10  # steps: longer or shorter inputs are prepared for as they are
STEEPEST = 4.0  # slope beside the kernel: the cosine's error, some 2e-16, then stays below 1e-15
NEAR = 2.0**-20  # w of a pair that shows the slope at equal inputs


class Span(NamedTuple):
    """The least and the largest length of inputs, as powers of 2^(1/STEPS)."""

    shortest: int
    longest: int

    def lengths(self, count: int) -> np.ndarray:
        """Some lengths, from the one to the other."""
        return np.linspace(2.0 ** (self.shortest / STEPS), 2.0 ** (self.longest / STEPS), count)


def dissect_for(
    parts: Dissected, which: tuple[str, ...], *inputs: Array, many: bool = True, few: bool = False
) -> Dissected:
    """The parts of a network with what its activations take for these inputs (n, ..., d). Whether it is gentle is asked
    only where there are so `many` pairs that it pays; where they are `few`, layers share tables."""
    span = None if parts.needs.centred_input or parts.needs.positions else _span_of(inputs)
    if span is None:
        return dissect_numbers(expand(_arch(parts), *inputs))
    key = _Key(parts.structure, parts.varying.tobytes(), which, parts)
    return _dissect_within(key, span, many, few)


def _arch(parts: Dissected) -> Node:
    made: Node = assemble(parts.structure, parts.varying.tolist())
    return made


def _span_of(inputs: tuple[Array, ...]) -> Span | None:
    """Lengths of all inputs; None where one is 0, very short or very long."""
    with np.errstate(all="ignore"):
        squares = [np.einsum("nd,nd->n", x, x) / x.shape[1] for x in map(np.asarray, inputs)]
    return span_of_squares(*squares)


def span_of_squares(*squares: np.ndarray) -> Span | None:
    """From the mean squares of the inputs; None likewise."""
    least, most = min(float(s.min()) for s in squares), max(float(s.max()) for s in squares)
    if not 0.0 < least <= most < math.inf:
        return None
    half = STEPS / 2  # of squares
    span = Span(math.floor(half * math.log2(least)), math.ceil(half * math.log2(most)))
    return span if span.shortest > -MODERATE and span.longest < MODERATE else None


@dataclass(frozen=True)
class _Key:
    """A network by its structure and its numbers."""

    structure: Structure
    numbers: bytes
    which: tuple[str, ...]
    parts: Dissected = field(compare=False)


@lru_cache(maxsize=256)
def _dissect_within(key: _Key, span: Span, many: bool, few: bool) -> Dissected:
    whole = _arch(key.parts)
    arch = expand(whole, span.lengths(SOME)[:, None], few=few)
    made = dissect_numbers(arch)
    if not many or made.needs.compiler or not all(map(_is_analytic, layers_of(whole))):
        return made
    plain = made.needs._replace(delicate=NOTHING_DELICATE, sharp_lengths=False)
    gentle = _steepness(Network(arch, plain), key.which, span.lengths(SOME)) <= STEEPEST
    return made._replace(needs=made.needs._replace(gentle=gentle))


def _is_analytic(layer: Node) -> bool:
    """Whether its kernels are, at equal inputs too, so that a slope there tells what is around."""
    if isinstance(layer, Elementwise) and traits(layer).follows_lengths:
        return not function_of(layer).kinks
    return traits(layer).is_linear


def _steepness(net: Network, which: tuple[str, ...], lengths: np.ndarray) -> float:
    """The largest slope of the kernels in the cosine, at equal inputs of these lengths, beside the kernels."""
    length = Length(as_precise(np.square(np.concatenate([lengths, lengths]))))
    w = np.repeat([0.0, NEAR], len(lengths))
    pair = Covariance(length, length, w, 1 - w, 1 - 2 * w, 0.0 * w)
    with np.errstate(all="ignore"):
        kernels = np.array(select(pairs.through(net, pair, None, quick=True), which))
    equal, near = np.split(kernels, 2, axis=1)
    return float(np.max((equal - near) / (2 * NEAR * equal)))
