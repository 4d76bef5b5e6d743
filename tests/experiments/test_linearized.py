"""Linearized networks: training through the kernel is training in parameters; a tiny run."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.datasets.cifar import Cifar
from lnkernel.datasets.pictures import Pictures
from lnkernel.experiments import REGISTRY, linearized
from lnkernel.experiments.linearized import LinearizedPlan, Source, draw
from lnkernel.experiments.linearized_training import (
    schedule,
    stable_rate,
    train_kernel,
    train_network,
)
from lnkernel.experiments.small_networks import Convolution, LeNet, relu_mlp
from lnkernel.tangents.function import Function

X = np.random.default_rng(0).normal(size=(20, 6))
Y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)


def test_through_the_kernel_as_in_the_parameters() -> None:
    """SGD with momentum on the linearized network's parameters, step for step."""
    t = lnk.tangent(relu_mlp(6, 12, seed=0), dtype=jnp.float64)
    steps = schedule(20, 15, 0.05, seed=3)._replace()
    rows = steps.rows.reshape(-1, 5)  # of smaller batches
    rates = np.linspace(0.05, 0, len(rows))
    with jax.enable_x64(True):
        c = train_kernel(t.gram(X), t.value(X), Y[None], rows, rates)
        known = np.asarray(t.value(X) + t.gram(X) @ np.asarray(c[0]))

        def apply(params: Any, rest: Any, x: Any) -> Any:
            return t.linear(params, x)[:, None]

        linear = Function(apply, t.params, None, 1)
        params = train_network(linear, jnp.asarray(X), jnp.asarray(Y), rows, rates)
        expected = t.linear(params, X)
    assert np.abs(known - t.value(X)).max() > 0.1
    assert np.allclose(known, expected, atol=1e-12)


def test_every_epoch_visits_every_point() -> None:
    steps = schedule(256, 3, 0.1, seed=0)
    assert steps.rows.shape == (6, 128)
    assert all(sorted(two.ravel()) == list(range(256)) for two in steps.rows.reshape(3, 2, 128))
    assert steps.rates[0] == 0.1 and (np.diff(steps.rates) < 0).all() and steps.rates[-1] > 0
    assert (stable_rate(1.0, 100), stable_rate(1e5, 100)) == (0.05, 0.004)


def test_a_convolution_is_flax_s() -> None:
    from flax import nnx

    ours, theirs = Convolution(3, 4, nnx.Rngs(0)), nnx.Conv(3, 4, (5, 5), rngs=nnx.Rngs(0))
    theirs.kernel[...] = ours.inner.kernel[...].reshape(5, 5, 3, 4)
    theirs.bias[...] = ours.inner.bias[...]
    x = jnp.asarray(np.random.default_rng(0).normal(size=(2, 7, 6, 3)), jnp.float32)
    assert np.allclose(ours(x), theirs(x), atol=1e-5)


def test_anisotropy_is_the_mixed_derivative() -> None:
    """The values are the squared singular values of the dense ∂²f/∂θ∂x."""
    net = LeNet(8, 8, 1, seed=0)
    t = lnk.tangent(net, dtype=jnp.float64)
    found = t.anisotropy(np.zeros((8, 8, 1)), k=4)
    with jax.enable_x64(True):
        dense = jax.jacfwd(lambda x: jax.grad(lambda p: t.function(p, x)[0])(t.params))(
            jnp.zeros((8, 8, 1))
        )
        G = np.concatenate([np.asarray(g).reshape(-1, 64) for g in jax.tree.leaves(dense)])
    singular = np.linalg.svd(G, compute_uv=False)
    assert np.allclose(found.values, singular[:4] ** 2, rtol=1e-8)


@pytest.fixture
def sources() -> tuple[Pictures, Cifar]:
    draw = np.random.default_rng(0)
    digits = Pictures(draw.random((60, 16, 16, 1), np.float32), np.repeat(np.arange(10), 6))
    colour = Pictures(draw.random((60, 16, 16, 3), np.float32), np.repeat(np.arange(10), 6))
    return digits, Cifar(colour, colour.shuffle(1), "made up")


def test_test_pictures_are_others(sources: tuple[Pictures, Cifar]) -> None:
    plan = LinearizedPlan([0], points=30, tests=20)
    for source in (Source("digits", *[sources[0]] * 2), Source("CIFAR2", *sources[1][:2])):
        drawn = draw(source, plan, seed=1)
        assert drawn.x.shape[:3] == (50, 8, 8) and set(drawn.label) == {-1, 1}
        assert drawn.x[:30].mean() == pytest.approx(0, abs=1e-6)
        if source.name == "digits":
            assert len(np.unique(drawn.x.reshape(50, -1), axis=0)) == 50


@pytest.mark.slow
def test_a_tiny_run(
    sources: tuple[Pictures, Cifar], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = LinearizedPlan([0], points=24, tests=12, epochs=2, tasks=(1, 3), again=(3,), side=8)
    monkeypatch.setattr(linearized, "LinearizedPlan", lambda seeds: plan)
    monkeypatch.setattr(linearized, "mnist", lambda: sources[0])
    monkeypatch.setattr(linearized, "load", lambda path: sources[1])
    for _ in range(2):
        page = REGISTRY["linearized"].run(tmp_path, progress=False).read_text()
    assert page.count("<img") == 4 and "made up" in page
    with (tmp_path / "tasks.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["task"] for row in rows] == ["1", "3", "labels"] * 4
    assert all(0 <= float(row["linearized"]) <= 1 for row in rows)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert len(manifest["pieces"]) == 6 and all(p["stored"] for p in manifest["pieces"])
