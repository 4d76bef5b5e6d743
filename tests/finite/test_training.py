"""Training of one network, beside closed forms and beside the posterior."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import lnkernel as lnk
from lnkernel.finite.training import program
from lnkernel.finite.training.batches import Batches
from lnkernel.finite.training.fingerprint import recognise

train = lnk.finite.train


class Linear(nnx.Module):
    """f(x) = x W, from a given start."""

    def __init__(self, start: Any):
        self.kernel = nnx.Param(jnp.asarray(start))

    def __call__(self, x: Any) -> Any:
        return x @ self.kernel[...]


def problem(n: int = 12, d: int = 3, k: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0).normal
    return draw(size=(n, d)), draw(size=(n, k)), draw(size=(d, k))


@pytest.mark.parametrize("steps", [1, 7, 50])
def test_linear_model_follows_the_closed_form(steps: int) -> None:
    """W_t = W* + (1 - η XᵀX)^t (W_0 - W*) for the loss 1/2 |X W - y|², in float64."""
    x, y, start = problem()
    rate = 0.5 / np.linalg.eigvalsh(x.T @ x).max()
    with jax.enable_x64(True):
        network = Linear(start)
    result = train(network, x, y, optax.sgd(rate), steps)
    best = np.linalg.lstsq(x, y)[0]
    shrunk = np.linalg.matrix_power(np.eye(3) - rate * x.T @ x, steps)
    expected = best + shrunk @ (start - best)
    assert result.network is network
    assert network.kernel[...].dtype == np.float64
    np.testing.assert_allclose(network.kernel[...], expected, rtol=0, atol=1e-13)
    assert result.losses.shape == (steps,)
    assert result.losses[0] == pytest.approx(0.5 * np.sum((x @ start - y) ** 2), rel=1e-14, abs=0)
    assert result.loss == pytest.approx(0.5 * np.sum((x @ expected - y) ** 2), rel=1e-12, abs=0)


def test_mini_batches_descend_on_their_own_loss() -> None:
    """Steps by hand, on n/b · 1/2 Σ_batch; the last batch of an epoch, of 2 points, is smaller."""
    x, y, start = problem()
    batches, rate, steps = Batches(12, 5), 0.003, 7
    with jax.enable_x64(True):
        network = Linear(start)
        result = train(network, x, y, optax.sgd(rate), steps, batch_size=5, seed=3)
        key = jax.random.fold_in(jax.random.key(3), 1)
        W, losses = start, []
        for step in range(steps):
            first = 5 * (step % 3)
            some = np.asarray(batches.order(key, step))[first : first + 5]
            assert len(some) == (2 if step % 3 == 2 else 5)
            error = x[some] @ W - y[some]
            losses.append(12 / len(some) * 0.5 * np.sum(error**2))
            W = W - rate * 12 / len(some) * x[some].T @ error
    np.testing.assert_allclose(network.kernel[...], W, rtol=0, atol=1e-13)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-13)
    assert result.loss == pytest.approx(0.5 * np.sum((x @ W - y) ** 2), rel=1e-13, abs=0)


@pytest.mark.parametrize(("n", "size"), [(12, 5), (10, 2), (7, 1), (9, 8)])
def test_an_epoch_visits_every_point_once(n: int, size: int) -> None:
    batches = Batches(n, size)
    renew_order, choose_points, order_at = map(
        jax.jit, (batches.renew_order, batches.choose_points, batches.order)
    )
    orders = set()
    for key in (jax.random.key(0), jax.random.key(1)):
        order = order_at(key, 0)
        for epoch in range(4):
            seen: list[int] = []
            for step in range(epoch * batches.per_epoch, (epoch + 1) * batches.per_epoch):
                order = renew_order(order, key, step)
                np.testing.assert_array_equal(order, order_at(key, step))  # resumed anywhere
                points, counts = choose_points(order, step)
                seen += np.asarray(points)[np.asarray(counts)].tolist()
            assert sorted(seen) == list(range(n))
            orders.add(tuple(seen))
    assert len(orders) == 8  # epochs and keys differ


def test_mini_batches_are_reproducible() -> None:
    x, y, start = problem()

    def trained(seed: int) -> np.ndarray:
        network = Linear(start.astype(np.float32))
        train(network, x, y, optax.adam(0.01), 20, batch_size=4, seed=seed)
        return np.asarray(network.kernel[...])

    np.testing.assert_array_equal(trained(0), trained(0))
    assert (trained(0) != trained(1)).any()


@pytest.mark.parametrize("steps", [1, 5, 60])
def test_wide_twin_follows_the_posterior(steps: int) -> None:
    """f_trained = f_0 + Θ(x, X) φ(A) (y - f_0(X)) up to some 1/√width; other rates do not fit.

    A network's own f_0 is taken into account, so that what is left is the effect of its width.
    """
    arch, rate, width = lnk.mlp(hidden=1, norm="first", b_std=0.5), 0.05, 2048
    X = np.array([[1.0, 0.2], [-0.5, 1.0], [0.3, -1.2]])
    y, far = np.array([1.0, -0.5, 0.7]), np.array([[2.0, 1.0], [-1.5, -1.5], [0.4, 0.1]])
    starts = [lnk.finite.network(arch, 2, width, rngs=seed) for seed in range(4)]
    first = np.stack([net(np.concatenate([X, far]))[:, 0] for net in starts])
    trained = lnk.finite.train_ensemble(arch, X, y, 4, optax.sgd(rate), steps, width=width)
    moved = np.asarray(trained(far))[:, :, 0] - first[:, 3:]
    post = lnk.posterior(arch, X, (y - first[:, :3]).T)  # the networks as so many outputs

    def deviation(rate: float) -> float:
        return float(np.sqrt(np.mean((moved - post.after(steps, rate).mean(far).T) ** 2)))

    assert deviation(rate) < 4 / math.sqrt(width)
    if steps < 60:  # later on all have converged, whatever the rate
        assert min(deviation(2 * rate), deviation(rate / 2)) > 3 * deviation(rate)


class Noisy(nnx.Module):
    """With variables that are not trained: statistics, and the count of a random key."""

    def __init__(self, rngs: nnx.Rngs):
        self.first, self.last = nnx.Linear(3, 8, rngs=rngs), nnx.Linear(8, 1, rngs=rngs)
        self.norm, self.dropout = nnx.BatchNorm(8, rngs=rngs), nnx.Dropout(0.2, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.last(self.dropout(nnx.relu(self.norm(self.first(x)))))[:, 0]


def test_other_variables_are_carried_along() -> None:
    """As the same steps by an nnx.Optimizer leave them."""
    x, y, _ = problem(k=1)
    ours, theirs = Noisy(nnx.Rngs(0)), Noisy(nnx.Rngs(0))
    train(ours, x, y[:, 0], optax.sgd(0.01), 5)
    optimizer = nnx.Optimizer(theirs, optax.sgd(0.01), wrt=nnx.Param)
    inputs, targets = jnp.asarray(x, jnp.float32), jnp.asarray(y[:, 0], jnp.float32)

    @nnx.jit
    def step(network: Noisy, optimizer: nnx.Optimizer) -> None:
        slope = nnx.grad(lambda net: 0.5 * jnp.sum((net(inputs) - targets) ** 2))(network)
        optimizer.update(network, slope)

    for _ in range(5):
        step(theirs, optimizer)
    for mine, other in zip(
        jax.tree.leaves(nnx.state(ours, (nnx.Param, nnx.BatchStat, nnx.RngCount))),
        jax.tree.leaves(nnx.state(theirs, (nnx.Param, nnx.BatchStat, nnx.RngCount))),
        strict=True,
    ):
        np.testing.assert_allclose(mine, other, rtol=2e-5, atol=1e-6)  # float32, 5 steps
    assert int(ours.dropout.rngs.count[...]) == 5


def test_only_what_is_asked_for_is_trained() -> None:
    x, y, _ = problem(k=1)
    net = Noisy(nnx.Rngs(0))
    first, last = (np.asarray(layer.kernel[...]) for layer in (net.first, net.last))
    train(net, x, y, optax.adam(0.01), 3, wrt=nnx.All(nnx.Param, nnx.PathContains("last")))
    np.testing.assert_array_equal(net.first.kernel[...], first)
    assert (np.asarray(net.last.kernel[...]) != last).all()


LEAST = 0.5 * float(np.linalg.lstsq(*problem()[:2])[1].sum())  # the loss of the best linear map
OPTIMIZERS = {
    "sgd": lambda: optax.sgd(0.01),
    "momentum": lambda: optax.sgd(0.01, momentum=0.9, nesterov=True),
    "adam": lambda: optax.adam(0.05),
    "adamw": lambda: optax.adamw(optax.cosine_decay_schedule(0.05, 200), weight_decay=1e-3),
    "clipped": lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.rmsprop(0.01)),
    "injected": lambda: optax.inject_hyperparams(optax.adam)(learning_rate=0.05),
    "lbfgs": lambda: optax.lbfgs(),
    "polyak": lambda: optax.polyak_sgd(f_min=LEAST),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_any_optimizer(name: str) -> None:
    x, y, start = problem()
    network = Linear(start.astype(np.float32))
    result = train(network, x, y, OPTIMIZERS[name](), 200)
    assert LEAST - 1e-4 < result.loss < LEAST + 0.1 * (result.losses[0] - LEAST)


def test_equal_calls_share_one_program() -> None:
    """Other data, another start, other steps and a new optimizer of the same kind: no new trace."""
    x, y, start = problem(k=2)
    traces = []

    class Counting(Linear):
        def __call__(self, x: Any) -> Any:
            traces.append(x)
            return super().__call__(x)

    def trained(factor: float, rate: float, steps: int) -> int:
        before = len(traces)
        train(Counting((factor * start).astype(np.float32)), factor * x, y, optax.adam(rate), steps)
        return len(traces) - before

    before = program.advance._cache_size()  # type: ignore[attr-defined]  # of jax.jit
    assert trained(1.0, 1e-3, 5) > 1
    assert trained(0.5, 1e-3, 40) == 1  # only the shape of the output is asked for
    assert program.advance._cache_size() == before + 1  # type: ignore[attr-defined]
    assert trained(1.0, 1e-2, 5) > 1  # the counter counts


def test_optimizers_are_told_apart() -> None:
    """Also where they differ only later, in a schedule."""
    params = {"w": jnp.ones(3)}

    def same(a: Any, b: Any) -> bool:
        return recognise(a, params) is recognise(b, params)

    assert same(optax.adam(1e-3), optax.adam(1e-3))
    assert not same(optax.adam(1e-3), optax.adam(2e-3))
    assert not same(optax.adam(1e-3), optax.adam(1e-3, b1=0.8))
    early, late = (optax.join_schedules([lambda _: 0.1, lambda _: 0.2], [b]) for b in (5, 6))
    assert not same(optax.sgd(early), optax.sgd(late))
    tables = [jnp.array([0.1, 0.2]), jnp.array([0.1, 0.3])]
    first, second = (optax.sgd(lambda count, t=t: t[count]) for t in tables)
    assert not same(first, second)


def test_settings_of_jax_do_not_matter() -> None:
    """float32 networks are trained in float32 where 64-bit mode is on, to the same bits."""
    x, y, start = problem()
    networks = []
    for on in (False, True):
        with jax.enable_x64(on):
            network = Linear(start.astype(np.float32))
            train(network, x, y, optax.adam(0.01), 10, batch_size=5)
            assert jnp.result_type(float) == (jnp.float64 if on else jnp.float32)
            networks.append(np.asarray(network.kernel[...]))
    assert networks[1].dtype == np.float32
    np.testing.assert_array_equal(*networks)
