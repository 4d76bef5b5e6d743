"""The closed forms against finite random networks, which know the layers but no kernel."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import cases
import montecarlo
import numpy as np
import pytest
from numpy.typing import NDArray

import lnkernel as lnk
from lnkernel import (
    Abs,
    Dense,
    GroupNorm,
    LayerNorm,
    LeakyRelu,
    Node,
    RectifiedPower,
    Relu,
    RMSNorm,
    parallel,
    residual,
    serial,
)
from lnkernel.calculus import rules

Array = NDArray[np.float64]
X = np.array([[1.0, 0.5, -0.25], [-0.5, 1.0, 2.0], [2.0, -1.0, 0.5], [-1.0, -1.0, 0.5]])


class Case(NamedTuple):
    """A network and the draws that bring the standard error of Theta below 0.5 %."""

    arch: Node
    draws: int = 800


def dense(b_std: float = 0.3) -> Dense:
    return Dense(8, W_std=1.3, b_std=b_std)


def hidden(*layers: Node, b_std: float = 0.3) -> lnk.Serial:
    return serial(dense(b_std), *layers, dense(b_std))


def two_layers(norm: str | None) -> lnk.Serial:
    return lnk.mlp(2, norm=norm, W_std=1.3, b_std=0.3)


AFFINE = LayerNorm(0.1, scale=True, bias=True)
CASES: dict[str, Case] = {
    "relu": Case(hidden(Relu())),
    "no LN": Case(two_layers(None), 3200),
    "LN first": Case(two_layers("first"), 3200),
    "LN last": Case(two_layers("last"), 3200),
    "LN all": Case(two_layers("all"), 3200),
    "LN after": Case(hidden(Relu(), LayerNorm(0.1))),
    "LN after, scale and bias": Case(hidden(LeakyRelu(0.3), AFFINE)),
    "LN on the input": Case(serial(LayerNorm(0.1), *hidden(Relu()).layers)),
    "RMSNorm": Case(hidden(RMSNorm(0.1), Relu())),
    "RMSNorm after, LN": Case(hidden(Relu(), RMSNorm(scale=True), LayerNorm())),
    "GroupNorm": Case(hidden(GroupNorm(8))),
    "GroupNorm, scale and bias": Case(hidden(GroupNorm(16, centre=False, scale=True, bias=True))),
    "GroupNorm of signs": Case(hidden(GroupNorm(2))),
    "scale and bias, relu": Case(hidden(AFFINE, Relu())),
    "scale and bias, p2": Case(hidden(AFFINE, RectifiedPower(2)), 2000),
    "residual": Case(serial(dense(), residual(dense(), Relu(), dense()), LayerNorm()), 2000),
    "residual of features": Case(hidden(residual(dense(), Relu()), LayerNorm()), 2000),
    "parallel": Case(
        hidden(parallel(serial(dense(), Relu()), serial(dense(), Abs())), LayerNorm()), 3200
    ),
    "p1.5": Case(hidden(RectifiedPower(1.5)), 2000),
    "leaky": Case(hidden(LeakyRelu(0.3), b_std=0.0)),
    "abs": Case(hidden(Abs())),
}


def deviations(case: Case, kernels: lnk.Kernels) -> tuple[Array, Array]:
    """|theory - mean| in standard errors, of K and of Theta; below 1e-9 there is no deviation."""
    found = montecarlo.extrapolate(case.arch, X, draws=case.draws)
    length = np.sqrt(np.diag(found.ntk))
    assert (found.ntk_se < 0.006 * length * length[:, None]).all(), "too few draws to tell"
    rows = ((kernels.nngp, found.nngp, found.nngp_se), (kernels.ntk, found.ntk, found.ntk_se))
    K, Theta = (np.maximum(np.abs(t - mean) - 1e-9, 0) / (se + 1e-12) for t, mean, se in rows)
    return K, Theta


@pytest.mark.parametrize("name", cases.some_slow(CASES, {"parallel"}))
def test_finite_networks_agree(name: str) -> None:
    case = CASES[name]
    K, Theta = deviations(case, cases.uncompiled(case.arch, X))
    assert K.max() < 4
    assert Theta.max() < 4


def test_the_naive_rule_for_a_trainable_scale_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before an activation the scale's u_i v_i must not be averaged over the features."""
    right = rules.with_affine

    def averaged(layer: Any, state: Any, t: Any, o: Any) -> Any:
        naive = right(layer, dataclasses.replace(state, gaussian=False), t, o)
        return dataclasses.replace(naive, gaussian=state.gaussian)

    case = CASES["scale and bias, p2"]
    monkeypatch.setattr(rules, "with_affine", averaged)
    K, Theta = deviations(case, cases.uncompiled(case.arch, X))
    assert K.max() < 4  # the scale does not touch K
    assert np.diag(Theta).min() > 10


def test_forgetting_the_mean_features_is_caught() -> None:
    """LayerNorm after an activation is not RMSNorm."""
    case = CASES["LN after"]
    wrong = cases.uncompiled(hidden(Relu(), RMSNorm(0.1)), X)
    assert all(deviation.max() > 10 for deviation in deviations(case, wrong))
