"""How far the entries of a kernel matrix may be off."""

from __future__ import annotations

import jax
import numpy as np

from lnkernel.arch import Node
from lnkernel.arch.elementwise import Elementwise
from lnkernel.arch.flow import rows_of
from lnkernel.evaluate.float64.expansion import expand, has_series, representatives
from lnkernel.gram import tiled
from lnkernel.gram.structure import dissect
from lnkernel.types import Array

ROUNDING = 2e-15  # of closed forms, up to SHALLOW activations; it adds up beyond
SHALLOW = 10
SUMMED = 4e-15  # more, for every activation that is summed or integrated
SAFETY = 4.0  # on the change that a finer resolution makes
SAMPLE = 24  # points, from the shortest to the longest


def error_estimate(arch: Node, which: tuple[str, ...], x: Array, x2: Array) -> float:
    """Relative to the root of the product of the diagonals. Series and integrals are computed twice for a
    sample of the points, the second time with twice the terms, without tables, and on finer panels."""
    activations = sum(isinstance(layer, Elementwise) for _, layer, _ in rows_of(arch))
    rounding = ROUNDING * max(1.0, activations / SHALLOW)
    if not has_series(arch):
        return rounding
    some, more = (representatives(np.asarray(points), SAMPLE) for points in (x, x2))
    with jax.enable_x64(True):
        usual, finer = (
            _matrices(expand(arch, some, more, finer=f), which, some, more) for f in (False, True)
        )
    change = max(float(np.max(np.abs(a - b))) for a, b in zip(usual, finer, strict=True))
    return rounding + SUMMED * activations + SAFETY * change


def _matrices(
    arch: Node, which: tuple[str, ...], x: np.ndarray, x2: np.ndarray
) -> list[np.ndarray]:
    """The kernels, each over the root of the product of its diagonals."""
    structure, varying = dissect(arch)
    live = bool((x != 0).any(axis=1).all() and (x2 != 0).any(axis=1).all())
    program = tiled.Program(structure, np.asarray([float(v) for v in varying]), which, live)
    found = tiled.rectangular(program, x, x2)
    return [
        np.asarray(k)
        / (np.sqrt(np.where(one > 0, one, 1.0))[:, None] * np.sqrt(np.where(two > 0, two, 1.0)))
        for k, one, two in zip(*found, strict=True)
    ]
