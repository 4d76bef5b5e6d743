"""The twins: their forward pass, their gradients, their widths, and what they refuse."""

from __future__ import annotations

from typing import Any

import cases
import jax
import jax.numpy as jnp
import montecarlo
import numpy as np
import pytest
from flax import nnx
from plain_forward import forward

import lnkernel as lnk
from lnkernel import Dense, GroupNorm, LayerNorm, Node, Relu, RMSNorm, parallel, residual, serial
from lnkernel.arch.convolution import Convolution
from lnkernel.arch.jumps import Jump
from lnkernel.arch.node import node
from lnkernel.finite.modules import ExactNorm
from lnkernel.finite.twins import TwinSettings, twin

TABLE = {name: case.arch for name, case in cases.architectures().items()}
WIDTH = 64  # a multiple of every group size of the table
X = np.concatenate(
    [np.random.default_rng(0).normal(size=(4, 3)), np.ones((1, 3)), np.zeros((1, 3))]
)


def build(arch: Node, in_dim: int = 3, width: int | None = WIDTH, **options: Any) -> Any:
    return lnk.finite.network(arch, in_dim, width, **{"rngs": 1, **options})


def shaken(f: Any) -> Any:
    """With scales and biases of the norms that are no longer 1 and 0."""
    key = jax.random.key(5)
    for path, module in nnx.iter_modules(f):
        if isinstance(module, (nnx.LayerNorm, nnx.RMSNorm, nnx.GroupNorm)) or "norm" in path:
            for place, name in enumerate(("scale", "bias")):
                if (variable := getattr(module, name, None)) is not None:
                    noise = jax.random.normal(jax.random.fold_in(key, place), variable.shape)
                    variable[...] = variable[...] + 0.3 * noise
    return f


# ---------------------------------------------------------------- the forward pass


@pytest.mark.parametrize("parameterization", ["ntk", "standard"])
@pytest.mark.parametrize("name", TABLE)
def test_forward_pass_is_the_plain_one(name: str, parameterization: str) -> None:
    """To the digits of float64, beside the largest output.

    LayerNorm after ReLU drives neighbouring points apart by a factor in every layer, and so what is
    rounded; in 50 layers up to 1e-11.
    """
    arch = TABLE[name]
    bound = 1e-10 if name == "relu LN after 50" else 1e-12
    with jax.enable_x64(True):
        f = shaken(build(arch, parameterization=parameterization, dtype=jnp.float64))
        found = np.asarray(f(X))
    plain = forward(arch, f, X)
    assert found.dtype == np.float64
    assert np.abs(found - plain).max() <= bound * np.abs(plain).max()


@pytest.mark.parametrize("name", cases.FEW)
def test_float32(name: str) -> None:
    """1e-4: the 20 layers of "relu 20", and the squares and cubes, lose up to 3 of 7 digits."""
    arch = TABLE[name]
    f = shaken(build(arch))
    found, plain = f(X), forward(arch, f, X.astype(np.float32).astype(float))
    assert found.dtype == np.float32
    assert np.abs(found - plain).max() <= 1e-4 * np.abs(plain).max()


@pytest.mark.parametrize("name", ["LN first", "residual", "GroupNorm 4", "relu 2, no bias"])
def test_one_seed_is_one_function_in_both_parametrisations(name: str) -> None:
    with jax.enable_x64(True):
        ntk, standard = (
            build(TABLE[name], dtype=jnp.float64, parameterization=p)(X)
            for p in ("ntk", "standard")
        )
        np.testing.assert_allclose(ntk, standard, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("parameterization", "scale"), [("ntk", (1, 1)), ("standard", (0.1, 0.3))])
def test_the_parameters_are_drawn_as_said(
    parameterization: str, scale: tuple[float, float]
) -> None:
    """Variance 1, or W_std²/n_in and b_std²; N numbers show it to ± 5 √(2/N)."""
    layers = serial(Dense(400, 2.0, 0.3), Relu(), Dense(400, 2.0, 0.3), Relu(), Dense(1))
    linear = build(layers, width=400, parameterization=parameterization).layers[2]
    for variable, std in zip((linear.kernel, linear.bias), scale, strict=True):
        values = np.asarray(variable[...]).ravel()
        assert abs(values.mean()) < 5 * std / len(values) ** 0.5
        assert abs(values.var() / std**2 - 1) < 5 * (2 / len(values)) ** 0.5
        assert isinstance(variable, nnx.Param)


# ---------------------------------------------------------------- gradients


def tangent_kernel(f: Any, x: Any) -> np.ndarray:
    """Of a network with one output, from its Jacobian."""
    graph, params, rest = nnx.split(f, nnx.Param, ...)
    jacobian = jax.jacrev(lambda p: nnx.merge(graph, p, rest)(x)[:, 0])(params)
    return sum(
        np.asarray(leaf.reshape(len(x), -1) @ leaf.reshape(len(x), -1).T)
        for leaf in jax.tree.leaves(jacobian)
    )


def parameters(module: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights and biases of the Dense layers, in their order."""
    if hasattr(module, "kernel"):
        bias = np.zeros(module.out_features) if module.bias is None else module.bias[...]
        return [(np.asarray(module.kernel[...]), np.asarray(bias))]
    parts = getattr(module, "layers", getattr(module, "branches", ()))
    return [pair for part in parts for pair in parameters(part)]


def with_one_output(arch: Any) -> Node:
    *layers, last = arch.layers
    return serial(*layers, Dense(1, last.W_std, last.b_std))


@pytest.mark.parametrize(
    "name", [*cases.FEW, "LN twice", "leaky", "abs", "scale and bias after", "residual of features"]
)
def test_gradients_are_those_of_backpropagation_by_hand(name: str) -> None:
    """All at once, in the tangent kernel; at zero and on equal coordinates as well."""
    arch = with_one_output(TABLE[name])
    with jax.enable_x64(True):
        f = build(arch, dtype=jnp.float64)
        found = tangent_kernel(f, X)
        outputs, ntk = montecarlo.of_one(arch, X, parameters(f))
        np.testing.assert_allclose(f(X), outputs, rtol=1e-10, atol=1e-12)
    assert np.abs(found - ntk).max() <= 1e-11 * np.abs(ntk).max()


@pytest.mark.parametrize(
    "name", ["degrees 2, .6, no bias", "p0.6 LN last, no bias", "scale and bias, no bias"]
)
def test_no_nan_in_gradients_at_zero(name: str) -> None:
    """Where powers below 1 are steep and norms have nothing to normalise."""
    with jax.enable_x64(True):
        slopes = nnx.grad(lambda f: f(0 * X).sum())(build(TABLE[name], dtype=jnp.float64))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


def test_gradients_in_the_hyperparameters() -> None:
    """They are leaves of the architecture: of a network's output by W_std, b_std, slope, eps."""
    arch = lnk.mlp(1, 16, norm="first", norm_layer=LayerNorm(0.1), activation=lnk.LeakyRelu(0.2))

    def output(arch: Node) -> Any:
        return build(arch, dtype=jnp.float64)(X[:1])[0, 0]

    with jax.enable_x64(True):
        leaves, structure = jax.tree.flatten(arch)
        slopes = jax.tree.leaves(jax.grad(output)(arch))
        for place, slope in enumerate(slopes):
            up, down = (
                structure.unflatten([v + h * (i == place) for i, v in enumerate(leaves)])
                for h in (1e-6, -1e-6)
            )
            assert abs((output(up) - output(down)) / 2e-6 - slope) < 1e-7


# ---------------------------------------------------------------- normalisation


@pytest.mark.parametrize(
    ("layer", "flax"),
    [
        (LayerNorm(1e-5, scale=True, bias=True), nnx.LayerNorm),
        (RMSNorm(1e-5, scale=True), nnx.RMSNorm),
        (LayerNorm(), nnx.LayerNorm),
        (RMSNorm(), nnx.RMSNorm),
        (GroupNorm(8), nnx.GroupNorm),
    ],
)
def test_normalisation_is_that_of_flax(layer: Any, flax: type) -> None:
    made = build(serial(Dense(8), layer, Dense(1))).layers[1]
    assert type(made) is (flax if layer.eps else ExactNorm)
    assert type(getattr(made, "norm", made)) is flax


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("layer", [LayerNorm(), RMSNorm(), GroupNorm(8)])
def test_exact_normalisation_forgets_the_length(layer: Any, size: float) -> None:
    """Also where its square is not a float32."""
    f = build(serial(Dense(8), layer, Dense(1)))
    np.testing.assert_allclose(f(size * X[:4]), f(X[:4]), rtol=1e-4, atol=1e-5)


def test_a_large_mean_costs_no_digits() -> None:
    """The variance is not E u² - (E u)², which is 0 or 2 here in place of 1.6.

    1e-3: the mean, 4098 1/3, is rounded by 2e-4.
    """
    f = build(serial(LayerNorm(1e-5), Dense(1)), in_dim=3)
    np.testing.assert_allclose(f([[4097.0, 4098.0, 4100.0]]), f([[1.0, 2.0, 4.0]]), rtol=1e-3)


# ---------------------------------------------------------------- widths


def widths(arch: Node, **options: Any) -> list[int]:
    """Of the Dense layers in their order; nothing is computed."""

    def below(module: Any) -> list[int]:
        if hasattr(module, "kernel"):
            return [module.kernel.shape[1]]
        parts = getattr(module, "layers", getattr(module, "branches", ()))
        return [width for part in parts for width in below(part)]

    return below(nnx.eval_shape(lambda: build(arch, **options)))


BLOCK = residual(Dense(8), Relu(), Dense(8))


@pytest.mark.parametrize(
    ("arch", "expected"),
    [
        (lnk.mlp(2, 8, outputs=3), [64, 64, 3]),
        (serial(Dense(8), BLOCK, Dense(2)), [64, 64, 64, 2]),
        (serial(Dense(8), Relu(), Dense(4), LayerNorm()), [64, 4]),
        (serial(Dense(8), BLOCK), [8, 64, 8]),  # what is added to the output is as wide
        (serial(Dense(8), parallel(Dense(2), serial(Dense(8), Relu(), Dense(2)))), [64, 2, 64, 2]),
        (Dense(3), [3]),
    ],
)
def test_width_overrides_hidden_widths_only(arch: Node, expected: list[int]) -> None:
    assert widths(arch) == expected
    assert nnx.eval_shape(lambda: build(arch)(X)).shape == (len(X), expected[-1])


def test_without_width_the_architecture_says_it() -> None:
    assert widths(lnk.mlp(2, 24, outputs=3), width=None) == [24, 24, 3]


def test_without_b_std_there_is_no_bias() -> None:
    for parameterization in ("ntk", "standard"):
        f = build(lnk.mlp(b_std=0.0), parameterization=parameterization)
        assert all(layer.bias is None for layer in f.layers if hasattr(layer, "kernel"))


# ---------------------------------------------------------------- in JAX's hands


def test_it_can_be_built_under_vmap_and_called_under_jit() -> None:
    arch = lnk.mlp(1, norm="first")
    keys = jax.random.split(jax.random.key(3), 4)
    graph = nnx.graphdef(build(arch))
    states = jax.vmap(lambda key: nnx.state(build(arch, rngs=key)))(keys)
    together = jax.jit(jax.vmap(lambda state: nnx.merge(graph, state)(X)))(states)
    alone = [build(arch, rngs=nnx.Rngs(key))(X) for key in keys]
    np.testing.assert_allclose(together, np.stack(alone), rtol=1e-4, atol=1e-5)
    assert np.std(together, axis=0).min() > 0


def test_float64_needs_its_scope() -> None:
    with pytest.raises(lnk.errors.NetworkPrecisionError, match="64-bit mode is off"):
        build(lnk.mlp(), dtype=jnp.float64)
    with jax.enable_x64(True):
        f = build(lnk.mlp(), dtype=jnp.float64)
        assert all(leaf.dtype == np.float64 for leaf in jax.tree.leaves(nnx.state(f)))
        assert build(lnk.mlp())(X).dtype == np.float32  # as it was asked for
    with pytest.raises(lnk.errors.NetworkPrecisionError, match="64-bit mode is off"):
        f(X)


# ---------------------------------------------------------------- completeness and bad input


def every_layer(of: type = Node) -> set[type]:
    """All classes of architectures, except those that other tests make and abstract ones."""
    below = {cls for sub in of.__subclasses__() for cls in every_layer(sub)}
    own = {of} if of.__module__.startswith("lnkernel.arch") else set()
    abstract = {
        Node,
        lnk.Elementwise,
        lnk.PositivelyHomogeneous,
        lnk.Smooth,
        lnk.Piecewise,
        Jump,
        Convolution,
    }
    return below | own - abstract


@pytest.mark.parametrize("layer", sorted(every_layer(), key=lambda cls: cls.__name__))
def test_every_layer_has_a_twin(layer: type) -> None:
    assert twin.dispatch(layer) is not twin.dispatch(Node)


def test_the_test_of_completeness_knows_all_layers() -> None:
    assert {"Dense", "Relu", "GroupNorm", "Parallel", "Identity"} <= {
        cls.__name__ for cls in every_layer()
    }


@node
class Mystery(Node):
    """A layer without a twin."""


def test_a_layer_without_a_twin() -> None:
    settings = TwinSettings(3, None, True, "ntk", jnp.float32, nnx.Rngs(0), "layer 2")
    with pytest.raises(lnk.errors.ArchitectureError, match=r"Mystery at layer 2: .* no twin"):
        twin(Mystery(), settings)
    with pytest.raises(lnk.errors.ArchitectureError, match=r"Mystery at layer 0: .* not known"):
        build(lnk.Serial((Mystery(),)))


REFUSED: list[tuple[Node, dict[str, Any], str]] = [
    (lnk.mlp(norm="first"), {"width": 1}, "LayerNorm at layer 1: it acts on a single feature"),
    (serial(LayerNorm(), Dense(1)), {"in_dim": 1}, "LayerNorm at layer 0: .* a single feature"),
    (serial(Dense(8), GroupNorm(8), Dense(1)), {"width": 20}, "multiple of 8, e.g. 16"),
    (serial(Dense(8), BLOCK), {"width": 4, "in_dim": 0}, "in_dim: expected an integer"),
    (lnk.mlp(), {"width": 2.0}, "width: expected an integer, at least 1, got 2.0"),
    (lnk.mlp(), {"width": 0}, "width: expected an integer, at least 1, got 0"),
    (lnk.mlp(), {"parameterization": "NTK"}, 'expected "ntk" or "standard", got \'NTK\''),
    (lnk.mlp(), {"rngs": "0"}, "rngs: expected an nnx.Rngs, a seed or a key"),
    (lnk.mlp(), {"dtype": jnp.float16}, "dtype: expected float32 or float64, got float16"),
    (lnk.mlp(), {"dtype": "double precision"}, "dtype: expected float32 or float64"),
]


@pytest.mark.parametrize(("arch", "options", "message"), REFUSED)
def test_bad_input_is_refused(arch: Node, options: dict[str, Any], message: str) -> None:
    with pytest.raises(lnk.errors.LnkernelError, match=message):
        build(arch, **options)


def test_an_input_that_is_no_architecture() -> None:
    with pytest.raises(lnk.errors.ArchitectureError, match="expected an architecture"):
        build(nnx.relu)  # type: ignore[arg-type]


@pytest.mark.parametrize("x", [np.ones(3), np.ones((2, 4)), np.ones((2, 3, 1))])
def test_inputs_of_another_shape(x: np.ndarray) -> None:
    with pytest.raises(lnk.errors.InputError, match=r"shape \(points, 3\), .* in_dim"):
        build(lnk.mlp())(x)


def test_branches_that_no_width_brings_together() -> None:
    """The skip is as wide as the input, the branch as wide as its Dense."""
    skip = serial(Dense(8), residual(Dense(16), Relu(), Dense(8)), Dense(1))
    assert widths(skip, width=None) == [8, 16, 8, 1]
    narrow = lnk.Serial((Dense(4), lnk.Parallel((lnk.Identity(), Dense(8))), Dense(1)))
    with pytest.raises(lnk.errors.ArchitectureError, match=r"different widths, \[4, 8\]"):
        build(narrow, width=None)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_inputs_that_are_not_finite(value: float) -> None:
    """Outside of transformations; inside of them no program can raise."""
    net = lnk.finite.network(lnk.mlp(), 3, rngs=0)
    x = np.ones((4, 3), np.float32)
    x[2, 1] = value
    for given in (x, jnp.asarray(x), x.tolist()):
        with pytest.raises(
            lnk.errors.InputError,
            match=f"finite numbers, got {value} at point 2, coordinate 1. Drop",
        ):
            net(given)
    assert not np.isfinite(jax.jit(net)(x)[2]).any()
    images = lnk.finite.network(lnk.cnn(), (4, 4, 3), rngs=0)
    with pytest.raises(
        lnk.errors.InputError, match=r"point 1, coordinate 0, 3, 2. .*all\(\(1, 2, 3\)\)"
    ):
        images(np.where(np.arange(96).reshape(2, 4, 4, 3) == 59, value, 0.5))


def test_inputs_beyond_float32() -> None:
    net = lnk.finite.network(lnk.mlp(), 1, rngs=0)
    with pytest.raises(
        lnk.errors.InputError,
        match=r"range of float32, got 1e[+]39 at point 1, coordinate 0. Scale",
    ):
        net([[1.0], [1e39]])
