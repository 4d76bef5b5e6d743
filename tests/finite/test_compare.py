"""Networks of finite width beside their limit: each figure against one made by hand, and the limit."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import lnkernel as lnk
from lnkernel.finite.comparison import trial
from lnkernel.finite.comparison import width as compare_width
from lnkernel.finite.comparison.descent import Descent, descent
from lnkernel.finite.training.ensemble import train_ensemble

ARCH = lnk.mlp(hidden=1, norm="first", b_std=1.0, norm_layer=lnk.RMSNorm(1e-5))  # quick to compile
X = np.linspace(-1, 1, 4)[:, None]
Y = np.sin(2 * X[:, 0])
SEEDS = (3, 4, 5, 6)
X_EVAL = np.array([[-0.8], [0.2], [1.5], [-3.0], [100.0]])  # on the interval, and off it


@pytest.fixture(scope="module")
def found() -> lnk.finite.Comparison:
    return lnk.finite.compare(ARCH, X, Y, X_EVAL, (128, 32), SEEDS, progress=False)


def test_figures_are_those_of_the_networks(found: lnk.finite.Comparison) -> None:
    """Everything again, by the public functions, for the narrower width."""
    row = found.rows[0]
    assert [r.width for r in found.rows] == [32, 128]
    post = lnk.posterior(ARCH, X, Y)
    assert row.learning_rate == post.max_learning_rate / 2
    made = train_ensemble(
        ARCH, X, Y, SEEDS, optax.sgd(row.learning_rate), row.steps, width=32, progress=False
    )
    np.testing.assert_allclose(row.mean[:, 0], made.mean(X_EVAL), rtol=1e-6)
    np.testing.assert_allclose(row.std[:, 0], made.std(X_EVAL), rtol=1e-6)
    assert row.max_output == pytest.approx(float(np.abs(made(X_EVAL)).max()))
    assert row.loss == pytest.approx(float(made.loss.mean()))
    stopped = post.after(row.steps, row.learning_rate)
    np.testing.assert_allclose(row.expected_mean[:, 0], stopped.mean(X_EVAL), rtol=1e-12)
    np.testing.assert_allclose(
        row.expected_std[:, 0] ** 2, stopped.ensemble_variance(X_EVAL), rtol=1e-10
    )
    points = np.concatenate([X, X_EVAL])
    theta = lnk.ntk(ARCH)(points)
    scale = np.sqrt(np.multiply.outer(np.diag(theta), np.diag(theta)))
    errors, drifts = [], []
    for seed, end in zip(SEEDS, made.networks, strict=True):
        start = lnk.finite.empirical_ntk(lnk.finite.network(ARCH, 1, 32, rngs=seed), points)
        errors.append(np.linalg.norm((start - theta) / scale) / len(points))
        change = lnk.finite.empirical_ntk(end, points) - start
        drifts.append(np.linalg.norm(change / scale) / len(points))
    assert row.ntk_error == pytest.approx(np.mean(errors), rel=1e-4)
    assert row.ntk_error_se == pytest.approx(np.std(errors, ddof=1) / 2, rel=1e-3)
    assert row.drift == pytest.approx(np.mean(drifts), rel=1e-3)
    assert row.drift_se == pytest.approx(np.std(drifts, ddof=1) / 2, rel=1e-2)
    bound = lnk.bound(ARCH, X, Y)
    assert (found.bound, found.rkhs) == (bound.value, bound.rkhs)
    np.testing.assert_allclose(found.limit_mean[:, 0], post.mean(X_EVAL), rtol=1e-12)
    z = (row.mean - row.expected_mean) / (row.std / 2)
    np.testing.assert_allclose(row.z(4), z, rtol=1e-12)


def test_exponent_of_two_widths(found: lnk.finite.Comparison) -> None:
    errors = [row.ntk_error for row in found.rows]
    assert found.exponent == pytest.approx(math.log(errors[1] / errors[0]) / math.log(4))
    noise = [row.ntk_error_se / row.ntk_error for row in found.rows]
    assert found.exponent_se == pytest.approx(math.hypot(*noise) / math.log(4))


def test_converged_to_the_goal(found: lnk.finite.Comparison) -> None:
    for row in found.rows:
        assert row.converged and row.steps < 1000
        assert row.expected_loss < 1e-4 * 10  # of the expected loss at the start, which is below 10
        assert np.abs(row.expected_mean - found.limit_mean).max() < 0.05
    assert "Not converged" not in str(found)


def test_expected_loss() -> None:
    """Against the posterior's own mean and variance at the data, before and while it falls."""
    y = np.stack([Y, X[:, 0] ** 2], 1)
    post = lnk.posterior(ARCH, X, y)
    made = descent(ARCH, post._fit.data, post._fit.eigen)
    rate = post.max_learning_rate / 3
    for steps in (0, 1, 7, 50):
        stopped = post.after(steps, rate)
        errors = np.square(stopped.mean(X) - y).sum() + 2 * stopped.ensemble_variance(X).sum()
        assert made.loss(steps, rate) == pytest.approx(0.5 * errors, rel=1e-9)


def test_steps_are_the_fewest() -> None:
    made = Descent(np.array([0.1, 1.0]), np.array([1.0, 1.0]))
    steps = made.steps(0.5, 1e-4, 10_000)
    assert made.loss(steps, 0.5) <= 1e-4 * made.start < made.loss(steps - 1, 0.5)
    assert made.steps(0.5, 1e-4, steps) == steps
    assert made.steps(0.5, 1e-4, steps - 1) == steps - 1


def test_a_run_that_is_cut_short_says_so() -> None:
    c = lnk.finite.compare(ARCH, X, Y, X_EVAL, [32], SEEDS, max_steps=3, progress=False)
    (row,) = c.rows
    assert row.steps == 3 and not row.converged and c.exponent is None
    assert "Not converged at width 32: compared with posterior.after(steps" in str(c)
    assert np.abs(row.expected_mean - c.limit_mean).max() > 0.1


def test_a_rate_at_which_a_network_diverges_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = []

    def refusing(*args: Any, **settings: Any) -> Any:
        optimizer = args[4]
        slope = jnp.ones(())
        rates.append(-float(optimizer.update(slope, optimizer.init(slope))[0]))
        if len(rates) < 3:
            raise lnk.errors.DivergedError(5, 0, 1e9, 1.0, 4, limit=0.1, rate=rates[-1])
        return train_ensemble(*args, **settings)

    monkeypatch.setattr(compare_width, "train_ensemble", refusing)
    c = lnk.finite.compare(ARCH, X, Y, X_EVAL, [32], SEEDS, progress=False)
    limit = lnk.posterior(ARCH, X, Y).max_learning_rate
    np.testing.assert_allclose(rates, [limit / 2, limit / 4, limit / 8], rtol=1e-6)
    assert c.rows[0].learning_rate == limit / 8


def test_several_outputs_in_float64_without_norm() -> None:
    y = np.stack([Y, X[:, 0]], 1)
    with jax.enable_x64(True):
        c = lnk.finite.compare(
            lnk.mlp(hidden=1, outputs=2),
            X,
            y,
            X_EVAL,
            16,
            2,
            max_steps=5,
            dtype=jnp.float64,
            progress=False,
        )
    assert c.rows[0].mean.shape == c.rows[0].expected_std.shape == c.limit_std.shape == (5, 2)
    assert math.isinf(c.bound) and "B(D) = inf" in str(c)


def test_a_network_that_always_diverges(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: Any, **__: Any) -> Any:
        raise lnk.errors.DivergedError(5, 0, 1e9, 1.0, 4, limit=0.1, rate=1.0)

    monkeypatch.setattr(compare_width, "train_ensemble", refusing)
    with pytest.raises(lnk.errors.DivergedError, match="training diverged"):
        lnk.finite.compare(ARCH, X, Y, X_EVAL, [32], seeds=2, progress=False)


def test_table_and_html(found: lnk.finite.Comparison) -> None:
    text, shown = str(found), found._repr_html_()
    assert text.splitlines()[0].split()[:3] == ["width", "NTK", "error"]
    assert text.splitlines()[1].split()[0] == "32" and repr(found) == text
    assert f"width^{found.exponent:.3f}" in text and "theory: -1/2" in text
    assert shown.startswith("<table>") and shown.count("<tr>") == 3
    assert f"<td>{found.rows[1].ntk_error:.4f} ± " in shown


@pytest.mark.parametrize("bound", [None, math.inf])
def test_json(found: lnk.finite.Comparison, bound: float | None, tmp_path: Path) -> None:
    """Strict JSON, an infinite bound included; loaded, every number is the same."""
    if bound is not None:
        fields = {name: getattr(found, name) for name in found.__dataclass_fields__}
        found = lnk.finite.Comparison(**(fields | {"bound": bound, "rkhs": bound}))
    path = tmp_path / "comparison.json"
    found.save(path)
    json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(name))
    again = lnk.finite.Comparison.load(path)
    assert str(again) == str(found) and again.bound == found.bound
    np.testing.assert_array_equal(again.rows[1].std, found.rows[1].std)
    np.testing.assert_array_equal(again.x_eval, X_EVAL)
    for text in ("{}", "[]", "no json"):
        path.write_text(text)
        with pytest.raises(lnk.errors.InputError, match=r"expected a file that Comparison\.save"):
            lnk.finite.Comparison.load(path)


def test_identical_networks_have_no_finite_z(found: lnk.finite.Comparison) -> None:
    fields = {name: getattr(found.rows[0], name) for name in found.rows[0].__dataclass_fields__}
    same = lnk.finite.Row(**(fields | {"std": np.zeros((5, 1))}))
    assert np.isinf(same.z(4)).all()
    exact = lnk.finite.Row(**(fields | {"std": np.zeros((5, 1)), "mean": same.expected_mean}))
    assert (exact.z(4) == 0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": 0}, "seeds: expected a number of at least 2"),
        ({"seeds": 1}, "seeds: expected a number of at least 2"),
        ({"widths": (64, 1)}, "widths: expected integers, at least 2"),
        ({"widths": ()}, "widths: expected integers, at least 2"),
        ({"widths": (8.0,)}, "widths: expected integers, at least 2"),
        (
            {"x_eval": np.ones((3, 2))},
            r"x_eval: expected the dimension of the training inputs, 1, got shape \(3, 2\)",
        ),
        ({"x_eval": [1.0]}, "x_eval: expected a 2-D array"),
        ({"x_eval": [[np.nan]]}, "x_eval: expected finite numbers"),
        ({"y": Y * np.nan}, "y: expected finite numbers"),
        ({"y": Y[:3]}, "y: expected one target per point"),
        ({"y": np.ones((4, 2))}, "y: expected as many outputs as the network has, 1"),
        ({"max_steps": 0}, "max_steps: expected an integer, at least 1"),
        ({"goal": 0.0}, "goal: expected a number between 0 and 1"),
        ({"goal": "small"}, "goal: expected a number between 0 and 1"),
        ({"dtype": "float16"}, "dtype: expected float32 or float64"),
        ({"arch": lnk.finite.network(ARCH, 1, rngs=0)}, "expected an architecture"),
        ({"X": X[[0, 0, 1, 2]]}, "equal points"),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    arguments = {"arch": ARCH, "X": X, "y": Y, "x_eval": X_EVAL, "widths": (8,), "seeds": 2}
    with pytest.raises(lnk.errors.LnkernelError, match=message):
        lnk.finite.compare(**(arguments | change), progress=False)


@pytest.mark.slow
@pytest.mark.parametrize(("norm", "seeds"), [("first", 40), (None, 200)])
def test_trained_ensemble_at_width_4096(norm: str | None, seeds: int) -> None:
    """The mean of the networks within 3 standard errors of theory, on the interval and off it.

    Theory is that of networks trained for as long, and the posterior mean. There are so many
    networks that a standard error is below a tenth of the function: without LayerNorm the spread
    off the interval is larger than the mean.
    """
    arch = lnk.mlp(hidden=1, norm=norm, b_std=1.0)
    c = lnk.finite.compare(arch, X, Y, X_EVAL, (256, 4096), seeds, goal=1e-7, progress=False)
    wide, error = c.rows[1], c.rows[1].std / math.sqrt(seeds)
    assert wide.converged and np.abs(wide.z(seeds)).max() < 3
    assert (np.abs(wide.mean - c.limit_mean) < 3 * error).all()
    assert (error < 0.1 * np.maximum(1, np.abs(c.limit_mean))).all()
    ratio = wide.std / wide.expected_std
    assert np.abs(ratio - 1).max() < 4.5 / math.sqrt(2 * (seeds - 1))  # its standard errors
    assert c.exponent is not None and abs(c.exponent + 0.5) < 0.1
    assert wide.drift < c.rows[0].drift / 4  # width^(-1/2) is 1/4, and it falls faster
    assert norm is None or wide.max_output < c.bound


def test_where_no_bound_is_known_the_rest_is_compared(
    found: lnk.finite.Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(limit: Any) -> None:
        raise lnk.errors.GrowthError("Gelu")

    monkeypatch.setattr(trial, "bound", refuse)
    limits = trial._bounds(lnk.posterior(ARCH, X, Y))
    assert np.isnan(limits).all()
    unknown = dataclasses.replace(found, bound=limits[0], rkhs=limits[1])
    assert "No bound on the output of this network is known" in str(unknown)
    assert "has no bound: B(D) = inf" in str(dataclasses.replace(found, bound=math.inf))
