"""The neutral JSON form: there and back, and what neural-tangents has no kernel for is refused."""

from __future__ import annotations

import json

import pytest

import lnkernel as lnk
from benchmarks.peers import golden
from benchmarks.peers.description import NotExpressibleError, build, describe

DENSE = lnk.Dense(8)


@pytest.mark.parametrize("name", golden.architectures())
def test_there_and_back(name: str) -> None:
    arch = golden.architectures()[name]
    described = json.loads(json.dumps(describe(arch)))
    assert describe(build(described)) == described
    assert build(described) == arch


@pytest.mark.parametrize(
    ("arch", "why"),
    [
        (lnk.serial(DENSE, lnk.Relu(), lnk.LayerNorm(), DENSE), "not after an activation"),
        (lnk.serial(lnk.LayerNorm(), DENSE), "on the input of the network"),
        (lnk.serial(DENSE, lnk.LayerNorm(scale=True), DENSE), "no trainable scale"),
        (lnk.serial(DENSE, lnk.RMSNorm(), DENSE), "no RMSNorm"),
        (lnk.serial(DENSE, lnk.RectifiedPower(1.5), DENSE), "integer degree"),
        (lnk.serial(DENSE, lnk.residual(DENSE, lnk.Relu()), DENSE), "ends in a Gaussian state"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_it_has_no_kernel_for(arch: lnk.Node, why: str) -> None:
    with pytest.raises(NotExpressibleError, match=why):
        describe(arch)
