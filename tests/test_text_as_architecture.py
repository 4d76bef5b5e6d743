"""Wherever a function takes an architecture, it takes its text, and refuses other types by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.errors import ArchitectureError, ArchitectureTextError

X, Y = np.array([[-1.0], [0.5], [2.0]]), np.array([1.0, 0.0, 1.0])

FUNCTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "ntk": ("mlp()", lambda arch: lnk.ntk(arch)(X).tolist()),
    "nngp": ("mlp()", lambda arch: lnk.nngp(arch)(X).tolist()),
    "kernels": ("mlp()", lambda arch: lnk.kernels(arch)(X).ntk.tolist()),
    "posterior": ("mlp()", lambda arch: lnk.posterior(arch, X, Y).mean([[9.0]]).tolist()),
    "bound": ("mlp(norm='first')", lambda arch: float(lnk.bound(arch, X, Y))),
    "sup_diagonal": ("mlp(norm='first')", lambda arch: float(lnk.sup_diagonal(arch))),
    "mean_bound": ("mlp(activation=Erf())", lambda arch: float(lnk.mean_bound(arch, X, Y))),
    "diverging_witness": ("mlp()", lambda arch: lnk.diverging_witness(arch, X, Y).value),
    "network": (
        "mlp(width=8)",
        lambda arch: lnk.finite.network(arch, 1, rngs=0)(X).tolist(),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_text_means_the_architecture(name: str) -> None:
    text, compute = FUNCTIONS[name]
    assert compute(text) == compute(lnk.parse(text))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "got None"),
        (3, "got 3 of type int"),
        (lnk.mlp, r"got mlp without brackets. Write mlp\(...\)"),
        (lnk.Relu, r"got Relu without brackets. Write Relu\(...\)"),
        (np.zeros(10**4), r"got array\(.* of type ndarray"),
    ],
)
def test_other_types_are_told_by_name(name: str, given: Any, message: str) -> None:
    with pytest.raises(ArchitectureError, match="expected an architecture or its text, " + message):
        FUNCTIONS[name][1](given)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_text_that_describes_nothing(name: str) -> None:
    with pytest.raises(ArchitectureTextError, match="'mpl' is not known"):
        FUNCTIONS[name][1]("mpl()")


def test_too_many_layers() -> None:
    with pytest.raises(ArchitectureError, match="hidden must be at most 10000, got 1000000000"):
        lnk.mlp(hidden=10**9)
