"""The quick way for most pairs, the careful way for some, and NumPy's must give the same numbers."""

from __future__ import annotations

import cases
import jax
import numpy as np
import oracle
import pytest

import lnkernel as lnk
from lnkernel.gram import eager, tiled

pytestmark = pytest.mark.usefixtures("programs_for_all_but_few")

TABLE = cases.architectures()
SOME = [
    "relu 2",
    "GroupNorm 2",
    "LN first",
    "LN after",
    "scale and bias",
    "RMS",
    "residual",
    "general 1.5",
]


def points() -> np.ndarray:
    """With copies, near copies, multiples, antipodes, norms from 1e-3 to 1e3 and of 1e-150."""
    rng = np.random.default_rng(0)
    lengths = np.concatenate([np.geomspace(1e-3, 1e3, 115), np.full(5, 1e-150)])
    x = rng.normal(size=(120, 5)) * lengths[:, None]
    near = x[:10] * (1 + 1e-9 * rng.normal(size=(10, 5)))
    return np.concatenate([x, x[:5], near, 3 * x[5:10], -x[10:15], -near])


@pytest.mark.parametrize(
    ("name", "way"), [*((name, "symmetric") for name in SOME), ("LN first", "rectangular")]
)
def test_both_ways_agree(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arch, x = TABLE[name].arch, points()
    theta = lnk.ntk(arch)
    matrices = []
    monkeypatch.setattr(eager, "MOST", 0)
    monkeypatch.setattr(eager, "MOST_DELICATE", 0)
    for few in (0, x.size**2):  # all pairs go the quick way first; or all the careful one
        monkeypatch.setattr(tiled, "FEW", few)
        matrices.append(theta(x) if way == "symmetric" else theta(x, x.copy()))
    monkeypatch.setattr(eager, "MOST", x.size**2)
    by_numpy = theta(x) if way == "symmetric" else theta(x, x.copy())
    quick, careful = matrices
    ends = np.sqrt(theta.diagonal(x))
    for one in (quick, by_numpy):
        difference = np.abs(one - careful) / ends[:, None] / ends
        assert difference.max() < 4e-15  # each is right to 2e-15


@pytest.mark.parametrize("name", ["scale and bias, no bias", "scale and bias after"])
@pytest.mark.parametrize("other", [[0.0, 0.0, 0.0], [1.0, 2.0, -1.0]])
def test_the_zero_input_against_50_digits(name: str, other: list[float]) -> None:
    """Concrete, also beside many others, and inside jit."""
    arch = TABLE[name].arch
    theta = lnk.ntk(arch)
    zero, x = np.zeros((1, 3)), np.array([other])
    exact = float(oracle.kernels(arch, zero[0], x[0])[1])
    with jax.enable_x64(True):
        inside = float(jax.jit(theta)(zero, x)[0, 0])
    many = np.concatenate([np.random.default_rng(0).normal(size=(60, 3)), x])
    found = [theta(zero, x)[0, 0], theta(many, np.tile(zero, (40, 1)))[-1, -1], inside]
    np.testing.assert_allclose(found, exact, rtol=4e-15)
