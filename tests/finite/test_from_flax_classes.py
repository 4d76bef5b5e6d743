"""Modules of ordinary classes, read by following their calls: what is read, and which line is not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from flax.nnx import gelu as imported_gelu

import lnkernel as lnk
from lnkernel import Dense, LayerNorm, LeakyRelu, Node, Relu, parallel, residual, serial
from lnkernel.finite import empirical_ntk, from_flax, network

D, OUT = Dense(16), Dense(1)
SQUARE = lnk.Homogeneous(2, 1.0, 1.0)
NORM = LayerNorm(1e-6, scale=True, bias=True)


class Net(nnx.Module):
    """Layers, and a `__call__` that is said when it is made: `call(self, x)`."""

    def __init__(self, call: Callable[[Any, Any], Any]) -> None:
        rngs = nnx.Rngs(0)
        self.first = nnx.Linear(3, 16, rngs=rngs)
        self.a, self.b, self.c = (nnx.Linear(16, 16, rngs=rngs) for _ in range(3))
        self.norm = nnx.LayerNorm(16, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.never = nnx.Dropout(0.0, rngs=rngs)
        self.several = nnx.List([nnx.Linear(16, 16, rngs=rngs) for _ in range(2)])
        self.by_name = nnx.Dict({"one": nnx.Linear(16, 16, rngs=rngs)})
        self.sequence = nnx.Sequential(nnx.relu, nnx.Linear(16, 16, rngs=rngs))
        self.act = functools.partial(nnx.leaky_relu, negative_slope=0.2)
        self.scale = nnx.Param(jnp.ones(16))
        self.one = nnx.Param(1.0)
        self.last = nnx.Linear(16, 1, rngs=rngs)
        self.call, self.deep = call, True

    def __call__(self, x: Any) -> Any:
        return self.call(self, x)

    def block(self, x: Any) -> Any:
        return x + self.a(nnx.relu(self.norm(x)))

    @property
    def chosen(self) -> Any:
        return self.b


def plain(net: Any, x: Any) -> Any:
    return net.last(nnx.relu(net.first(x)))


def names(net: Any, x: Any) -> Any:
    x = net.a(jax.nn.relu(net.first(x)))
    x = net.b(imported_gelu(x, approximate=False))
    x = net.c(jnp.tanh(x))
    return net.last(net.act(x))


def own_blocks(net: Any, x: Any) -> Any:
    return net.last(net.block(net.first(x)))


def loops(net: Any, x: Any) -> Any:
    x = net.first(x)
    for layer in net.several:
        x = x + layer(nnx.relu(x))
    if net.deep:
        x = net.by_name["one"](helper(x))
    return net.last(net.sequence(net.chosen(helper(x))))


def helper(x: Any, depth: int = 1) -> Any:
    """It calls itself."""
    return helper(x, depth - 1) if depth else jax.nn.leaky_relu(x, 0.3)


def sums(net: Any, x: Any) -> Any:
    x = net.first(x)
    x = sum([net.a(x), net.b(nnx.relu(x)), x])
    return net.last(x)


def nested_sums(net: Any, x: Any) -> Any:
    x = net.first(x)
    inner = net.a(nnx.relu(x))
    inner = inner + net.b(nnx.relu(inner))
    return net.last(x + net.c(nnx.relu(inner)))


READ: list[tuple[Any, Node]] = [
    (plain, serial(D, Relu(), OUT)),
    (names, serial(D, Relu(), D, lnk.Gelu(), D, lnk.Tanh(), D, LeakyRelu(0.2), OUT)),
    (own_blocks, serial(D, residual(NORM, Relu(), D), OUT)),
    (
        loops,
        serial(
            *(D, residual(Relu(), D), residual(Relu(), D), LeakyRelu(0.3), D),
            *(LeakyRelu(0.3), D, Relu(), D, OUT),
        ),
    ),
    (sums, serial(D, parallel(D, serial(Relu(), D), lnk.Identity()), OUT)),
    (
        nested_sums,
        serial(D, residual(Relu(), D, residual(Relu(), D), Relu(), D), OUT),
    ),
]


@pytest.mark.parametrize(("call", "arch"), READ)
def test_classes_are_read(call: Any, arch: Node) -> None:
    assert from_flax(Net(call)) == arch


LAYERS: dict[Any, Callable[[Net], list[nnx.Linear]]] = {
    plain: lambda net: [net.first, net.last],
    own_blocks: lambda net: [net.first, net.a, net.last],
    sums: lambda net: [net.first, net.a, net.b, net.last],
    nested_sums: lambda net: [net.first, net.a, net.b, net.c, net.last],
}


@pytest.mark.parametrize("call", LAYERS)
def test_what_is_read_computes_the_same(call: Any) -> None:
    """The architecture's twin with the module's parameters."""
    module = Net(call)
    twin = network(from_flax(module), 3, rngs=1, parameterization="standard")
    theirs = [part for _, part in nnx.iter_modules(twin) if isinstance(part, nnx.Linear)]
    theirs.sort(key=lambda part: (part.in_features != 3, part.out_features == 1))
    for part, one in zip(theirs, LAYERS[call](module), strict=True):
        part.kernel[...] = one.kernel[...]
    x = np.random.default_rng(2).normal(size=(4, 3))
    np.testing.assert_allclose(twin(x), module(x), rtol=1e-4, atol=1e-5)


class Sequence(nnx.Module):
    """The same network as an `nnx.Sequential`, whose parts are those of a class."""

    def __init__(self, net: Net) -> None:
        self.first, self.last = net.first, net.last

    def __call__(self, x: Any) -> Any:
        return self.last(nnx.relu(self.first(x)))


def test_empirical_kernels_agree() -> None:
    net = Net(plain)
    alone = Sequence(net)
    sequential = nnx.Sequential(net.first, nnx.relu, net.last)
    assert from_flax(alone) == from_flax(sequential)
    x = np.random.default_rng(0).normal(size=(3, 3))
    np.testing.assert_allclose(empirical_ntk(alone, x), empirical_ntk(sequential, x), rtol=1e-5)


def test_the_kernel_of_a_class_is_that_of_wide_networks() -> None:
    """The mean of f(x) f(x') over starts of the class itself, beside K of what is read."""

    class Wide(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.first = nnx.Linear(3, 256, rngs=rngs)
            self.inner = nnx.Linear(256, 256, rngs=rngs)
            self.last = nnx.Linear(256, 64, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            x = self.first(x)
            return self.last(nnx.relu(x + self.inner(nnx.relu(x))))

    x = np.random.default_rng(0).normal(size=(3, 3))
    K = lnk.nngp(from_flax(Wide(nnx.Rngs(0))))(x)
    outputs = [np.asarray(Wide(nnx.Rngs(seed))(x)) for seed in range(40)]
    found = np.mean([f @ f.T / f.shape[1] for f in outputs], axis=0)
    scale = np.sqrt(np.outer(np.diag(K), np.diag(K)))
    # 40 x 64 outputs: 1/sqrt(2560) = 0.02 of the scale by chance, and 1/256 by the width
    assert abs((found - K) / scale).max() < 0.1
    without = lnk.nngp(serial(Dense(256), Relu(), Dense(256), Relu(), Dense(64)))(x)
    assert abs((found - without) / scale).max() > 0.3  # had the skip been lost


def test_standard_deviations_in_the_order_of_the_data() -> None:
    arch = from_flax(Sequence(Net(plain)), W_std=[1.5, 2.0])
    assert arch == serial(Dense(16, 1.5), Relu(), Dense(1, 2.0))


def uses_a_parameter(net: Any, x: Any) -> Any:
    return net.last(net.first(x) * net.scale)


def joins(net: Any, x: Any) -> Any:
    return jnp.concatenate([net.first(x), net.a(x)])


def asks_for_the_shape(net: Any, x: Any) -> Any:
    return net.last(net.first(x).reshape(-1))


def decides(net: Any, x: Any) -> Any:
    return net.last(x) if x > 0 else net.first(x)


def returns_two(net: Any, x: Any) -> Any:
    return net.first(x), net.last(x)


def twice(net: Any, x: Any) -> Any:
    return net.last(nnx.relu(net.a(nnx.relu(net.a(nnx.relu(net.first(x)))))))


def crossing(net: Any, x: Any) -> Any:
    x = net.first(x)
    y = net.a(nnx.relu(x))
    z = net.b(nnx.relu(x)) + y
    return net.last(z + net.c(nnx.relu(y)))


def random_layer(net: Any, x: Any) -> Any:
    return net.last(net.drop(nnx.relu(net.first(x))))


def unknown_function(net: Any, x: Any) -> Any:
    return net.last(nnx.celu(net.first(x)))


def two_arguments(net: Any, x: Any) -> Any:
    return net.last(x, x)


def asserts(net: Any, x: Any) -> Any:
    assert x.ndim == 3
    return net.last(x)


def sets(net: Any, x: Any) -> Any:
    net.kept = x
    return net.last(x)


REFUSED: list[tuple[Any, str]] = [
    (
        uses_a_parameter,
        r"`return net.last\(net.first\(x\) \* net.scale\)`.*it multiplies the data by parameters, which are trained\.",
    ),
    (joins, r"`return jnp.concatenate.*is not understood: it gives the data to a function that"),
    (asks_for_the_shape, r"it reshapes the data otherwise than by"),
    (decides, r"`return net.last\(x\) if x > 0.*it compares the data"),
    (returns_two, "it returns a tuple, where the output alone is expected"),
    (twice, r"`return net.last.*it calls self.a again"),
    (crossing, "it adds branches that share a layer in their middle"),
    (random_layer, r"Dropout at self.drop: in training mode .* random.*model.eval\(\)"),
    (unknown_function, r"`return net.last\(nnx.celu\(net.first\(x\)\)\)`, is not understood"),
    (two_arguments, "it gives self.last more than the data"),
    (asserts, "`assert x.ndim == 3`, is not understood: it asserts what is not so here"),
    (sets, "it sets self.kept"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_the_line_that_is_not_understood_is_named(call: Any, message: str) -> None:
    with pytest.raises(lnk.errors.ArchitectureError, match=message) as found:
        from_flax(Net(call))
    if call is not returns_two and call is not random_layer and call is not crossing:
        first = call.__code__.co_firstlineno
        line = int(str(found.value).partition("line ")[2].partition(" ")[0])
        assert first < line <= first + 5
        assert "of test_from_flax_classes.py" in str(found.value)


RELUS: dict[str, Callable[[Any], Any]] = {
    "maximum": lambda x: jnp.maximum(x, 0),
    "maximum, the other way round": lambda x: jnp.maximum(0.0, x),
    "maximum with an array": lambda x: jnp.maximum(x, jnp.zeros(())),
    "maximum of lax": lambda x: jax.lax.max(x, 0.0),
    "maximum of NumPy": lambda x: np.maximum(x, 0),
    "clip": lambda x: jnp.clip(x, 0),
    "clip from": lambda x: jnp.clip(x, min=0),
    "partial": functools.partial(jnp.maximum, 0),
}


@pytest.mark.parametrize("name", RELUS)
def test_other_ways_to_write_relu(name: str) -> None:
    """The same architecture, the same kernel, and a net that computes the same."""
    x = np.random.default_rng(0).normal(size=(3, 3))
    written, usual = (Net(relu_by(act)) for act in (RELUS[name], nnx.relu))
    assert np.array_equal(written(x), usual(x))
    assert from_flax(written) == from_flax(usual)
    assert np.array_equal(lnk.ntk(from_flax(written))(x), lnk.ntk(from_flax(usual))(x))


def relu_by(act: Any) -> Any:
    return lambda net, x: net.last(act(net.first(x)))


ACTIVATIONS: list[tuple[Callable[[Any], Any], Node]] = [
    (lambda x: jnp.clip(x, -1, 1), lnk.Clip(-1.0, 1.0)),
    (lambda x: jnp.clip(x, min=-1, max=1), lnk.Clip(-1.0, 1.0)),
    (lambda x: np.clip(x, -1, 1), lnk.Clip(-1.0, 1.0)),
    (lambda x: x.clip(-1, 1), lnk.Clip(-1.0, 1.0)),
    (functools.partial(jnp.clip, min=-1, max=1), lnk.Clip(-1.0, 1.0)),
    (lambda x: jax.nn.hard_tanh(x), lnk.Clip(-1.0, 1.0)),
    (lambda x: jax.nn.relu6(x), lnk.Clip(0.0, 6.0)),
    (lambda x: jax.nn.leaky_relu(x), LeakyRelu(0.01)),
    (lambda x: jax.nn.silu(x), lnk.Silu()),
    (lambda x: jax.nn.gelu(x=x), lnk.Gelu(approximate=True)),
    (lambda x: jax.nn.elu(x, 0.5), lnk.Elu(0.5)),
    (lambda x: jax.nn.selu(x), lnk.Selu()),
    (lambda x: jax.nn.softplus(x), lnk.Softplus()),
    (lambda x: jax.nn.sigmoid(x), lnk.Sigmoid()),
    (lambda x: jax.scipy.special.expit(x), lnk.Sigmoid()),
    (lambda x: jax.lax.logistic(x), lnk.Sigmoid()),
    (lambda x: jnp.tanh(x), lnk.Tanh()),
]


@pytest.mark.parametrize("place", range(len(ACTIVATIONS)))
def test_activations_as_they_are_called(place: int) -> None:
    act, layer = ACTIVATIONS[place]
    assert from_flax(Net(relu_by(act))) == serial(D, layer, OUT)


ENDS: list[Callable[[Any], Any]] = [
    lambda x: x.squeeze(-1),
    lambda x: x.squeeze(axis=(-1,)),
    lambda x: jnp.squeeze(x, -1),
    lambda x: np.squeeze(x, axis=-1),
    lambda x: x[..., 0],
]


@pytest.mark.parametrize("place", range(len(ENDS)))
def test_one_output_without_its_axis(place: int) -> None:
    net = Net(lambda net, x: ENDS[place](plain(net, x)))
    assert net(np.ones((2, 3))).shape == (2,)
    assert from_flax(net) == from_flax(Net(plain)) == serial(D, Relu(), OUT)


def test_a_squeeze_at_the_end_of_a_sequence() -> None:
    rngs = nnx.Rngs(0)
    layers = nnx.Linear(3, 16, rngs=rngs), nnx.relu, nnx.Linear(16, 1, rngs=rngs)
    for end in (ENDS[0], functools.partial(jnp.squeeze, axis=-1)):
        assert from_flax(nnx.Sequential(*layers, end)) == serial(D, Relu(), OUT)


NO_LAYERS: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda net, x: net.last(jnp.maximum(net.first(x), 1)), "of what is not the number 0"),
    (lambda net, x: net.last(jnp.maximum(x, x)), "it gives maximum the data in several places"),
    (lambda net, x: net.last(jnp.minimum(net.first(x), 0)), "a function that is none of the known"),
    (lambda net, x: net.last(jnp.exp(net.first(x))), "a function that is none of the known"),
    (lambda net, x: net.last(np.tanh(net.first(x))), "a function that is none of the known"),
    (lambda net, x: jnp.where(x > 0, x, 0), "it compares the data"),
    (lambda net, x: x * (x > 0), "it compares the data"),
    (lambda net, x: net.first(x) if x == 0 else net.last(x), "it compares the data"),
    (
        lambda net, x: net.last(jnp.clip(net.first(x), None, 1)),
        "otherwise than between two numbers",
    ),
    (lambda net, x: net.first(x).squeeze(-1), "it removes the axis of 16 features"),
    (lambda net, x: jnp.squeeze(net.first(x), -1), "it removes the axis of 16 features"),
    (lambda net, x: jnp.squeeze(net.last(x)), "it removes other axes than the last, axis=-1"),
    (lambda net, x: net.last(net.first(x))[:, 0], "it takes a part of the data"),
    (lambda net, x: net.first(x) * net.first.bias[0], "by an array of JAX, which may be trained"),
    (lambda net, x: net.one * net.first(x), "by parameters, which are trained"),
    (lambda net, x: net.first(x) + net.one, "it adds parameters, which are trained, to the data"),
    (lambda net, x: net.first(x) * net.a(net.first(x)), "it multiplies two different values"),
    (lambda net, x: net.last(net.first(x) ** 3), "it raises the data to a power other than 2"),
    (lambda net, x: net.last(2.0 ** net.first(x)), "a power whose exponent is the data"),
    (lambda net, x: net.last(1 / net.first(x)), "it divides a number by the data"),
    (lambda net, x: net.first(x) / net.a(x), "it divides the data by the data"),
    (lambda net, x: net.first(x) / 0, "it divides the data by 0"),
    (lambda net, x: net.first(x) * 0.0, "it multiplies the data by 0"),
    (lambda net, x: net.first(x) * float("nan"), "it multiplies the data by nan"),
    (lambda net, x: net.first(x) + "a", r"it adds what is no number \(a str\) to the data"),
    (lambda net, x: net.last(x if x.shape[0] == 1 else net.first(x)), "the number of inputs"),
    (lambda net, x: x if x.shape[-1] == 16 else net.first(x), "features, which no layer tells"),
    (lambda net, x: net.last(x).squeeze(-1).ndim, "the shape of the data without their last axis"),
    (lambda net, x: net.first(x) % 2, "the whole part or the rest of a division"),
]


class Stack(nnx.Module):
    """Layers whose parameters are stacked, in the ways of Flax."""

    def __init__(self, way: str) -> None:
        make = nnx.vmap(lambda rngs: nnx.Linear(3, 3, rngs=rngs))
        self.blocks, self.way = make(nnx.Rngs(0).split(2)), way

    def __call__(self, x: Any) -> Any:
        if self.way == "scan":
            scan = nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
            return scan(lambda block, x: nnx.relu(block(x)))(self.blocks, x)
        return self.kept(x)

    @nnx.remat
    def kept(self, x: Any) -> Any:
        return x


@pytest.mark.parametrize("way", ["scan", "remat"])
def test_transformations_of_flax_are_named(way: str) -> None:
    module = Stack(way)
    assert module(jnp.ones((2, 3))).shape == (2, 3)
    with pytest.raises(lnk.errors.ArchitectureError, match=r"such as nnx.scan.*loop") as found:
        from_flax(module)
    assert "Part" not in str(found.value) and "Error" not in str(found.value)


@pytest.mark.parametrize("place", range(len(NO_LAYERS)))
def test_what_is_no_layer_is_told_in_our_words(place: int) -> None:
    call, message = NO_LAYERS[place]
    line = rf"line {call.__code__.co_firstlineno} of test_from_flax_classes.py, .*{message}"
    with pytest.raises(lnk.errors.ArchitectureError, match=line) as found:
        from_flax(Net(call))
    assert "Token" not in str(found.value) and "Error" not in str(found.value)


def test_a_long_line_is_cut(tmp_path: Path) -> None:
    source = "lambda net, x: net.last(jnp.exp(net.first(x)" + " + net.a(net.first(x))" * 30 + "))"
    file = tmp_path / "long.py"
    file.write_text(source)
    net = Net(eval(compile(source, str(file), "eval"), globals()))
    with pytest.raises(lnk.errors.ArchitectureError) as found:
        from_flax(net)
    assert f"`{source[:117]}...`" in str(found.value)


@pytest.mark.parametrize("axis", [-1, 0, None])
def test_a_squeeze_that_is_not_the_end(axis: int | None) -> None:
    rngs = nnx.Rngs(0)
    ends = nnx.Linear(3, 1, rngs=rngs), nnx.Linear(1, 1, rngs=rngs)
    between = functools.partial(jnp.squeeze, axis=axis)
    message = "before the end of the network" if axis == -1 else "other axes than the last"
    with pytest.raises(lnk.errors.ArchitectureError, match=message):
        from_flax(nnx.Sequential(ends[0], between, ends[1]))


class Compiled(nnx.Module):
    """A class whose methods and functions are compiled."""

    def __init__(self, net: Net) -> None:
        self.first, self.a, self.last = net.first, net.a, net.last

    @nnx.jit
    def block(self, x: Any) -> Any:
        return x + self.a(jitted_relu(x))

    @functools.partial(nnx.jit, static_argnames="deep")
    def __call__(self, x: Any, deep: bool = True) -> Any:
        return self.last(own_relu(self.block(self.first(x)) if deep else x))


jitted_relu = jax.jit(jax.nn.relu)


@jax.jit
def own_relu(x: Any) -> Any:
    return jnp.maximum(x, 0)


def test_compiled_calls_and_functions_are_read() -> None:
    net: Any = Compiled(Net(plain))
    arch = serial(D, residual(Relu(), D), Relu(), OUT)
    assert from_flax(net) == arch
    parts = net.first, jitted_relu, own_relu, jax.jit(lambda x: x), Net(plain).last
    assert from_flax(nnx.Sequential(*parts[:2], parts[-1])) == serial(D, Relu(), OUT)
    assert from_flax(nnx.Sequential(parts[0], *parts[2:])) == serial(D, Relu(), lnk.Identity(), OUT)
    assert net(np.ones((2, 3))).shape == (2, 1)  # and nothing was changed


def test_a_line_of_a_compiled_function_is_named() -> None:
    @jax.jit
    def outside(x: Any) -> Any:
        return jnp.exp(x)

    net = Net(lambda net, x: net.last(outside(net.first(x))))
    with pytest.raises(lnk.errors.ArchitectureError, match=r"`return jnp.exp\(x\)`, is not"):
        from_flax(net)


class Parent(nnx.Module):
    """A class to be extended."""

    def __init__(self, net: Net) -> None:
        self.first, self.a, self.last = net.first, net.a, net.last

    def features(self, x: Any) -> Any:
        return nnx.relu(self.first(x))

    @property
    def end(self) -> Any:
        return self.last

    def __call__(self, x: Any) -> Any:
        return self.end(self.features(x))


class Child(Parent):
    def features(self, x: Any) -> Any:
        return nnx.relu(self.a(super().features(x)))


class Grandchild(Child):
    @nnx.jit
    def features(self, x: Any) -> Any:
        return super(Child, self).features(x)

    def __call__(self, x: Any) -> Any:
        return -super().__call__(x) if super().end else x


def test_methods_of_parents_are_read() -> None:
    assert from_flax(Child(Net(plain))) == serial(D, Relu(), D, Relu(), OUT)
    assert from_flax(Grandchild(Net(plain))) == serial(D, Relu(), OUT, lnk.Scale(-1.0))


def test_a_parent_of_flax_is_not_followed() -> None:
    class Doubled(nnx.Linear):
        def __call__(self, x: Any) -> Any:  # type: ignore[override]
            return 2 * super().__call__(x)

    message = r"it calls super\(\).__call__, and the code of Linear is not followed"
    with pytest.raises(lnk.errors.ArchitectureError, match=message):
        from_flax(Doubled(3, 1, rngs=nnx.Rngs(0)))


def test_a_layer_of_nobody_is_refused() -> None:
    """Flax does not find the parameters within nnx.jit, so that they would not be trained."""
    net: Any = Sequence(Net(plain))
    net.last = nnx.jit(net.last)
    assert list(nnx.state(net, nnx.Param)) == ["first"]
    with pytest.raises(lnk.errors.ArchitectureError, match="does not belong to the module"):
        from_flax(net)


HALF = 2**-0.5
NUMBERS: dict[str, tuple[Any, Node]] = {
    "a branch of less weight": (
        lambda net, x: weighed(net, net.first(x)),
        serial(D, parallel(lnk.Identity(), serial(Relu(), D, lnk.Scale(0.5))), OUT),
    ),
    "a sum of variance 1": (
        lambda net, x: net.last(halved(net, net.first(x))),
        serial(D, parallel(lnk.Identity(), serial(Relu(), D)), lnk.Scale(HALF), OUT),
    ),
    "a difference": (
        lambda net, x: subtracted(net, net.first(x)),
        serial(D, parallel(lnk.Identity(), serial(Relu(), D, lnk.Scale(-1.0))), OUT),
    ),
    "a multiple": (
        lambda net, x: net.last(2.0 * nnx.relu(net.first(x))),
        serial(D, Relu(), lnk.Scale(2.0), OUT),
    ),
    "numbers of NumPy": (
        lambda net, x: net.last(np.float32(2.0) * nnx.relu(net.first(x)) * np.int64(1)),
        serial(D, Relu(), lnk.Scale(2.0), OUT),
    ),
    "a quotient": (
        lambda net, x: net.last(nnx.relu(net.first(x)) / 4),
        serial(D, Relu(), lnk.Scale(0.25), OUT),
    ),
    "a negative": (
        lambda net, x: net.last(-nnx.relu(net.first(x))),
        serial(D, Relu(), lnk.Scale(-1.0), OUT),
    ),
    "a number added": (
        lambda net, x: net.last(1 + nnx.relu(net.first(x))),
        serial(D, Relu(), lnk.Shift(1.0), OUT),
    ),
    "a number subtracted": (
        lambda net, x: net.last(nnx.relu(net.first(x)) - 0.5),
        serial(D, Relu(), lnk.Shift(-0.5), OUT),
    ),
    "subtracted from a number": (
        lambda net, x: net.last(1.0 - nnx.relu(net.first(x))),
        serial(D, Relu(), lnk.Scale(-1.0), lnk.Shift(1.0), OUT),
    ),
    "a square": (lambda net, x: net.last(net.first(x) ** 2), serial(D, SQUARE, OUT)),
    "a product of equals": (
        lambda net, x: net.last((lambda u: u * u)(net.first(x))),
        serial(D, SQUARE, OUT),
    ),
}


def weighed(net: Any, h: Any) -> Any:
    return net.last(h + 0.5 * net.a(nnx.relu(h)))


def halved(net: Any, h: Any) -> Any:
    return (h + net.a(nnx.relu(h))) / 2**0.5


def subtracted(net: Any, h: Any) -> Any:
    return net.last(h - net.a(nnx.relu(h)))


@pytest.mark.parametrize("name", NUMBERS)
def test_arithmetic_with_numbers(name: str) -> None:
    """The kernel of the architecture written by hand, whose network of the same parameters computes the same."""
    call, arch = NUMBERS[name]
    module = Net(call)
    read = from_flax(module)
    x = np.random.default_rng(0).normal(size=(4, 3))
    np.testing.assert_allclose(lnk.ntk(read)(x), lnk.ntk(arch)(x), rtol=1e-12)
    np.testing.assert_allclose(lnk.nngp(read)(x), lnk.nngp(arch)(x), rtol=1e-12)
    twin = network(read, 3, rngs=1, parameterization="standard")
    for _, part in nnx.iter_modules(twin):
        if isinstance(part, nnx.Linear):
            source = module.first if part.in_features == 3 else module.a
            source = module.last if part.out_features == 1 else source
            part.kernel[...] = source.kernel[...]
    np.testing.assert_allclose(twin(x), module(x), rtol=1e-4, atol=1e-5)


def test_a_square_is_the_polynomial() -> None:
    x = np.random.default_rng(0).normal(size=(4, 3))
    read = from_flax(Net(NUMBERS["a product of equals"][0]))
    by_hand = serial(D, lnk.Polynomial((0.0, 0.0, 1.0)), OUT)
    np.testing.assert_allclose(lnk.ntk(read)(x), lnk.ntk(by_hand)(x), rtol=1e-12)
    assert read == from_flax(Net(lambda net, x: net.last(jnp.square(net.first(x)))))


def asks_for_axes(net: Any, x: Any) -> Any:
    if x.ndim == 1:
        x = x[None]
    assert len(x.shape) == 2
    h = net.first(x)
    _, features = h.shape
    assert features == h.shape[1] == h.shape[-1] == 16
    y = net.a(nnx.relu(h))
    y = net.last(h + y if y.shape == h.shape else net.b(h) + y)
    assert y.shape[-1] == 1
    assert y.shape != h.shape
    return y


def test_shapes_of_vectors() -> None:
    net = Net(asks_for_axes)
    assert net(np.ones((2, 3))).shape == (2, 1)
    assert from_flax(net) == serial(D, residual(Relu(), D), OUT)


class Images(nnx.Module):
    """A convolution, and a call that is said when it is made."""

    def __init__(self, call: Callable[[Any, Any], Any]) -> None:
        rngs = nnx.Rngs(0)
        self.conv, self.last = nnx.Conv(3, 8, (3, 3), rngs=rngs), nnx.Linear(8, 1, rngs=rngs)
        self.again = nnx.Conv(8, 8, (3, 3), strides=2, rngs=rngs)
        self.call = call

    def __call__(self, x: Any) -> Any:
        return self.call(self, x)


def asks_behind_the_layers(net: Any, x: Any) -> Any:
    x = net.conv(x)
    assert x.ndim == 4 and x.shape[-1] == 8
    x = x.mean(axis=(1, 2))
    assert x.ndim == 2
    return net.last(x)


def asks_before(net: Any, x: Any) -> Any:
    if x.ndim == 3:
        x = x[None]
    return net.last(net.conv(x).mean(axis=(1, 2)))


def compares_images(net: Any, x: Any) -> Any:
    x = net.conv(x)
    y = net.again(x)
    return net.last((y if y.shape == x.shape else nnx.relu(x)).mean(axis=(1, 2)))


def test_shapes_of_images() -> None:
    arch = serial(lnk.Conv(8, (3, 3)), lnk.GlobalAvgPool(), OUT)
    assert from_flax(Images(asks_behind_the_layers)) == arch
    with pytest.raises(lnk.errors.ArchitectureError, match="no layer has told the number of axes"):
        from_flax(Images(asks_before))
    with pytest.raises(lnk.errors.ArchitectureError, match="depends on the shape of the data"):
        from_flax(Images(compares_images))


DROPS: dict[str, Callable[[Net, Any], Any]] = {
    "model.eval()": lambda net, x: net.drop(x),
    "in the call": lambda net, x: net.drop(x, deterministic=True),
    "rate 0": lambda net, x: net.never(x),
    "one for two places": lambda net, x: net.drop(net.drop(x)),
}


@pytest.mark.parametrize("name", DROPS)
def test_dropout_outside_of_training_is_nothing(name: str) -> None:
    net = Net(lambda net, x: net.last(DROPS[name](net, nnx.relu(net.first(x)))))
    if name in ("model.eval()", "one for two places"):
        net.eval()
    x = np.random.default_rng(0).normal(size=(3, 3))
    usual = Net(plain)
    assert np.array_equal(net(x), usual(x))
    assert np.array_equal(lnk.ntk(from_flax(net))(x), lnk.ntk(from_flax(usual))(x))


@pytest.mark.parametrize("when", ["in training", "said in the call", "in a sequence"])
def test_dropout_in_training_is_refused(when: str) -> None:
    net: nnx.Module = Net(random_layer)
    if when == "said in the call":
        net = Net(lambda net, x: net.last(net.drop(net.first(x), deterministic=False)))
        net.eval()
    if when == "in a sequence":
        net = nnx.Sequential(Net(plain).first, nnx.Dropout(0.5, rngs=nnx.Rngs(0)))
    with pytest.raises(lnk.errors.ArchitectureError, match="in training mode it is random"):
        from_flax(net)


def test_a_class_without_a_call_is_not_read() -> None:
    class Empty(nnx.Module):
        pass

    with pytest.raises(
        lnk.errors.ArchitectureError, match="Empty: this type of module is not known"
    ):
        from_flax(Empty())


def test_nothing_is_left_behind() -> None:
    """The user's functions and module are as they were."""
    net = Net(names)
    before = dict(names.__globals__)
    from_flax(net)
    assert all(names.__globals__[name] is value for name, value in before.items())
    assert net(np.ones((1, 3))).shape == (1, 1)
