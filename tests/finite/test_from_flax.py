"""Flax networks read as architectures: what is read, and why the rest is not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cases
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import lnkernel as lnk
from lnkernel import (
    Abs,
    Dense,
    GroupNorm,
    Homogeneous,
    Identity,
    LayerNorm,
    LeakyRelu,
    Node,
    Relu,
    RMSNorm,
    serial,
)
from lnkernel.finite import from_flax, network
from lnkernel.finite.reading import functions
from lnkernel.finite.reading.registry import Found, Reading, read_module

TABLE = {name: case.arch for name, case in cases.architectures().items()}
RNGS = nnx.Rngs(0)


def linear(n_in: int, n_out: int, **options: Any) -> nnx.Linear:
    return nnx.Linear(n_in, n_out, rngs=RNGS, **options)


def between(*layers: Any) -> nnx.Sequential:
    """In the middle of a network of width 16."""
    return nnx.Sequential(linear(3, 16), *layers, linear(16, 1))


@pytest.mark.parametrize(
    "name", [*cases.FEW, "parallel", "GroupNorm 4, not centred", "leaky", "scales"]
)
def test_twins_are_read_back(name: str) -> None:
    assert from_flax(network(TABLE[name], 3, rngs=0)) == TABLE[name]


def test_twins_in_standard_parametrisation() -> None:
    arch = serial(Dense(64, 1.5, 0.3), LayerNorm(1e-5), Relu(), Dense(8, 1.5), Abs(), Dense(2, 1.5))
    f = network(arch, 3, rngs=0, parameterization="standard")
    assert from_flax(f, W_std=1.5, b_std=[0.3, 7.0, 7.0]) == arch  # the others have no bias


D, R = Dense(16), Dense(1)
# modules are made by the tests: they take seconds, and every worker collects all tests
READ: list[tuple[Callable[[], Any], Node]] = [
    (lambda: between(nnx.relu), serial(D, Relu(), R)),
    (lambda: between(jax.nn.relu), serial(D, Relu(), R)),
    (lambda: between(jnp.abs), serial(D, Abs(), R)),
    (lambda: between(abs), serial(D, Abs(), R)),
    (lambda: between(jnp.square), serial(D, Homogeneous(2, 1.0, 1.0), R)),
    (lambda: between(nnx.identity), serial(D, Identity(), R)),
    (lambda: between(nnx.leaky_relu), serial(D, LeakyRelu(0.01), R)),
    (
        lambda: between(functools.partial(nnx.leaky_relu, negative_slope=0.2)),
        serial(D, LeakyRelu(0.2), R),
    ),
    (
        lambda: between(nnx.LayerNorm(16, rngs=RNGS)),
        serial(D, LayerNorm(1e-6, scale=True, bias=True), R),
    ),
    (
        lambda: between(nnx.LayerNorm(16, use_scale=False, rngs=RNGS)),
        serial(D, LayerNorm(1e-6, bias=True), R),
    ),
    (
        lambda: between(nnx.RMSNorm(16, epsilon=0.1, rngs=RNGS)),
        serial(D, RMSNorm(0.1, scale=True), R),
    ),
    (
        lambda: between(nnx.GroupNorm(16, 4, epsilon=0.0, use_bias=False, rngs=RNGS)),
        serial(D, GroupNorm(4, scale=True), R),
    ),
    (
        lambda: between(nnx.GroupNorm(16, 1, rngs=RNGS)),
        serial(D, LayerNorm(1e-6, scale=True, bias=True), R),
    ),
    (
        lambda: between(nnx.Sequential(nnx.relu, nnx.Sequential(linear(16, 16)))),
        serial(D, Relu(), D, R),
    ),
    (lambda: linear(3, 1), serial(R)),
]


@pytest.mark.parametrize(("make", "arch"), READ)
def test_hand_written_networks_are_read(make: Callable[[], Any], arch: Node) -> None:
    assert from_flax(make()) == arch


@pytest.mark.parametrize(("make", "arch"), READ[:-1])
def test_what_is_read_computes_the_same(make: Callable[[], Any], arch: Node) -> None:
    """The architecture's twin with the module's parameters."""
    module = make()
    twin = network(arch, 3, rngs=1, parameterization="standard")
    numbers = [leaf for leaf in jax.tree.leaves(nnx.state(module)) if leaf.ndim == 2]
    kernels = [part for _, part in nnx.iter_modules(twin) if isinstance(part, nnx.Linear)]
    for part in kernels:
        part.kernel[...] = next(n for n in numbers if n.shape == part.kernel.shape)
    x = np.random.default_rng(2).normal(size=(5, 3))
    np.testing.assert_allclose(twin(x), module(x), rtol=1e-4, atol=1e-5)


def test_he_initialisation_is_noticed() -> None:
    he = nnx.initializers.he_normal()
    module = nnx.Sequential(linear(8, 64, kernel_init=he), nnx.relu, linear(64, 1, kernel_init=he))
    with pytest.raises(
        lnk.errors.ArchitectureError, match=r"Linear at layer 0: .* W_std \(about 1"
    ):
        from_flax(module)
    assert from_flax(module, W_std=2**0.5) == serial(Dense(64, 2**0.5), Relu(), Dense(1, 2**0.5))


@pytest.mark.parametrize("shape", [(1, 1), (3, 8), (64, 64)])
def test_default_initialisation_is_accepted(shape: tuple[int, int]) -> None:
    assert all(from_flax(linear(*shape)) == serial(Dense(shape[1])) for _ in range(50))


def test_random_biases_are_noticed() -> None:
    module = linear(3, 64, bias_init=nnx.initializers.normal(0.5))
    with pytest.raises(
        lnk.errors.ArchitectureError, match=r"biases are not zero.* b_std \(about 0"
    ):
        from_flax(module)
    assert from_flax(module, b_std=0.5) == serial(Dense(64, b_std=0.5))


def trained_norm() -> nnx.LayerNorm:
    norm = nnx.LayerNorm(16, rngs=RNGS)
    norm.scale[...] = norm.scale[...] * 1.1
    return norm


class Mine(nnx.Linear):
    """It may compute anything."""


def shared_twice() -> nnx.Sequential:
    shared = linear(16, 16)
    return between(shared, nnx.relu, shared)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: between(nnx.celu), "celu at layer 1: this function is none of those that are known"),
    (lambda: between(nnx.soft_sign), "soft_sign at layer 1"),
    (lambda: between(lambda u: 3 % u), "<lambda> at layer 1: .* the rest of a division"),
    (lambda: between(functools.partial(nnx.celu, alpha=2.0)), "celu.* at layer 1"),
    (
        lambda: between(nnx.Dropout(0.1, rngs=RNGS)),
        "Dropout at layer 1: in training mode it is random",
    ),
    (lambda: between(nnx.BatchNorm(16, rngs=RNGS)), "BatchNorm at layer 1: .* over a batch"),
    (lambda: between(nnx.PReLU()), "PReLU at layer 1: its slope is trained"),
    (
        lambda: between(nnx.Conv(16, 16, (3,), rngs=RNGS)),
        "Dense at layer 2: the network ends here with an output",
    ),
    (lambda: between(Mine(16, 16, rngs=RNGS)), "Mine at layer 1: .* subclass"),
    (
        lambda: between(nnx.Sequential(nnx.relu, linear(16, 16), nnx.celu)),
        "celu at layer 1, layer 2",
    ),
    (lambda: between(nnx.relu, nnx.relu), "Relu at layer 2: its input is not Gaussian"),
    (lambda: nnx.Sequential(nnx.relu, linear(3, 1)), "Relu at layer 0: it acts on the raw input"),
    (
        lambda: between(nnx.GroupNorm(16, 4, rngs=RNGS)),
        "GroupNorm at layer 1: eps must be exactly 0",
    ),
    (lambda: between(linear(8, 16)), "Linear at layer 1: it takes 8 features, and there are 16"),
    (lambda: between(nnx.LayerNorm(8, rngs=RNGS)), "LayerNorm at layer 1: it takes 8 features"),
    (
        lambda: between(nnx.LayerNorm(16, reduction_axes=0, rngs=RNGS)),
        "layer 1: reduction_axes=0 is not",
    ),
    (
        lambda: between(nnx.RMSNorm(16, axis_name="i", rngs=RNGS)),
        "RMSNorm at layer 1: axis_name='i'",
    ),
    (lambda: between(trained_norm()), "LayerNorm at layer 1: its scale is not 1 everywhere"),
    (lambda: nnx.relu, "module: expected an nnx.Module"),
    (shared_twice, "Linear at layer 3: it stands there a second time"),
    (lambda: nnx.Sequential(), "serial: it needs at least one layer"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_cannot_be_read_says_where_and_why(make: Callable[[], Any], message: str) -> None:
    module = make()
    with pytest.raises(lnk.errors.LnkernelError, match=message):
        from_flax(module)


def test_one_number_for_each_linear() -> None:
    module = between(nnx.relu)
    assert from_flax(module, W_std=[1.0, 2.0]) == serial(D, Relu(), Dense(1, 2.0))
    with pytest.raises(
        lnk.errors.InputError, match=r"one for each of the 2 nnx\.Linear and nnx\.Conv, got"
    ):
        from_flax(module, W_std=[1.0, 2.0, 3.0])


def thrice(u: Any, factor: float = 3.0) -> Any:
    """An activation of someone else's."""
    return factor * jax.nn.relu(u)


def test_other_files_can_register_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_entries", dict(functions._entries))

    def layer(factor: float = 3.0) -> Node:
        return Homogeneous(1, factor, 0.0)

    functions.register_function(thrice, layer(), with_keywords=layer, name="thrice")
    assert from_flax(between(thrice)) == serial(D, layer(), R)
    assert from_flax(between(functools.partial(thrice, factor=2.0))) == serial(D, layer(2.0), R)
    for unknown in (functools.partial(thrice, 1.0), functools.partial(thrice, scale=1.0)):
        with pytest.raises(lnk.errors.ArchitectureError, match="its window and thrice as such"):
            from_flax(between(unknown))


class Halve(nnx.Module):
    """A module of someone else's."""


class Quarter(Halve):
    """It may compute anything."""


@read_module.register
def _(part: Halve, reading: Reading) -> Found:
    return Homogeneous(1, 0.5, -0.5), reading.width


def test_other_files_can_register_modules_of_one_type() -> None:
    assert from_flax(between(Halve())) == serial(D, Homogeneous(1, 0.5, -0.5), R)
    with pytest.raises(lnk.errors.ArchitectureError, match=r"Quarter at layer 1: .* subclass"):
        from_flax(between(Quarter()))


def test_a_function_that_is_not_known_is_told_which_are() -> None:
    said = r"mish at layer 1: .* nnx\.gelu, nnx\.silu, jnp\.tanh, .* lnkernel\.Activate"
    with pytest.raises(lnk.errors.ArchitectureError, match=said):
        from_flax(between(jax.nn.mish))
