"""Measurements inside of the compiled training, against the same numbers by other routes."""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import lnkernel as lnk
from lnkernel.errors import CheckpointError, DivergedError, InputError
from lnkernel.finite.watching.critical import critical_time
from lnkernel.finite.watching.measures import kernel_target_alignment
from lnkernel.finite.watching.steps import choose_steps
from lnkernel.tangents.leading import leading_pairs

DRAW = np.random.default_rng(0)
X = DRAW.standard_normal((12, 3))
Y = np.sin(X[:, 0]) + X[:, 1]
ARCH = lnk.mlp(hidden=1, width=8, norm="first", activation=lnk.Tanh(), b_std=0.3)
ALL = (
    *("loss", "lambda_max", "sharpness", "eigenvalues", "eigenvalue_error", "alignment", "kta"),
    *("cka", "drift", "kernel_drift", "gradient_variance", "loss_rate"),
    *("mag_ma", "min_cosine", "correlation_floor", "correlation_length"),
)
RATE, STEPS = 0.01, 30


def ensemble(watch: Any, seeds: Any = (5, 2), steps: int = STEPS, **changes: Any) -> Any:
    return lnk.finite.train_ensemble(
        ARCH,
        X,
        Y,
        seeds=list(seeds),
        optimizer=optax.sgd(RATE),
        steps=steps,
        dtype=jnp.float64,
        progress=False,
        watch=watch,
        **changes,
    )


def flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def floor_and_length(gradients: list[np.ndarray]) -> tuple[float, float]:
    """By the words of Castiglione, Buckley and Simpson, pair by pair: the mean cosine in 50 bins of distance,
    the floor as the mean of the last ten that are not empty, the distance of half height above the floor."""
    bins: dict[int, list[tuple[float, float]]] = {}
    reach = max(float(np.linalg.norm(a - b)) for a in X for b in X)
    for i, j in itertools.combinations(range(len(X)), 2):
        apart = float(np.linalg.norm(X[i] - X[j]))
        lengths = np.linalg.norm(gradients[i]) * np.linalg.norm(gradients[j])
        cosine = float(gradients[i] @ gradients[j] / lengths)
        bins.setdefault(min(int(50 * apart / reach), 49), []).append((apart, cosine))
    curve = {number: np.mean(pairs, axis=0) for number, pairs in sorted(bins.items())}
    floor = float(np.mean([cosine for number, (_, cosine) in curve.items() if number >= 40]))
    before = np.array([0.0, 1.0])
    for point in curve.values():
        if point[1] < (1 + floor) / 2:
            share = (before[1] - (1 + floor) / 2) / (before[1] - point[1])
            half = before[0] + share * (point[0] - before[0])
            return floor, float(half / np.sqrt(2 * np.log(2)))
        before = point
    return floor, np.inf


@pytest.fixture(scope="module")
def watched() -> tuple[Any, Any]:
    w = lnk.watch(X, Y, ALL, loss="half-mean")
    return w, ensemble(w)


def test_against_the_saved_parameters(watched: Any) -> None:
    """Inside the training, and afterwards by `tangent` and NumPy from the networks as they are."""
    w, e = watched
    for number, network in enumerate(e.networks):
        with jax.enable_x64(True):
            first = lnk.finite.network(ARCH, 3, rngs=w.seeds[number], dtype=jnp.float64)
        start, t = lnk.tangent(first), lnk.tangent(network)
        K, s = t.gram(X), t.spectrum(X)
        found = {name: w[name][number, -1] for name in ALL}
        r = t.value(X) - Y
        gradients = np.array([flat(t.vjp(X, r * unit)) for unit in np.eye(len(X))])
        labels = np.exp(-50 * np.square(Y[:, None] - Y))
        middle = np.eye(12) - 1 / 12
        k0 = start.gram(X)
        one, other = middle @ K @ middle, middle @ labels @ middle
        expected = {
            "loss": 0.5 * np.mean(r**2),
            "lambda_max": s.values[0],
            "sharpness": s.values[0] / 12,
            "eigenvalues": s.values[:10],
            "alignment": s.shares(Y)[:10],
            "kta": s.kta(Y),
            "cka": np.sum(one * other) / np.linalg.norm(one) / np.linalg.norm(other),
            "drift": np.linalg.norm(flat(t.params) - flat(start.params)),
            "kernel_drift": np.linalg.norm(K - k0) / np.linalg.norm(k0),
            "gradient_variance": gradients.var(axis=0).sum(),
            "mag_ma": t.local(X).mag_ma,
            "min_cosine": np.min(t.local(X).min_cosine),
        }
        floor, length = floor_and_length([flat(t.vjp(X, unit)) for unit in np.eye(len(X))])
        expected |= {"correlation_floor": floor, "correlation_length": length}
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12, err_msg=name)
        assert found["eigenvalue_error"] < 1e-12


def test_the_losses_are_those_of_the_training(watched: Any) -> None:
    w, e = watched
    assert w.steps.tolist() == [0, 1, 2, 3, 4, 6, 8, 11, 16, 23, 30]
    ours = 12 * w["loss"]
    np.testing.assert_allclose(ours[:, :-1], e.losses[:, w.steps[:-1]], rtol=1e-13)
    np.testing.assert_allclose(ours[:, -1], e.loss, rtol=1e-13)
    assert np.isnan(w["loss_rate"][:, 0]).all() and (w["loss_rate"][:, 1:] > 0).all()


def test_at_equal_loss(watched: Any) -> None:
    w = watched[0]
    level = float(w["loss"][0, 4])
    found = w.at_loss("alignment", level)
    for number in range(2):
        place = next(i for i, loss in enumerate(w["loss"][number]) if loss <= level)
        np.testing.assert_array_equal(found[number], w["alignment"][number, place])
    with pytest.raises(InputError, match="every network was measured at"):
        w.at_loss("kta", 0.0)


def test_watching_does_not_change_the_training(watched: Any) -> None:
    alone = lnk.finite.train_ensemble(
        ARCH, X, Y, [5, 2], optax.sgd(RATE), STEPS, dtype=jnp.float64, progress=False
    )
    np.testing.assert_array_equal(alone.losses, watched[1].losses)


def test_an_ensemble_is_its_networks(watched: Any) -> None:
    some = ("loss", "lambda_max", "alignment", "kta", "drift")
    one = lnk.watch(X, Y, some, loss="half-mean")
    with jax.enable_x64(True):
        network = lnk.finite.network(ARCH, 3, rngs=2, dtype=jnp.float64)
    lnk.finite.train(network, X, Y, optax.sgd(RATE), STEPS, progress=False, watch=one)
    for name in some:
        np.testing.assert_allclose(
            one[name][0], watched[0][name][1], rtol=1e-8, atol=1e-11, err_msg=name
        )


def test_is_resumed_with_the_checkpoint(watched: Any, tmp_path: Path) -> None:
    """In parts, also where one ends between two measurements, to the same numbers bit for bit."""
    for steps in (7, 7, STEPS):
        w = lnk.watch(X, Y, ALL, at=watched[0].steps.tolist(), loss="half-mean")
        ensemble(w, steps=steps, checkpoint=tmp_path, checkpoint_every=5)
        assert w.steps.max() == (6 if steps == 7 else STEPS)
    for name in ALL:
        np.testing.assert_array_equal(w[name], watched[0][name], err_msg=name)
    with pytest.raises(CheckpointError, match="other watch"):
        ensemble(lnk.watch(X, Y, ["loss"]), checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="other watch"):
        ensemble(None, checkpoint=tmp_path)


def test_each_network_has_its_own_data() -> None:
    each = [X, X[::-1] + 0.1]
    w = lnk.watch(each, [Y, Y], ("loss", "kta"), at=[0])
    lnk.finite.train_ensemble(ARCH, each, [Y, Y], [0, 1], optax.sgd(RATE), 1, watch=w)
    expected = [
        lnk.tangent(lnk.finite.network(ARCH, 3, rngs=seed)).spectrum(x).kta(Y)
        for seed, x in enumerate(each)
    ]
    np.testing.assert_allclose(w["kta"][:, 0], expected, rtol=1e-5)


def test_several_outputs_and_measures_of_ones_own() -> None:
    Z = np.stack([Y, Y**2], 1)
    rngs = nnx.Rngs(0)
    net = nnx.Sequential(nnx.Linear(3, 8, rngs=rngs), nnx.relu, nnx.Linear(8, 2, rngs=rngs))

    def trace(tangent: Any, X: Any, y: Any) -> Any:
        return jnp.trace(tangent.matrix(X))

    w = lnk.watch(X, Z, {"mine": trace, "kta": "kta", "variance": "gradient_variance"}, at=[0, 5])
    lnk.finite.train(net, X, Z, optax.sgd(1e-3), 5, progress=False, watch=w)
    t = lnk.tangent(net)
    K = t.gram(X).reshape(24, 24)
    np.testing.assert_allclose(w["mine"][0, 1], np.trace(K), rtol=1e-5)
    np.testing.assert_allclose(w["kta"][0, 1], t.spectrum(X).kta(Z), rtol=1e-5)
    r = t.value(X) - Z
    each = [flat(t.vjp(X, r * unit[:, None])) for unit in np.eye(12)]
    np.testing.assert_allclose(w["variance"][0, 1], np.var(each, axis=0).sum(), rtol=1e-4)


def test_a_divergence_leaves_what_was_measured() -> None:
    w = lnk.watch(X, Y, ("loss", "drift"))
    with pytest.raises(DivergedError) as problem:
        lnk.finite.train_ensemble(ARCH, X, Y, [5], optax.sgd(1.0), 500, progress=False, watch=w)
    first = lnk.finite.network(ARCH, 3, rngs=5)(jnp.asarray(X, jnp.float32))[:, 0]
    np.testing.assert_allclose(w["loss"][0, 0], 0.5 * np.sum(np.square(first - Y)), rtol=1e-5)
    assert w["drift"][0, 0] == 0 and w.steps[-1] <= problem.value.step + 1


def test_kernel_target_alignment() -> None:
    y = DRAW.standard_normal(20)
    np.testing.assert_allclose(kernel_target_alignment(np.eye(20), y), 20**-0.5, rtol=1e-6)
    np.testing.assert_allclose(kernel_target_alignment(np.outer(y, y), y), 1, rtol=1e-6)
    for rank in (1, 3, 20):
        root = DRAW.standard_normal((20, rank))
        assert 0 <= kernel_target_alignment(root @ root.T, y) <= 1


@pytest.mark.parametrize("rows", [1, 5, 60])
def test_leading_pairs(rows: int) -> None:
    """Against LAPACK; of the identity, whose eigenvalues are all equal; of a matrix of rank one."""
    with jax.enable_x64(True):
        root = DRAW.standard_normal((rows, rows)) * np.exp(-0.2 * np.arange(rows))
        K, k = root @ root.T, min(rows, 10)
        values, vectors = np.linalg.eigh(K)
        found = leading_pairs(jnp.asarray(K), k)
        np.testing.assert_allclose(found.values, values[::-1][:k], rtol=1e-9)
        overlaps = np.abs(np.sum(vectors[:, ::-1][:, :k] * found.vectors, axis=0))
        np.testing.assert_allclose(overlaps, 1, rtol=1e-7)
        np.testing.assert_allclose(leading_pairs(jnp.eye(rows), k).values, np.ones(k), rtol=1e-12)
        one = leading_pairs(jnp.asarray(np.outer(root[0], root[0])), k)
        np.testing.assert_allclose(one.values[0], root[0] @ root[0], rtol=1e-12)
        np.testing.assert_allclose(one.values[1:], 0, atol=1e-12 * (root[0] @ root[0]))


def test_table(watched: Any, tmp_path: Path) -> None:
    table = watched[0].table
    rows = list(csv.DictReader(io.StringIO(table.csv())))
    assert len(rows) == 22 and rows[0]["loss_rate"] == "" and "alignment_10" in rows[0]
    read = json.loads(table.json())
    assert [row["seed"] for row in read] == [5] * 11 + [2] * 11 and read[0]["loss_rate"] is None
    assert float(rows[3]["kta"]) == read[3]["kta"] == watched[0]["kta"][0, 3]
    table.save(tmp_path / "table.json")
    assert json.loads((tmp_path / "table.json").read_text()) == read


def test_plot(watched: Any) -> None:
    import matplotlib

    matplotlib.use("Agg")
    axes = watched[0].plot(["loss", "alignment"])
    assert [ax.get_ylabel() for ax in axes] == ["loss", "alignment"]
    assert len(axes[0].lines) == 3 and len(axes[1].lines) == 10
    matplotlib.pyplot.close("all")


T = np.unique(np.rint(np.geomspace(1, 1e4, 60)).astype(int))
S = np.log10(T)


def test_critical_times() -> None:
    """Peaks, changes of sign and sigmoids of known place; FWHM of a Gaussian is 2.355 deviations."""
    peak = critical_time(T, 3 + 2 * np.exp(-((S - 2) ** 2) / 0.18), "kta", "peak")
    assert peak.time is not None and peak.low is not None and peak.high is not None
    assert abs(np.log10(peak.time) - 2) < 0.05
    assert abs(np.log10(peak.high / peak.low) - 2.355 * 0.3) < 0.03
    zero = critical_time(T, 1.7 - S, "min_cosine", "zero")
    assert zero.time is not None and abs(np.log10(zero.time) - 1.7) < 1e-12
    assert zero.low is not None and zero.high is not None and zero.low < zero.time < zero.high
    for sign in (1, -1):
        curve = sign * 5 / (1 + np.exp(-(S - 2.4) / 0.15))
        found = critical_time(T, curve, "kta", "sigmoid")
        assert found.time is not None and abs(np.log10(found.time) - 2.4) < 1e-3
        assert found.low is not None and abs(np.log10(found.time / found.low) - 0.3) < 1e-3


@pytest.mark.parametrize(
    ("values", "how", "reason"),
    [
        (S, "peak", "no peak"),
        (1 + S, "zero", "positive from the first step on"),
        (np.sin(9 * S), "sigmoid", "no sigmoid"),
        (np.ones(len(S)), "peak", "does not change"),
        (1 / (1 + np.exp(-3 * (S - 4.5))), "sigmoid", "at the last step or beyond"),
        (1 / (1 + np.exp(3 * (S + 0.5))), "sigmoid", "at the first step or beyond"),
    ],
)
def test_no_critical_time(values: np.ndarray, how: str, reason: str) -> None:
    found = critical_time(T, values, "kta", how)
    assert found.time is None and reason in found.reason


def test_a_small_peak_of_the_loss_rate_does_not_count() -> None:
    small = S + 1.5 * np.exp(-((S - 2) ** 2) / 0.02)
    assert critical_time(T, small, "kta", "peak").time is not None
    assert critical_time(T, small, "loss_rate", "peak").time is None


def test_steps_do_not_depend_on_the_length() -> None:
    short, long = choose_steps(None, 500).tolist(), choose_steps(None, 3000).tolist()
    assert set(short[:-1]) <= set(long) and long[-1] == 3000 and len(long) == 25


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"measures": ["sharp"]}, "names among loss, sharpness"),
        ({"measures": []}, "at least one measure"),
        ({"at": [-1]}, "whole numbers from 0 on"),
        ({"loss": "half"}, '"half-mean"'),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        lnk.watch(X, Y, **arguments)


def test_wrong_use() -> None:
    with pytest.raises(InputError, match="one without measurements"):
        _ = lnk.watch(X, Y).table
    with pytest.raises(InputError, match="as many outputs as the network has, 1"):
        ensemble(lnk.watch(X, np.stack([Y, Y], 1)), steps=1)
    with pytest.raises(InputError, match="a number or a vector"):
        ensemble(lnk.watch(X, Y, [lambda tangent, X, y: tangent.matrix(X)]), steps=1)
