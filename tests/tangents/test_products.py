"""Products with the Jacobian and the kernel against the Jacobian, written out."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from small_models import RNG, X2, X, flat, jacobian, mlp, parameters

import lnkernel as lnk

PARAMS = parameters()
J, J2 = jacobian(mlp, PARAMS, X), jacobian(mlp, PARAMS, X2)
T = lnk.tangent(mlp, PARAMS, batch_size=4)  # three batches, of which the last is filled up
TIGHT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-13}


def test_products_are_those_of_the_jacobian() -> None:
    v = jax.tree.map(lambda leaf: RNG.normal(size=leaf.shape), T.params)
    c = RNG.normal(size=(9, 2))
    np.testing.assert_allclose(T.jvp(X, v), J @ flat(v), **TIGHT)
    np.testing.assert_allclose(flat(T.vjp(X, c)), np.einsum("nkp,nk->p", J, c), **TIGHT)
    kernel = np.einsum("iap,jbp->iajb", J, J)
    np.testing.assert_allclose(T.matvec(X)(c), np.einsum("iajb,jb->ia", kernel, c), **TIGHT)
    mean = np.einsum("iajb,ab->ij", kernel, np.eye(2)) / 2
    np.testing.assert_allclose(T.matvec(X, outputs="mean")(c[:, 0]), mean @ c[:, 0], **TIGHT)
    assert T.jvp(X, v).dtype == np.float64 == T.dtype


def test_gram_and_its_parts() -> None:
    kernel = np.einsum("iap,jbp->iajb", J, J2)
    np.testing.assert_allclose(T.gram(X, X2), kernel, **TIGHT)
    np.testing.assert_allclose(
        T.gram(X, X2, outputs="mean"), np.einsum("iaja->ij", kernel) / 2, **TIGHT
    )
    own = np.einsum("iap,jbp->iajb", J, J)
    np.testing.assert_allclose(T.diagonal(X), own[range(9), :, range(9)], **TIGHT)
    length = np.sqrt(np.einsum("iaia->ia", own))
    cosine = own / length[:, :, None, None] / length
    np.testing.assert_allclose(T.cosine(X), cosine, **TIGHT)
    for by, names in (
        ("layer", ["first", "head", "second"]),
        ("parameter", ["first/b", "first/w", "head/b", "head/w", "second"]),
        (lambda path: path[-1], ["b", "w", "second"]),
    ):
        blocks = T.blocks(X, X2, by=by)
        assert list(blocks) == names
        np.testing.assert_allclose(sum(blocks.values()), kernel, **TIGHT)
    part = lnk.tangent(mlp, PARAMS, wrt="head").gram(X, X2)
    np.testing.assert_allclose(T.blocks(X, X2)["head"], part, **TIGHT)


def test_one_output_has_no_axis() -> None:
    t = lnk.tangent(mlp, parameters(outputs=1))
    assert t.gram(X, X2).shape == (9, 5) and t.value(X).shape == (9,) == t.diagonal(X).shape
    assert t.matvec(X)(np.ones(9)).shape == (9,) and t.cosine(X).shape == (9, 9)


def test_products_of_a_wide_network_need_little_memory() -> None:
    """No intermediate result of a product has a size of inputs times parameters."""
    network = lnk.finite.network(lnk.mlp(hidden=2), 3, width=256, rngs=0)
    t, n = lnk.tangent(network), 64
    points = RNG.normal(size=(n, 3)).astype(np.float32)
    with t.open(("x", points)) as (function, (x,)):
        program = jax.make_jaxpr(
            lambda c: jax.vjp(lambda p: function.on(p, x), function.params)[1](c)
        )(np.ones((n, 1), np.float32))
    largest = max(np.prod(v.aval.shape) for eqn in program.eqns for v in eqn.outvars)
    assert largest <= max(t.size, n * 256) < n * t.size


@pytest.mark.parametrize("wrt", ["layers/0", ["layers/0/kernel", ("layers", 3, "bias")]])
def test_chosen_parameters_of_a_factored_jacobian(wrt: Any) -> None:
    """Kernel or bias alone, by factors and without."""
    arch = lnk.mlp(hidden=1, norm="first", b_std=0.3)
    with jax.enable_x64(True):
        network = lnk.finite.network(arch, 3, width=8, rngs=0, dtype=np.float64)
    t = lnk.tangent(network, wrt=wrt)
    plain, factored = (t.gram(X, X2, method=method) for method in ("jacobian", "structured"))
    np.testing.assert_allclose(factored, plain, **TIGHT)
    whole = lnk.tangent(network).blocks(X, X2, by="parameter")
    chosen = ["/".join(map(str, path)) for path in t.paths]
    np.testing.assert_allclose(sum(whole[name] for name in chosen), plain, **TIGHT)


def test_a_filter_of_nnx_chooses_lora_factors() -> None:
    rngs = nnx.Rngs(0)
    base = nnx.Linear(3, 4, rngs=rngs)
    model = nnx.Sequential(
        nnx.LoRA(3, 2, 4, base_module=base, rngs=rngs), nnx.Linear(4, 1, rngs=rngs)
    )
    t = lnk.tangent(model, wrt=nnx.LoRAParam)
    assert [path[-1] for path in t.paths] == ["lora_a", "lora_b"]
    assert lnk.tangent(model, wrt=lambda path: path[-1] == "lora_b").size == 8
    assert not t.blocks(X, by="parameter")["layers/0/lora_a"].any()  # because B = 0


def test_another_state_of_the_same_module() -> None:
    """And the parameters of a fit put back into it."""
    network = lnk.finite.network(lnk.mlp(hidden=1), 3, width=8, rngs=0)
    other = lnk.finite.network(lnk.mlp(hidden=1), 3, width=8, rngs=1)
    t = lnk.tangent(network, nnx.state(other, nnx.Param))
    np.testing.assert_array_equal(t.gram(X), lnk.tangent(other).gram(X))
    fit = t.ridge(X, X[:, 0], 0.1)
    state = nnx.state(other, nnx.Param)  # of variables, and more than is chosen below
    np.testing.assert_array_equal(t.jvp(X, state), t.jvp(X, nnx.as_pure(state)))
    assert np.abs(lnk.tangent(other, wrt="layers/0").jvp(X, state) - t.jvp(X, state)).max() > 0.1
    nnx.update(network, fit.params)
    np.testing.assert_allclose(
        flat(nnx.state(network, nnx.Param)) - flat(t.params), flat(fit.change), atol=1e-6
    )


def of_roots() -> nnx.Module:
    """Not a number wherever its linear layer is negative."""
    return nnx.Sequential(nnx.Linear(3, 1, rngs=nnx.Rngs(0)), jnp.sqrt)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lnk.tangent(mlp), r"model: expected a flax\.nnx\.Module.* without params"),
        (lambda: lnk.tangent(3, PARAMS), r"model: expected a flax\.nnx\.Module"),
        (lambda: lnk.tangent(mlp, PARAMS, wrt="heads"), "The paths are first/b, first/w, head/b"),
        (lambda: lnk.tangent(mlp, PARAMS, wrt=["head", "heads/w"]), "got heads/w, which has none"),
        (lambda: lnk.tangent(mlp, PARAMS, wrt=[]), "wrt: expected a choice of at least one"),
        (lambda: lnk.tangent(mlp, PARAMS, wrt=3), r"wrt: expected a filter of flax\.nnx"),
        (lambda: lnk.tangent(mlp, {}), "model: expected at least one trained parameter"),
        (lambda: lnk.tangent(mlp, PARAMS, dtype=np.int32), "dtype: expected float32 or float64"),
        (lambda: T.jvp(X, 1.0), "v: expected a tree like the chosen parameters"),
        (
            lambda: T.vjp(X, np.full((9, 2), np.nan)),
            r"c: expected finite numbers, got nan at \(0, 0\)",
        ),
        (lambda: lnk.tangent(lambda w, x: x @ w, np.array([1, np.nan, 1])), "finite parameters"),
        (lambda: lnk.tangent(lambda w, x: jnp.log(x @ w), np.ones(3)).value(X), "finite outputs"),
        (lambda: lnk.tangent(of_roots()).gram(X), "finite slopes, got nan or inf at input"),
        (lambda: lnk.tangent(of_roots()).ridge(X, X[:, 0]), "a network with finite outputs"),
        (lambda: T.vjp(X, np.ones(9)), r"c: expected one number for every .* shape \(9, 2\)"),
        (lambda: T.jvp(X, jax.tree.map(lambda a: a * np.nan, PARAMS)), "v: expected finite"),
        (lambda: lnk.tangent(lambda w, x: (x @ w).astype(int), np.ones(3)).gram(X), "dtype int"),
        (lambda: lnk.tangent(lambda w, x: (x @ w, 1), np.ones(3)).gram(X), "got a tuple"),
        (lambda: lnk.tangent(lambda w, x: (x @ w).sum(), np.ones(3)).gram(X), r"of shape \(\)"),
        (lambda: lnk.tangent(of_roots(), {"a": 1}), "params: expected a state of the module"),
        (
            lambda: lnk.tangent(of_roots(), nnx.state(nnx.Linear(3, 1, rngs=nnx.Rngs(0)))),
            "it has not",
        ),
        (lambda: lnk.tangent(of_roots()).linear({"a": 1}, X), "params: expected a tree like"),
        (lambda: T.gram(X, outputs="sum"), 'outputs: expected "mean" or "full"'),
        (lambda: T.blocks(X, by="block"), 'by: expected "layer" or "parameter"'),
        (lambda: jax.jit(T.gram)(X), r"outside of jax\.jit"),
        (lambda: lnk.tangent(mlp, PARAMS, wrt="head/b").cosine(X[:, :2]), "x: expected inputs"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(lnk.errors.InputError, match=message):
        call()
