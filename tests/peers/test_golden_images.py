"""Our kernels of images and sequences beside those of neural-tangents (`benchmarks/peers/golden_images.py`)."""

from __future__ import annotations

import json

import numpy as np
import pytest

import lnkernel as lnk
from benchmarks.peers import golden_images as golden
from benchmarks.peers.description import build, describe

with np.load(golden.FILE) as stored:
    GOLDEN = dict(stored)
ABOUT = json.loads(str(GOLDEN["about"]))
NAMES = list(ABOUT["architectures"])
ALIKE = 1e-12  # relative to the root of the diagonals; neural-tangents takes angles from rounded cosines
# images 0 and 3 differ by their contrast alone: without a bias all angles between them are 0, where neural-tangents
# is off by the root of a rounding in each layer
IN_LINE = 2e-7


def test_the_file_says_what_it_holds() -> None:
    table = golden.architectures()
    assert ABOUT["architectures"] == {name: describe(arch) for name, arch in table.items()}
    assert all(build(ABOUT["architectures"][name]) == arch for name, arch in table.items())
    for name, array in golden.inputs().items():
        np.testing.assert_array_equal(GOLDEN[name], array)
    assert len(NAMES) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_the_same_kernels(name: str) -> None:
    x = GOLDEN[golden.kind_of(name)]
    ours = lnk.kernels(build(ABOUT["architectures"][name]))
    found, rows = ours(x), ours(x[:2], x[1:])
    for kernel in ("nngp", "ntk"):
        theirs = GOLDEN[f"{kernel}: {name}"]
        ends = np.sqrt(np.diagonal(theirs))
        off = np.abs(getattr(found, kernel) - theirs) / np.outer(ends, ends)
        allowed = np.full(off.shape, ALIKE)
        if name.startswith("no bias"):
            allowed[[0, 3], [3, 0]] = IN_LINE
        np.fill_diagonal(allowed, IN_LINE)
        assert (off <= allowed).all(), off
        there = np.abs(getattr(rows, kernel) - getattr(found, kernel)[:2, 1:])
        away = ~np.eye(len(x), dtype=bool)[:2, 1:]  # equal inputs meet by rounding there
        assert (there / np.outer(ends[:2], ends[1:]))[away].max() < 1e-14
