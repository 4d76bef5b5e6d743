"""How far the entries of a kernel matrix may be off."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from lnkernel.arch import Node
from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.flow import rows_of
from lnkernel.evaluate.float64.expansion import expand, has_series, representatives
from lnkernel.gram import eager, tiled
from lnkernel.gram.program import dissect_numbers, program_for
from lnkernel.types import Array

ROUNDING = 2e-15  # the error of closed forms, up to SHALLOW activations; beyond, it adds up
SHALLOW = 10
# is added for every activation that is summed or integrated: sums of products, which large matrices take, are off by
# so much, and the samples are too few for them
SUMMED = 1e-14
SAFETY = 4.0  # times the change that a finer resolution makes
SAMPLE = 16  # points, from the shortest to the longest


def error_estimate(arch: Node, which: tuple[str, ...], x: Array, x2: Array) -> float:
    """The error relative to the root of the product of the diagonals. Series and integrals are computed twice for a
    sample of the points, the second time with twice the terms, without tables, and on panels half as long."""
    activations = sum(isinstance(layer, Elementwise) for _, layer, _ in rows_of(arch))
    rounding = ROUNDING * max(1.0, activations / SHALLOW)
    if not has_series(arch):
        return rounding
    inputs = [_sample(points) for points in ((x,) if x2 is x else (x, x2))]
    with jax.enable_x64(True):
        usual, finer = (
            _matrices(expand(arch, *inputs, finer=f), which, inputs) for f in (False, True)
        )
    change = max(_distance(a, b) for a, b in zip(usual, finer, strict=True))
    return rounding + SUMMED * activations + SAFETY * change


def _sample(points: Array) -> np.ndarray:
    return representatives(np.asarray(points), min(SAMPLE, len(points)))


class _Matrix(NamedTuple):
    """A kernel between two sets of points, and its diagonals at both."""

    between: np.ndarray
    one: np.ndarray
    two: np.ndarray


def _matrices(arch: Node, which: tuple[str, ...], inputs: list[np.ndarray]) -> list[_Matrix]:
    program = program_for(dissect_numbers(arch), which, *inputs)
    way = eager if eager.suits(program.needs, SAMPLE * SAMPLE, series=1) else tiled
    if len(inputs) == 1:
        out, ends = way.symmetric(program, *inputs)
        found = zip(out, ends, ends, strict=True)
    else:
        found = zip(*way.rectangular(program, *inputs), strict=True)
    return [_Matrix(*map(np.asarray, parts)) for parts in found]


def _distance(one: _Matrix, other: _Matrix) -> float:
    """The largest difference, relative to the diagonals of `other`: by its own, errors of these would cancel."""
    roots = [np.sqrt(np.where(end > 0, end, 1.0)) for end in (other.one, other.two)]
    apart = (
        np.abs(one.between - other.between) / roots[0][:, None] / roots[1],
        *(np.abs(a - b) / root**2 for a, b, root in zip(one[1:], other[1:], roots, strict=True)),
    )
    return max(float(np.max(part)) for part in apart)
