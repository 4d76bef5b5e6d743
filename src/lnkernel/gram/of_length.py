r"""What single inputs take, as functions of their length: found once for a range of lengths, and kept.

But for a norm of the raw input, everything that the rules compute for a single input is a function $f(r)$ of its
length. Of a gentle network (`by_length`) these functions are analytic, so that their values at 64 lengths give all
others: by the Chebyshev interpolant of $f(r)/r^p$, where p is the power by which f grows from the shortest to the
longest input, to the digits of float64. That takes one product of matrices, where the rules take hundreds of steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lnkernel.evaluate.float64.length_curves import Curves, curves_through, lengths_of_nodes
from lnkernel.evaluate.float64.per_input import Record, Step
from lnkernel.gram import pairs
from lnkernel.gram.by_length import STEPS, Span, span_of_squares
from lnkernel.gram.network import Needs, Network
from lnkernel.gram.program import Program, network_of, select
from lnkernel.gram.structure import Structure, assemble

MANY = 512  # points, for which it pays
LARGEST = (
    16.0  # longest over shortest input: of a wider range one polynomial takes too many degrees
)
LAST = 4  # coefficients that tell what is left out
NEGLIGIBLE = 2.0**-52  # what may be left out of a product of numbers, beside the largest
HIGHEST = 8  # of the powers p


class Functions(NamedTuple):
    """Some functions of the length."""

    curves: Curves  # of f(r)/r^p
    powers: np.ndarray  # p, (functions,)

    def at(self, length: np.ndarray) -> np.ndarray:
        """Their values, (functions, n)."""
        values = self.curves.at(length)
        for p in set(self.powers.tolist()) - {0}:
            values[self.powers == p] *= length**p
        return values


@dataclass(frozen=True)
class Range:
    """A network by its structure and its numbers, and the inputs that it is asked for."""

    structure: Structure
    numbers: bytes
    needs: Needs
    which: tuple[str, ...]
    dimension: int
    span: Span
    program: Program = field(compare=False)

    @property
    def ends(self) -> tuple[float, float]:
        """The shortest and the longest input."""
        return 2.0 ** (self.span.shortest / STEPS), 2.0 ** (self.span.longest / STEPS)

    @property
    def nodes(self) -> np.ndarray:
        shortest, longest = self.ends
        return lengths_of_nodes(longest, shortest)

    def points(self) -> pairs.Points:
        """An input of each of these lengths."""
        x = np.repeat(self.nodes[:, None], self.dimension, axis=1)
        return pairs.prepare(self.needs, x)


def range_for(program: Program, points: pairs.Points) -> Range | None:
    """The range of these points; None where the way does not suit."""
    n, dimension = points.raw.unit.shape
    if n < MANY or not (program.needs.gentle and program.all_live):
        return None
    span = span_of_squares(points.raw.square.high)
    if span is None or not 0 < span.longest - span.shortest <= STEPS * np.log2(LARGEST):
        return None
    numbers = np.asarray(program.varying).tobytes()
    key = program.structure, numbers, program.needs, program.which, dimension, span
    return Range(*key, program)


def records_of(of: Range, side: int, lengths: np.ndarray) -> Record | None:
    """What pairs need of inputs of these lengths on this side of them (`pairs.remember`); None where it is no function
    that 64 lengths tell."""
    found = _record_functions(of, side)
    return None if found is None else Record(found[0].at(lengths), found[1])


@lru_cache(maxsize=128)
def _record_functions(of: Range, side: int) -> tuple[Functions, tuple[Step, ...]] | None:
    # NumPy's numbers, since a comparison of plain ones is a fact: the program's are not known when it is made
    net = Network(assemble(of.structure, np.asarray(of.program.varying)), of.needs)
    made = pairs.remember(net, of.points(), side, True)
    record = None if made is None else made.record()
    if record is None or any(kind != "<f8" for step in record.steps for kind in step.types):
        return None
    functions = _functions_through(of, record.numbers)
    return None if functions is None else (functions, record.steps)


def diagonals_of(of: Range, lengths: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """The kernels of every input of these lengths with itself, (n,) each; None likewise."""
    functions = _diagonal_functions(of)
    return None if functions is None else tuple(functions.at(lengths))


@lru_cache(maxsize=128)
def _diagonal_functions(of: Range) -> Functions | None:
    net: Network = network_of(of.program)
    kernels = select(pairs.diagonal(net, of.points(), True), of.which)
    nodes = of.nodes
    return _functions_through(of, np.array([np.broadcast_to(k, nodes.shape) for k in kernels]))


def _functions_through(of: Range, values: np.ndarray) -> Functions | None:
    """The functions with these values at the nodes, (functions, NODES), if so many tell them."""
    if not np.isfinite(values).all():
        return None
    shortest, longest = of.ends
    first, last = np.abs(values[:, -1]), np.abs(values[:, 0])  # at the shortest and the longest
    known = (first > 0) & (last > 0)
    growth = np.log(np.where(known, last, 1.0) / np.where(known, first, 1.0))
    powers = np.clip(np.round(growth / np.log(of.nodes[0] / of.nodes[-1])), 0, HIGHEST)
    flat = values.T / of.nodes[:, None] ** powers
    curves = curves_through(longest, flat, shortest)
    sizes = np.abs(flat).max(axis=0)
    left = np.zeros_like(sizes)
    if len(curves.coefficients) > len(flat) - LAST:
        left = np.abs(curves.coefficients[-LAST:]).max(axis=0)
    # numbers of two inputs are multiplied with one another, the small with the small
    complete = (left * sizes <= NEGLIGIBLE * sizes.max() ** 2).all()
    return Functions(curves, powers.astype(int)) if complete else None
