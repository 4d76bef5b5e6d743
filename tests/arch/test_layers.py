"""Every layer alone: data equal by value, a pytree, and nothing but valid hyperparameters."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lnkernel as lnk

INF, NAN = float("inf"), float("nan")

# A layer and its leaves: the hyperparameters that one may differentiate, in the order of
# the fields. What decides the structure (width, degree, flags) is none of them.
LAYERS: list[tuple[lnk.Node, list[float]]] = [
    (lnk.Dense(8), [1.0, 0.0]),
    (lnk.Dense(8, W_std=2**0.5, b_std=0.1), [2**0.5, 0.1]),
    (lnk.Relu(), []),
    (lnk.Abs(), []),
    (lnk.Identity(), []),
    (lnk.Scale(-0.5), [-0.5]),
    (lnk.Shift(0.25), [0.25]),
    (lnk.LeakyRelu(), [0.01]),
    (lnk.LeakyRelu(-0.25), [-0.25]),
    (lnk.RectifiedPower(2), []),
    (lnk.RectifiedPower(0.75), []),
    (lnk.Homogeneous(1.5), [1.0, 0.0]),
    (lnk.Homogeneous(3, a=0.5, b=-2.0), [0.5, -2.0]),
    (lnk.Erf(), []),
    (lnk.Gelu(), []),
    (lnk.Gelu(approximate=True), []),
    (lnk.Silu(), [1.0]),
    (lnk.Tanh(), []),
    (lnk.Sigmoid(), []),
    (lnk.Softplus(2.0), [2.0]),
    (lnk.Sin(30.0, 0.5), [30.0, 0.5]),
    (lnk.Cos(2.0), [2.0]),
    (lnk.Gaussian(), []),
    (lnk.Elu(0.5), [0.5]),
    (lnk.Selu(), []),
    (lnk.Clip(0.0, 6.0), [0.0, 6.0]),
    (lnk.Polynomial((1.0, 0.0, 2.0)), [1.0, 0.0, 2.0]),
    (lnk.Hermite(3), []),
    (lnk.Sign(), []),
    (lnk.Step(), []),
    (lnk.LayerNorm(), [0.0]),
    (lnk.LayerNorm(1e-5, scale=True, bias=True), [1e-5]),
    (lnk.RMSNorm(), [0.0]),
    (lnk.RMSNorm(1e-6, scale=True), [1e-6]),
    (lnk.GroupNorm(4), [0.0]),
    (lnk.GroupNorm(8, centre=False, scale=True, bias=True), [0.0]),
    (lnk.LayerNorm(axes="all"), [0.0]),
    (lnk.Conv(8, (3, 3)), [1.0, 0.0]),
    (lnk.Conv(8, 3, 2, "valid", W_std=1.5, b_std=0.25), [1.5, 0.25]),
    (lnk.ConvLocal(8, (3, 3)), [1.0, 0.0]),
    (lnk.ConvTranspose(8, (3, 3), 2, W_std=1.5), [1.5, 0.0]),
    (lnk.Crop(1, -1, 2, axis=-1), []),
    (lnk.Resize((4, -1), "nearest"), []),
    (lnk.Resize(4, antialias=False), []),
    (lnk.AvgPool((2, 2)), []),
    (lnk.AvgPool(2, 1, "SAME"), []),
    (lnk.SumPool((2, 2)), []),
    (lnk.GlobalAvgPool(), []),
    (lnk.GlobalSumPool(), []),
    (lnk.Flatten(), []),
    (lnk.Attention(8), [1.0, 1.0, 0.0]),
    (
        lnk.Attention(8, 2, "identity", "sqrt", 0.5, 2.0, 0.25, lnk.PositionalEmbedding(0.5)),
        [0.5, 2.0, 0.25, 0.5],
    ),
    (lnk.PositionalEmbedding(), [1.0]),
    (lnk.PositionalEmbedding(0.5, 2.0, 1.0), [0.5]),
]
ALL = [layer for layer, _ in LAYERS]
WITH_LEAVES = [layer for layer, leaves in LAYERS if leaves]

every_layer = pytest.mark.parametrize("layer", ALL, ids=repr)


def test_the_table_has_every_layer() -> None:
    layers = {type(layer).__name__ for layer in ALL}
    types = {"Node", "Elementwise", "PositivelyHomogeneous", "Smooth", "Serial", "Parallel"}
    types |= {"Piecewise", "Activate"}  # a function is not written as text: test_activate.py has it
    nodes = {name for name in lnk.arch.__all__ if isinstance(getattr(lnk, name), type)}
    assert layers == nodes - types


@every_layer
def test_equal_by_value(layer: lnk.Node) -> None:
    again = dataclasses.replace(layer)
    assert again is not layer
    assert again == layer and hash(again) == hash(layer)
    assert copy.deepcopy(layer) == layer
    assert [other for other in ALL if other == layer] == [layer]


@every_layer
def test_frozen(layer: lnk.Node) -> None:
    for field in dataclasses.fields(layer):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(layer, field.name, getattr(layer, field.name))
    with pytest.raises(dataclasses.FrozenInstanceError):
        layer.anything_new = 1


@pytest.mark.parametrize(
    "layer",
    [*ALL, lnk.Dense(8, W_std=np.sqrt(2.0)), lnk.LayerNorm(np.float32(0.5))],
    ids=repr,
)
def test_repr_is_python(layer: lnk.Node) -> None:
    assert eval(repr(layer), dict(vars(lnk))) == layer


@pytest.mark.parametrize(("layer", "leaves"), LAYERS, ids=map(repr, ALL))
def test_leaves_are_the_hyperparameters(layer: lnk.Node, leaves: list[float]) -> None:
    assert jax.tree.leaves(layer) == leaves


@every_layer
def test_tree_round_trip(layer: lnk.Node) -> None:
    leaves, tree = jax.tree.flatten(layer)
    assert jax.tree.unflatten(tree, leaves) == layer


@pytest.mark.parametrize(
    ("layer", "doubled"),
    [
        (lnk.Dense(8, 1.5, 0.25), lnk.Dense(8, 3.0, 0.5)),
        (lnk.LeakyRelu(0.25), lnk.LeakyRelu(0.5)),
        (lnk.Homogeneous(1.5, 1.0, -2.0), lnk.Homogeneous(1.5, 2.0, -4.0)),
        (lnk.LayerNorm(0.5, scale=True), lnk.LayerNorm(1.0, scale=True)),
        (lnk.RMSNorm(0.5), lnk.RMSNorm(1.0)),
        (lnk.GroupNorm(4), lnk.GroupNorm(4)),
        (lnk.Conv(8, (3, 3), W_std=1.5), lnk.Conv(8, (3, 3), W_std=3.0)),
        (
            lnk.Attention(8, b_std=0.5, embedding=lnk.PositionalEmbedding(0.5, 3.0)),
            lnk.Attention(
                8, QK_std=2.0, OV_std=2.0, b_std=1.0, embedding=lnk.PositionalEmbedding(1.0, 3.0)
            ),
        ),
    ],
    ids=repr,
)
def test_map_over_leaves(layer: lnk.Node, doubled: lnk.Node) -> None:
    assert jax.tree.map(lambda leaf: 2 * leaf, layer) == doubled


@pytest.mark.parametrize("fill", [0, -1.0, None, "any", NAN], ids=repr)
@pytest.mark.parametrize("layer", WITH_LEAVES, ids=repr)
def test_a_tree_may_hold_anything(layer: lnk.Node, fill: Any) -> None:
    """JAX's own habit: `in_axes` is such a tree of 0 or None, a gradient one of any sign."""
    tree = jax.tree.map(lambda _: fill, layer)
    assert type(tree) is type(layer)


@every_layer
def test_tracers_are_valid(layer: lnk.Node) -> None:
    seen: list[lnk.Node] = []
    jax.eval_shape(lambda arch: seen.append(arch), layer)
    leaves = jax.tree.leaves(seen[0])
    assert len(leaves) == len(jax.tree.leaves(layer))
    assert all(isinstance(leaf, jax.core.Tracer) for leaf in leaves)


@pytest.mark.parametrize(
    ("build", "slope"),
    [
        (lambda s: lnk.Dense(8, W_std=s).W_std ** 2, 3.0),
        (lambda s: lnk.Dense(8, b_std=s).b_std ** 2, 3.0),
        (lambda s: lnk.LeakyRelu(s).b, -1.0),
        (lambda s: lnk.Homogeneous(2, a=s, b=s).a, 1.0),
        (lambda s: lnk.LayerNorm(s).eps, 1.0),
        (lambda s: lnk.RMSNorm(s).eps, 1.0),
    ],
)
def test_built_from_a_tracer(build: Callable[[Any], Any], slope: float) -> None:
    assert jax.grad(build)(1.5) == slope


@pytest.mark.parametrize(
    ("layer", "described"),
    [
        (lnk.Relu(), (1, 1, 0)),
        (lnk.Abs(), (1, 1, 1)),
        (lnk.LeakyRelu(0.25), (1, 1, -0.25)),
        (lnk.RectifiedPower(2.5), (2.5, 1, 0)),
        (lnk.Homogeneous(3, a=0.5, b=-2.0), (3, 0.5, -2.0)),
    ],
    ids=repr,
)
def test_degree_and_coefficients(
    layer: lnk.PositivelyHomogeneous, described: tuple[float, ...]
) -> None:
    assert (layer.degree, layer.a, layer.b) == described


@pytest.mark.parametrize(("centre", "degrees"), [(True, 4), (False, 5)])
def test_degrees_of_freedom(centre: bool, degrees: int) -> None:
    assert lnk.GroupNorm(5, centre=centre).degrees_of_freedom == degrees


def _whole(name: str, least: int, got: Any) -> str:
    wanted = f"{name} must be an integer, at least {least}, got {got!r}"
    return f"{wanted}. Choose {name} = {least} or more."


def _finite(name: str, got: float) -> str:
    return f"{name} must be a finite number, got {got}. Choose a finite {name}."


def _not_negative(name: str, got: float) -> str:
    return f"{name} must not be negative, got {got}. Choose {name} >= 0."


def _steep(got: Any) -> str:
    return (
        f"degree must exceed 1/2, got {got}: below that E phi'(u)^2 is infinite and the NTK does "
        "not exist. Choose a degree > 1/2."
    )


def _plain(got: Any) -> str:
    return f"degree must be a plain finite number, got {got!r}. Write e.g. 1.5."


def _two_degrees(size: int, centre: bool) -> str:
    return (
        f"group_size={size} with centre={centre} leaves two degrees of freedom, for which the "
        f"NTK's diagonal is infinite. Use group_size={size + 1} or more."
    )


REFUSED: list[tuple[type[lnk.Node], dict[str, Any], str]] = [
    *[(lnk.Dense, {"width": w}, _whole("width", 1, w)) for w in (0, -1, 8.0, True, "8", None)],
    *[(lnk.Dense, {"width": 8, "W_std": s}, _finite("W_std", s)) for s in (INF, -INF, NAN)],
    *[
        (lnk.Dense, {"width": 8, "W_std": s}, f"W_std must be positive, got {s}. Choose W_std > 0.")
        for s in (0.0, -1.0, Fraction(-1, 2), np.float32(-2))
    ],
    *[(lnk.Dense, {"width": 8, "b_std": s}, _finite("b_std", s)) for s in (INF, NAN)],
    (lnk.Dense, {"width": 8, "b_std": -0.1}, _not_negative("b_std", -0.1)),
    *[(lnk.LeakyRelu, {"slope": s}, _finite("slope", s)) for s in (INF, NAN)],
    *[
        (layer, {"degree": p}, _steep(p))
        for layer in (lnk.RectifiedPower, lnk.Homogeneous)
        for p in (0.5, 0, -1.5)
    ],
    *[
        (layer, {"degree": p}, _plain(p))
        for layer in (lnk.RectifiedPower, lnk.Homogeneous)
        for p in (NAN, INF, "2", None, 2j)
    ],
    *[(lnk.Homogeneous, {"degree": 2, "a": s}, _finite("a", s)) for s in (INF, NAN)],
    *[(lnk.Homogeneous, {"degree": 2, "b": s}, _finite("b", s)) for s in (INF, NAN)],
    (
        lnk.Homogeneous,
        {"degree": 2, "a": 0.0, "b": 0.0},
        "a and b are both zero, so the activation is zero everywhere. Choose one of them different "
        "from zero.",
    ),
    *[
        (layer, {**first, "eps": eps}, _finite("eps", eps))
        for layer, first in (
            (lnk.LayerNorm, {}),
            (lnk.RMSNorm, {}),
            (lnk.GroupNorm, {"group_size": 4}),
        )
        for eps in (INF, NAN)
    ],
    (lnk.LayerNorm, {"eps": -1e-5}, _not_negative("eps", -1e-5)),
    (lnk.RMSNorm, {"eps": -1e-5}, _not_negative("eps", -1e-5)),
    (lnk.GroupNorm, {"group_size": 4, "eps": -1e-5}, _not_negative("eps", -1e-5)),
    (
        lnk.GroupNorm,
        {"group_size": 4, "eps": 1e-5},
        "eps must be exactly 0, got 1e-05: normalisation in finite groups has no closed form "
        "otherwise. Use eps=0, or LayerNorm, which allows any eps.",
    ),
    *[
        (lnk.GroupNorm, {"group_size": s}, _whole("group_size", 2, s))
        for s in (1, 0, -4, 4.0, True, None)
    ],
    (lnk.GroupNorm, {"group_size": 3}, _two_degrees(3, True)),
    (lnk.GroupNorm, {"group_size": 2, "centre": False}, _two_degrees(2, False)),
]


def _call(case: tuple[type[lnk.Node], dict[str, Any], str]) -> str:
    layer, given, _ = case
    return f"{layer.__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


@pytest.mark.parametrize(("layer", "given", "message"), REFUSED, ids=map(_call, REFUSED))
def test_refused(layer: type[lnk.Node], given: dict[str, Any], message: str) -> None:
    whole = f"^{re.escape(f'{layer.__name__}: {message}')}$"
    with pytest.raises(lnk.errors.ArchitectureError, match=whole) as caught:
        layer(**given)
    assert isinstance(caught.value, ValueError)
    assert (caught.value.layer, caught.value.position) == (layer.__name__, "")


NOT_NUMBERS: list[tuple[type[lnk.Node], dict[str, Any], str]] = [
    *[(lnk.Dense, {"width": 8, "W_std": s}, "W_std") for s in ("2", 1j, None)],
    (lnk.Dense, {"width": 8, "b_std": "2"}, "b_std"),
    (lnk.LeakyRelu, {"slope": "0.1"}, "slope"),
    (lnk.Homogeneous, {"degree": 2, "a": "1"}, "a"),
    (lnk.Homogeneous, {"degree": 2, "b": "1"}, "b"),
    (lnk.LayerNorm, {"eps": "1e-5"}, "eps"),
    (lnk.LayerNorm, {"scale": "no"}, "scale"),
    (lnk.LayerNorm, {"bias": 1e-5}, "bias"),
    (lnk.RMSNorm, {"eps": None}, "eps"),
    (lnk.RMSNorm, {"scale": None}, "scale"),
    (lnk.GroupNorm, {"group_size": 4, "centre": "no"}, "centre"),
    (lnk.GroupNorm, {"group_size": 4, "scale": "no"}, "scale"),
    (lnk.GroupNorm, {"group_size": 4, "bias": "no"}, "bias"),
]


@pytest.mark.parametrize(("layer", "given", "name"), NOT_NUMBERS, ids=map(_call, NOT_NUMBERS))
def test_wrong_type_refused(layer: type[lnk.Node], given: dict[str, Any], name: str) -> None:
    with pytest.raises(lnk.errors.ArchitectureError, match=f"^{layer.__name__}: {name} must be "):
        layer(**given)


def test_arrays_of_one_number_are_valid() -> None:
    """The result of an optimiser's step is a `jax.Array`."""
    assert lnk.Dense(8, W_std=jnp.asarray(1.5)) == lnk.Dense(8, W_std=1.5)
