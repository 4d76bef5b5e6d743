"""Derivatives by inputs and by hyperparameters, against differences of the 50-digit oracle.

Points and hyperparameters lie on a coarse binary grid, so that shifted ones are exact floats;
the oracle's digits then make a difference quotient of step 2^-34 exact beyond float64.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import cases
import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from mpmath import mp, mpf
from numpy.typing import NDArray

import lnkernel as lnk
from lnkernel import (
    Abs,
    Dense,
    GroupNorm,
    Homogeneous,
    LayerNorm,
    LeakyRelu,
    Node,
    RectifiedPower,
    Relu,
    RMSNorm,
    residual,
    serial,
)

Array = NDArray[np.float64]
STEP = 2.0**-34


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    """Transformations need 64-bit mode; differences of the oracle need its digits."""
    with jax.enable_x64(True), mp.workdps(60):
        yield


def dense(b_std: float = 0.125) -> Dense:
    return Dense(8, W_std=1.5, b_std=b_std)


def both(arch: Node, x: Any, y: Any) -> Any:
    """(K, Theta) of one pair."""
    return jnp.stack([k[0, 0] for k in lnk.kernels(arch)(x[None], y[None])])


# ---------------------------------------------------------------- differences of the oracle


def central(f: Callable[[float], Any], step: float = STEP) -> Any:
    """f'(0) up to O(step^4); f gives a list of mpf."""
    near, far = (np.array(f(h)) - np.array(f(-h)) for h in (step, 2 * step))
    return (8 * near - far) / (12 * step)


def one_sided(f: Callable[[float], Any], step: float = STEP) -> Any:
    """f'(0+) up to O(step^2), from arguments >= 0."""
    here, near, far = (np.array(f(h)) for h in (0.0, step, 2 * step))
    return (4 * near - 3 * here - far) / (2 * step)


def mixed(f: Callable[[float, float], Any], step: float) -> Any:
    """d^2 f/ds dt at 0 up to O(step^4), or to O(step) if third derivatives jump."""

    def corners(h: float) -> Any:
        signs = ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
        return sum(s * np.array(f(a * h, b * h)) for a, b, s in signs) / (4 * mpf(h) ** 2)

    return (4 * corners(step) - corners(2 * step)) / 3


def gradient(arch: Node, x: Array, y: Array, step: float = STEP) -> Array:
    """d(K, Theta)/dx, shape (2, d)."""
    axes = np.eye(len(x))
    rows = [central(lambda h, e=e: oracle.kernels(arch, x + h * e, y), step) for e in axes]
    return np.array(rows, float).T


def scales(arch: Node, x: Array, y: Array) -> Array:
    """sqrt(G(x,x) G(y,y)) of K and Theta: the unit that errors are measured in."""
    pair = oracle.pair(arch, x, y)
    return np.array([pair.K_scale, pair.Theta_scale], float)


# ---------------------------------------------------------------- by the inputs

X = np.array([0.75, -0.5, 1.25])
Y = np.array([-0.25, 1.5, 0.5])
SMOOTH: dict[str, tuple[Array, Array, float]] = {  # x, y, step of the difference
    "generic": (X, Y, STEP),
    "generic, far": (X, -64 * Y, STEP),
    "1e-3 apart": (X, X + 2.0**-10 * Y, STEP),
    "1e-7 apart": (X, X + 2.0**-23 * Y, 2.0**-40),
    "orthogonal": (X, np.array([0.5, 0.75, 0.0]), STEP),
}
# Smooth only behind a bias, which bends the space around 0 and every line through it.
WITH_BIAS: dict[str, tuple[Array, Array, float]] = {
    "zero": (0 * X, Y, STEP),
    "collinear": (X, 2 * X, STEP),
    "antipodal": (X, -X, STEP),
    "almost antipodal": (X, -X + 2.0**-20 * Y, STEP),
}
NETWORKS: dict[str, Node] = {
    "relu": serial(dense(), Relu(), dense(), Relu(), dense()),
    "relu, no bias": serial(dense(0.0), Relu(), dense(0.0)),
    "leaky, LN after": serial(dense(), LeakyRelu(0.25), LayerNorm(eps=2.0**-7), dense()),
    "LN first, p1.5": serial(dense(), LayerNorm(), RectifiedPower(1.5), dense()),
    "scale and bias, p2": serial(
        dense(), LayerNorm(2.0**-7, scale=True, bias=True), RectifiedPower(2), dense()
    ),
    "residual": serial(dense(), residual(dense(), Abs(), dense()), RMSNorm(), dense()),
    "GroupNorm": serial(dense(), GroupNorm(4), dense()),
    "general .75": serial(dense(), Homogeneous(0.75, 1.0, -0.5), dense()),
    "LN on the input": serial(LayerNorm(2.0**-7), dense(), Relu(), dense()),
}
HAS_KINK = ("relu", "relu, no bias", "leaky, LN after", "residual", "GroupNorm")


def smooth_points(name: str) -> dict[str, tuple[Array, Array, float]]:
    if name == "relu, no bias":
        return SMOOTH
    if name == "LN on the input":  # the constant vector is its zero
        return {tag: row for tag, row in (SMOOTH | WITH_BIAS).items() if tag != "zero"}
    return SMOOTH | WITH_BIAS


@cache
def by_input(name: str) -> Callable[[Any, Any], Any]:
    """d(K, Theta)/dx at pairs listed side by side."""
    arch = NETWORKS[name]
    return jax.jit(jax.vmap(jax.jacfwd(lambda x, y: both(arch, x, y))))


def listed(table: dict[str, tuple[Array, Array, float]]) -> tuple[Array, Array]:
    """The pairs of a table side by side; always 16, so that it is compiled once."""
    rows = [row[:2] for row in table.values()]
    x, y = zip(*rows + [(X, Y)] * (16 - len(rows)), strict=True)
    return np.stack(x), np.stack(y)


def at_points(name: str, table: dict[str, tuple[Array, Array, float]]) -> dict[str, Array]:
    """d(K, Theta)/dx at a table of points."""
    slopes = np.asarray(by_input(name)(*listed(table)))
    return dict(zip(table, slopes, strict=False))


@pytest.mark.parametrize("name", NETWORKS)
def test_gradient_by_the_input(name: str) -> None:
    arch, table = NETWORKS[name], smooth_points(name)
    off = {}
    for tag, got in at_points(name, table).items():
        x, y, step = table[tag]
        want = gradient(arch, x, y, step)
        unit = scales(arch, x, y)[:, None] + np.abs(want).max()  # below degree 1 slopes are huge
        off[tag] = float((np.abs(got - want) / unit).max())
    assert not {tag: error for tag, error in off.items() if not error < 2e-15}


@pytest.mark.parametrize("name", HAS_KINK)
def test_gradient_at_equal_inputs_is_the_mean_of_the_one_sided_ones(name: str) -> None:
    """f(h) = f(0) + b h + c |h| + O(h^2): b is the answer, and c is not 0."""
    arch, step = NETWORKS[name], 2.0**-45
    got = at_points(name, {"self": (X, X, step)})["self"]
    kinks = []
    for axis, e in enumerate(np.eye(3)):
        here, up, down = (np.array(oracle.kernels(arch, X + h * e, X)) for h in (0.0, step, -step))
        right, left = (up - here) / step, (here - down) / step
        kinks.append(float(right[1] - left[1]))
        want = np.array((left + right) / 2, float)
        error = np.abs(got[:, axis] - want) / scales(arch, X, X)
        assert error.max() < 1e-12, (axis, error)  # of which 2^-45 is the difference quotient's
    assert min(kinks) < -0.01


@pytest.mark.parametrize("name", NETWORKS)
def test_gradient_is_finite_everywhere(name: str) -> None:
    zero = 0 * X
    nasty = {
        "self": (X, X),
        "zero": (zero, Y),
        "to zero": (Y, zero),
        "zero and zero": (zero, zero),
        "antipodal": (X, -X),
        "collinear": (X, 2 * X),
        "constant": (np.ones(3), X),
        "constant, self": (np.ones(3), np.ones(3)),
        "one bit apart": (X, X * (1 + 2.0**-52)),
        "near 0": (1e-150 * X, Y),
        "far": (1e60 * X, 1e60 * Y),
        "far, near-duplicate": (1e60 * X, 1e60 * (X + 1e-9)),
    }
    got = at_points(name, {tag: (*row, 0.0) for tag, row in nasty.items()})
    assert not [tag for tag, value in got.items() if not np.isfinite(value).all()]


@pytest.mark.parametrize("name", ["leaky, LN after", "general .75"])
def test_gradient_of_the_diagonal(name: str) -> None:
    """Theta(x, x) is smooth, whatever Theta(x, .) is at x; also at 0, behind a bias."""
    arch = NETWORKS[name]

    def ends(x: Any) -> Any:
        return jnp.stack([k[0] for k in lnk.kernels(arch).diagonal(x[None])])

    slopes = jax.jit(jax.vmap(jax.jacfwd(ends)))(np.stack([X, 0 * X, 64 * Y]))
    for x, got in zip((X, 0 * X, 64 * Y), slopes, strict=True):

        def along(h: float, e: Array, x: Array = x) -> tuple[mpf, mpf]:
            return oracle.kernels(arch, x + h * e, x + h * e)

        want = [central(lambda h, e=e: along(h, e)) for e in np.eye(3)]
        error = np.abs(got - np.array(want, float).T) / scales(arch, x, x)[:, None]
        assert error.max() < 2e-15, (x, error)


# ---------------------------------------------------------------- by the hyperparameters


HYPER: dict[str, Node] = {
    "slope, b_std = 0, eps = 0": serial(
        dense(), LeakyRelu(0.25), dense(0.0), LayerNorm(0.0), Homogeneous(1.5, 0.75, -0.5), dense()
    ),
    "eps, scale, bias": serial(
        dense(0.0),
        LayerNorm(2.0**-7, scale=True, bias=True),
        Homogeneous(2, 0.75, 0.5),
        RMSNorm(0.0),
        dense(),
    ),
    "residual": serial(
        dense(0.0), residual(LayerNorm(0.0), dense(), Abs(), dense(0.0)), LayerNorm(2.0**-7)
    ),
    "GroupNorm": serial(dense(), GroupNorm(8), dense(0.0)),
    "a loop over 20 blocks": serial(*(dense(), Relu()) * 20, dense()),
}


@pytest.mark.parametrize("name", HYPER)
def test_gradient_by_hyperparameters(name: str) -> None:
    """Of every leaf that may vary; of the deep network of the first, one between, the last two."""
    arch = HYPER[name]
    leaves, tree = jax.tree.flatten(arch)
    names = leaf_names(arch)
    x, y = np.stack([X, X]), np.stack([Y, X + 2.0**-10 * Y])
    chosen = [i for i in range(len(leaves)) if len(leaves) < 20 or i in (0, 20, 40, 41)]
    chosen = [i for i in chosen if names[i] != ("GroupNorm", "eps")]  # it must be 0

    def kernels(values: list[Any]) -> Any:
        changed = list(leaves)
        for i, value in zip(chosen, values, strict=True):
            changed[i] = value
        grams = lnk.kernels(jax.tree.unflatten(tree, changed))(x, y)
        return jnp.stack([jnp.diagonal(gram) for gram in grams])

    got = jax.jit(jax.jacfwd(kernels))([leaves[i] for i in chosen])
    off = {}
    for i, slopes in zip(chosen, got, strict=True):
        quotient = one_sided if names[i][1] == "eps" else central  # eps >= 0
        for slope, *pair in zip(slopes.T, x, y, strict=True):

            def moved(h: float, i: int = i, pair: Any = pair) -> tuple[mpf, mpf]:
                return oracle.kernels(with_leaf(arch, i, leaves[i] + h), *pair)

            want = np.array(quotient(moved), float)
            error = np.abs(slope - want) / (scales(arch, *pair) + np.abs(want).max())
            off[(i, *names[i])] = max(float(error.max()), off.get((i, *names[i]), 0.0))
    assert not {leaf: error for leaf, error in off.items() if not error < 1e-14}


def leaf_names(arch: Node) -> list[tuple[str, str]]:
    """(layer, hyperparameter) of every leaf, in the order of `jax.tree.leaves`."""
    if isinstance(arch, (lnk.Serial, lnk.Parallel)):
        parts = arch.layers if isinstance(arch, lnk.Serial) else arch.branches
        return [name for part in parts for name in leaf_names(part)]
    fields = [f.name for f in dataclasses.fields(arch) if not f.metadata.get("static")]  # type: ignore[arg-type]
    return [(type(arch).__name__, field) for field in fields]


def with_leaf(arch: Any, index: int, value: float) -> Any:
    """The architecture with one leaf replaced, for the oracle, which knows layers by name alone.

    Not a `Node`: those refuse the b_std < 0 that a difference at b_std = 0 needs.
    """
    for kind in ("layers", "branches"):
        if hasattr(arch, kind):
            parts = []
            for part in getattr(arch, kind):
                count = len(leaf_names(part))
                parts.append(with_leaf(part, index, value) if 0 <= index < count else part)
                index -= count
            return _stand_in(arch, {kind: tuple(parts)})
    _, field = leaf_names(arch)[index]
    return _stand_in(arch, {field: value})


def _stand_in(layer: Any, fields: dict[str, Any]) -> Any:
    names = ("degree", "a", "b", "slope", "W_std", "b_std", "eps", "scale", "bias", "centre")
    names += ("group_size", "layers", "branches")
    kept = {name: getattr(layer, name) for name in names if hasattr(layer, name)} | fields
    if "slope" in fields:
        kept["b"] = -fields["slope"]
    return type(type(layer).__name__, (), kept)()


# ---------------------------------------------------------------- second derivatives

SECOND: dict[str, Node] = {
    "relu": serial(dense(), Relu(), dense()),
    "p2": serial(dense(), RectifiedPower(2), dense()),
    "LN, p1.5": serial(dense(), LayerNorm(2.0**-7), RectifiedPower(1.5), dense()),
}


def hessian(arch: Node, x: Array, y: Array, step: float) -> Array:
    axes = np.eye(6)

    def moved(i: int, j: int) -> Any:
        def f(s: float, t: float) -> tuple[mpf, mpf]:
            x2, y2 = np.split(np.concatenate([x, y]) + s * axes[i] + t * axes[j], 2)
            return oracle.kernels(arch, x2, y2)

        return mixed(f, step)

    upper = {(i, j): moved(i, j) for i in range(6) for j in range(i, 6)}
    table = [[upper[min(i, j), max(i, j)] for j in range(6)] for i in range(6)]
    return np.array(table, float).transpose(2, 0, 1)


@pytest.mark.parametrize("name", cases.some_slow(SECOND, set(SECOND) - {"p2"}))
def test_second_derivatives(name: str) -> None:
    """Of both kernels where they are smooth; of K at equal inputs too, where it is C^2."""
    arch = SECOND[name]
    pairs = np.stack([np.concatenate(p) for p in ((X, Y), (X, -2 * Y), (X, X))])

    def joined(pair: Any) -> Any:
        return both(arch, pair[:3], pair[3:])

    # not jitted: these programs run in a second and compile in twenty
    got = np.asarray(jax.vmap(jax.jacfwd(jax.jacfwd(joined)))(pairs))  # (3, 2, 6, 6)
    for place, y in ((0, Y), (1, -2 * Y)):
        error = np.abs(got[place] - hessian(arch, X, y, STEP)).max((1, 2)) / scales(arch, X, y)
        assert (error < 1e-14).all(), error
    step = 2.0**-45  # third derivatives jump: the difference is off by about this much
    error = np.abs(got[2] - hessian(arch, X, X, step)).max((1, 2)) / scales(arch, X, X)
    assert error[0] < 1e-12, error
    assert np.isfinite(got[2]).all()


# ---------------------------------------------------------------- transformations agree


def test_jit_and_vmap_change_nothing() -> None:
    """Each way is good to 2e-15, so two of them agree to 4e-15."""
    arch = NETWORKS["leaky, LN after"]
    kernel = lnk.kernels(arch)
    x = np.stack([X, Y, -X, 0 * X, X * (1 + 1e-9)])
    plain = np.stack(kernel(x, x.copy()))
    jitted = np.stack(jax.jit(lambda x, y: kernel(x, y))(x, x))
    one = jax.vmap(lambda p, q: both(arch, p, q), (None, 0), 1)
    mapped = np.asarray(jax.jit(jax.vmap(one, (0, None), 1))(x, x))
    ends = np.stack(jax.jit(kernel.diagonal)(x))
    length = np.sqrt(np.stack(kernel.diagonal(x)))
    unit = length[:, :, None] * length[:, None, :]
    assert (np.abs(jitted - plain) <= 4e-15 * unit).all()
    assert (np.abs(mapped - plain) <= 4e-15 * unit).all()
    assert (np.abs(ends - length**2) <= 4e-15 * length**2).all()


@pytest.mark.parametrize("name", ["relu, no bias", "leaky, LN after"])
def test_reverse_mode_is_forward_mode(name: str) -> None:
    arch = NETWORKS[name]
    table = SMOOTH | WITH_BIAS | {"self": (X, X, 0.0)}
    reverse = jax.jit(jax.vmap(jax.jacrev(lambda x, y: both(arch, x, y))))(*listed(table))
    for (tag, forward), other in zip(at_points(name, table).items(), reverse, strict=False):
        unit = scales(arch, *table[tag][:2])[:, None]
        assert (np.abs(forward - other) <= 1e-15 * (unit + np.abs(forward).max())).all(), tag


def test_a_wrong_derivative_would_be_noticed() -> None:
    """The difference quotient of a known function, and of the oracle on a linear network."""
    assert float(central(lambda h: [mp.exp(2 * mpf(h))])[0]) == pytest.approx(2.0, abs=1e-15)
    assert float(one_sided(lambda h: [mp.exp(2 * mpf(h))])[0]) == pytest.approx(2.0, abs=1e-15)
    curved = mixed(lambda s, t: [mp.exp(mpf(s) * 2 + mpf(t) * 3)], STEP)
    assert float(curved[0]) == pytest.approx(6.0, abs=1e-15)
    slopes = gradient(serial(dense()), X, Y)
    assert np.abs(slopes - 1.5**2 * Y / 3).max() < 1e-15
    assert math.isclose(float(scales(serial(dense()), X, X)[0]), 1.5**2 * X @ X / 3 + 0.125**2)


def test_the_transposed_map_can_be_compiled() -> None:
    """What a gradient of plain numbers leaves behind has no compiler options, which JAX would refuse inside `jit`."""
    theta, x = lnk.ntk(lnk.mlp(hidden=1)), np.array([[1.0, 2.0], [0.5, -1.0]])
    _, back = jax.vjp(lambda v: theta(v)[0, 1], x)
    np.testing.assert_array_equal(jax.jit(back)(1.0)[0], back(1.0)[0])
