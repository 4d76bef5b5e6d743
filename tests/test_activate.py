"""Functions of one's own as activations: what they agree with, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_kinked import BEHIND, D, X

import lnkernel as lnk

FEW = X[:4]


def kernel(act: lnk.Elementwise, x: np.ndarray = FEW) -> np.ndarray:
    return np.asarray(lnk.ntk(lnk.serial(D, act, *BEHIND))(x))


@pytest.mark.parametrize(
    ("own", "known"),
    [
        (lnk.Activate(jnp.tanh), lnk.Tanh()),
        (lnk.Activate(jax.nn.relu, kinks=(0,)), lnk.Relu()),
        pytest.param(
            lnk.Activate(lambda u: u * u, derivative=lambda u: 2 * u),
            lnk.Homogeneous(2, 1.0, 1.0),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["tanh", "relu", "square"],
)
def test_what_is_known(own: lnk.Activate, known: lnk.Elementwise) -> None:
    """As all errors are told: beside the entries on the diagonal, since those of nearly orthogonal points are sums of
    larger numbers."""
    right = kernel(known)
    root = np.sqrt(np.diagonal(right))
    assert (np.abs(kernel(own) - right) / root / root[:, None]).max() < 4e-15


def test_it_is_plain_data() -> None:
    one, two = (lnk.Activate(jnp.tanh, kinks=kinks) for kinks in ([1, -1], (-1.0, 1.0)))
    assert one == two and hash(one) == hash(two) and one != lnk.Activate(jnp.tanh)
    assert repr(one) == "Activate(fn=tanh, kinks=(-1.0, 1.0))"
    assert jax.tree.leaves(one) == [] and jax.tree.map(float, one) == one
    net = lnk.finite.network(lnk.serial(lnk.Dense(8), one, lnk.Dense(1)), 3, rngs=0)
    assert lnk.finite.from_flax(net).layers[1] == one
    u = jnp.linspace(-2, 2, 9)
    np.testing.assert_allclose(net.layers[1](u), jnp.tanh(u), rtol=1e-6)


@pytest.mark.slow
def test_a_function_of_single_numbers_only() -> None:
    """lax.cond takes no vectors."""
    elu = lnk.Activate(
        lambda u: jax.lax.cond(u > 0, lambda: u, lambda: jnp.expm1(jnp.minimum(u, 0.0))),
        kinks=(0.0,),
    )
    arch, known = (lnk.serial(D, act, D) for act in (elu, lnk.Elu()))
    np.testing.assert_allclose(lnk.ntk(arch)(FEW[:2]), lnk.ntk(known)(FEW[:2]), rtol=2e-15)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a kink": (lambda: kernel(lnk.Activate(jnp.abs)), r"not analytic at 0, .*kinks=\(0\.0,\)"),
    "two kinks": (
        lambda: kernel(lnk.Activate(lambda u: jnp.maximum(u, 0.3) + abs(u + 1))),
        r"not analytic at -1, 0\.3, .*kinks=\(-1\.0, 0\.3,\)",
    ),
    "one of two": (
        lambda: kernel(lnk.Activate(lambda u: jnp.clip(u, 0.0, 2.0), kinks=(0.0,))),
        r"kinks=\(0\.0, 2\.0,\)",
    ),
    "a jump": (lambda: kernel(lnk.Activate(jnp.sign)), r"kinks=\(0\.0,\)"),
    "a named jump": (lambda: lnk.Activate(jnp.sign, kinks=0), "fn jumps at 0, from -1 to 1"),
    "growth": (lambda: kernel(lnk.Activate(lambda u: jnp.exp(u * u))), "grows faster than"),
    "more growth": (
        lambda: lnk.ntk(lnk.mlp(activation=lnk.Activate(lambda u: jnp.exp(u * u))))(3 * np.eye(3)),
        "grows faster than",
    ),
    "fast": (lambda: kernel(lnk.Activate(lambda u: jnp.tanh(300 * u))), "shorter than 1"),
    "if": (lambda: lnk.Activate(lambda u: u if u > 0 else 0), r"TracerBool.*jnp\.where"),
    "vectors": (
        lambda: lnk.Activate(jax.nn.softmax),
        "cannot be traced by JAX as a function of one",
    ),
    "mixing": (lambda: lnk.Activate(lambda u: u - jnp.mean(u) / 2), "mix coordinates"),
    "shape": (lambda: lnk.Activate(lambda u: jnp.stack([u, u])), r"got shape \(2,\)"),
    "not finite": (lambda: lnk.Activate(jnp.log), r"fn\(0\) is -inf"),
    "not a number far out": (
        lambda: kernel(lnk.Activate(lambda u: jnp.where(u > 8, jnp.nan, jnp.tanh(u)), kinks=(8,))),
        r"it is not a number at 8\.02.* finite everywhere",
    ),
    "complex": (lambda: lnk.Activate(lambda u: 1j * u), "got dtype complex128"),
    "derivative": (
        lambda: lnk.Activate(jnp.tanh, derivative=lambda u: 1 + jnp.tanh(u) ** 2),
        r"derivative\(-3.97\) is 1\.99.*, and JAX",
    ),
    "nearly its derivative": (
        lambda: lnk.Activate(jnp.tanh, derivative=lambda u: (1 + 1e-6) * (1 - jnp.tanh(u) ** 2)),
        r"derivative\(.*\) is .*, and JAX",
    ),
    "single precision": (
        lambda: lnk.Activate(lambda u: jnp.tanh(u.astype(jnp.float32))),
        "fn makes float32 of float64",
    ),
    "half precision": (
        lambda: lnk.Activate(lambda u: u.astype(jnp.bfloat16)),
        "fn makes bfloat16 of float64",
    ),
    "a root": (
        lambda: kernel(lnk.Activate(lambda u: jnp.sqrt(jnp.abs(u)), kinks=(0.0,))),
        "not analytic up to its kink at 0: a derivative is infinite there",
    ),
    "zero": (lambda: kernel(lnk.Activate(lambda u: 0 * u)), "it is 0 wherever"),
    "kinks": (lambda: lnk.Activate(jnp.abs, kinks=("a",)), "kinks must be a tuple of finite"),
    "no function": (lambda: lnk.Activate(3.0), "fn must be a function, got 3.0"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    make, said = REFUSED[name]
    with pytest.raises(lnk.errors.ArchitectureError, match=said):
        make()


def test_what_is_refused_elsewhere() -> None:
    waves = lnk.mlp(hidden=1, activation=lnk.Activate(jnp.sin))
    with pytest.raises(
        lnk.errors.ActivationRangeError, match=r"Activate: its inputs .* 1\.4.e\+03"
    ):
        lnk.ntk(waves)([[1000.0]])
    with pytest.raises(lnk.errors.ArchitectureTextError, match="'Activate' is not known"):
        lnk.parse("serial(Dense(8), Activate(tanh), Dense(1))")
    with pytest.raises(
        lnk.errors.MissingFunctionError, match=r"no certificate .* here of Activate\(fn=tanh"
    ):
        lnk.sup_diagonal(lnk.mlp(norm="first", activation=lnk.Activate(jnp.tanh)), certify=True)
    with pytest.raises(lnk.errors.GrowthError):
        lnk.sup_diagonal(waves)
    with (
        jax.enable_x64(True),
        pytest.raises(lnk.errors.ArchitectureError, match=r"kinks=\(0\.0,\)"),
    ):
        jax.jit(lnk.nngp(lnk.mlp(hidden=1, activation=lnk.Activate(jnp.abs))))(jnp.asarray(FEW))
