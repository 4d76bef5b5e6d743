"""Networks of LayerNorms that fit any labels, against mpmath; refusals; the same layers as an architecture."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from flax import nnx

import lnkernel as lnk
from lnkernel.errors import InputError, SeparationError
from lnkernel.nonlinearity.directions import choose_direction
from lnkernel.nonlinearity.ln_net import _find_chain
from lnkernel.nonlinearity.modules import LNNet, PreciseLNNet


def mpmath_scores(chain: Any, points: np.ndarray, digits: int = 600) -> list[Any]:
    """Affine layers and LayerNorms of three neurons, with mean and variance, from the exact parameters."""
    with mpmath.workdps(digits):
        e1 = [mpmath.sqrt(1) / mpmath.sqrt(2) * k for k in (1, -1, 0)]
        e2 = [mpmath.sqrt(1) / mpmath.sqrt(6) * k for k in (1, 1, -2)]
        number = lambda q: mpmath.mpf(q.numerator) / q.denominator  # noqa: E731
        scores = []
        for row in points.tolist():
            t = mpmath.fsum(mpmath.mpf(w) * v for w, v in zip(chain.w, row, strict=True))
            t += number(chain.offset)
            for fold in chain.folds:
                c, s, a, b = map(number, (fold.c, fold.s, fold.a, fold.b))
                h = [(t - c) * p + s * q for p, q in zip(e1, e2, strict=True)]
                mean = mpmath.fsum(h) / 3
                root = mpmath.sqrt(mpmath.fsum((v - mean) ** 2 for v in h) / 3)
                z = [(v - mean) / root for v in h]
                read = [(a * p + b * q) / mpmath.sqrt(3) for p, q in zip(e1, e2, strict=True)]
                t = mpmath.fsum(r * v for r, v in zip(read, z, strict=True))
            scores.append(chain.sign * (t - number(chain.threshold)))
        return scores


def chain_of(points: np.ndarray, second: np.ndarray, bits: int = 53) -> Any:
    return _find_chain(points, second, choose_direction(points, second), bits)


def test_all_labelings_of_six_points_with_four_norms() -> None:
    X = np.array([[0.0], [0.3], [1.0], [1.1], [2.5], [4.0]])
    for labels in itertools.product([False, True], repeat=6):
        second = np.array(labels)
        chain = chain_of(X, second)
        assert chain is not None and len(chain.folds) <= 4
        assert [score > 0 for score in mpmath_scores(chain, X, 60)] == list(labels)


@pytest.mark.parametrize("m", [3, 12, 25])
def test_float64_or_more_is_right(m: int) -> None:
    rng = np.random.default_rng(m)
    X, labels = rng.normal(size=(m, 2)), rng.integers(0, 2, m)
    net = lnk.nonlinearity.ln_net(X, labels)
    assert net.norms <= m - 2
    np.testing.assert_array_equal(net.classify(X), labels)
    np.testing.assert_array_equal(net(X) > 0, labels == 1)
    if isinstance(net, LNNet):  # the same, compiled, whatever the order of its operations
        with jax.enable_x64(True):
            graph, state = nnx.split(net)
            compiled = jax.jit(lambda s, x: nnx.merge(graph, s)(x))(state, jnp.asarray(X))
        np.testing.assert_array_equal(np.asarray(compiled) > 0, labels == 1)
        exact = mpmath_scores(chain_of(X, labels == 1), X, 60)
        np.testing.assert_allclose(net(X), [float(s) for s in exact], atol=1e-6)


def test_more_digits_where_float64_is_not_enough() -> None:
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(70, 1)), rng.choice(["left", "right"], 70)
    net = lnk.nonlinearity.ln_net(X, labels)
    assert isinstance(net, PreciseLNNet) and net.digits > 15 and net.norms <= 68
    np.testing.assert_array_equal(net.classify(X), labels)
    exact = mpmath_scores(net.chain, X, 200)
    np.testing.assert_allclose(net(X), [float(s) for s in exact], rtol=1e-12)
    with pytest.raises(SeparationError, match=f"proved with {net.digits} digits, and 15 are") as e:
        lnk.nonlinearity.ln_net(X, labels, digits=15)
    assert e.value.digits == net.digits


def test_points_that_float64_hardly_tells_apart() -> None:
    X = np.array([[1.0], [1.0 + 2**-52], [1.0 + 2**-51], [2.0]])
    labels = [1, -1, 1, -1]
    np.testing.assert_array_equal(lnk.nonlinearity.ln_net(X, labels).classify(X), labels)


def test_the_layers_are_an_architecture_of_ours() -> None:
    X, labels = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, -1.0], [3.0, 0.5]]), [0, 1, 0, 1]
    net = lnk.nonlinearity.ln_net(X, labels)
    assert isinstance(net, LNNet)
    with jax.enable_x64(True):
        twin = lnk.finite.network(
            net.arch, 2, rngs=1, parameterization="standard", dtype=jnp.float64
        )
        nnx.update(twin, nnx.state(net.network))
        np.testing.assert_allclose(np.asarray(twin(X))[:, 0], net(X), rtol=1e-14)
    assert sum(isinstance(layer, lnk.LayerNorm) for layer in net.arch.layers) == net.norms


@pytest.mark.parametrize(("value", "positive"), [(0, False), (1, True), (-1, False), ("a", False)])
def test_one_class_alone(value: Any, positive: bool) -> None:
    net = lnk.nonlinearity.ln_net([[0.0], [1.0]], [value] * 2)
    assert net.norms == 0 and (net([[0.0], [5.0]]) > 0).tolist() == [positive] * 2
    assert net.classify([[3.0]]).tolist() == [value]


def test_what_is_refused() -> None:
    ln_net = lnk.nonlinearity.ln_net
    with pytest.raises(InputError, match="the same point 0 and 2 with both labels"):
        ln_net([[0.0], [1.0], [-0.0]], [0, 1, 1])
    with pytest.raises(InputError, match="3 different values"):
        ln_net([[0.0], [1.0], [2.0]], [0, 1, 2])
    with pytest.raises(InputError, match=r"shape \(2,\)"):
        ln_net([[0.0], [1.0], [2.0]], [0, 1])
    with pytest.raises(InputError, match="got NaN"):
        ln_net([[0.0], [1.0]], [float("nan"), 1.0])
