"""The cases that accuracy is measured on: networks, each with its bound, and pairs of inputs.

`architectures()` names the networks; `pairs(rng, d)` draws the inputs. An error of a network's
`case` at a `pair` that exceeds `case.bound(pair)` is a failure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

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
    PositivelyHomogeneous,
    RectifiedPower,
    Relu,
    RMSNorm,
    Scale,
    Shift,
    parallel,
    residual,
    serial,
)
from lnkernel.gram import eager
from lnkernel.gram import pairs as pairs_of_points
from lnkernel.gram.program import dissect_numbers, program_for

Vector = NDArray[np.float64]
Norm = LayerNorm | RMSNorm

SHALLOW = 10  # the depth up to which the first bound holds
# beyond the 3 dimensions of all: on a line, and where inner products are a matrix product
OTHER_DIMENSIONS = {
    1: ("relu 5", "p0.75", "LN first", "LN after", "residual"),
    20: ("relu 5", "p0.75", "LN first", "LN after", "LN on the input"),
}
# every activation and every place of a norm, with as few networks to compile as possible
FEW = (
    "relu 2",
    "relu 20",
    "degrees .6, 1.5, 2.5",
    "degrees 3, .75, linear",
    "shifts",
    "LN first",
    "LN after, eps",
    "LN on the input",
    "LN before and after",
    "RMS after, LN",
    "scale and bias",
    "GroupNorm 4",
    "pre-LN",
    "parallel, degrees 1 and 2",
)
BOUNDS = {
    "shallow": 2e-15,
    "deep": 2e-14,
    "degree below 1 at extreme norms": 2e-13,
    "summed or integrated": 1e-13,
}


class Pair(NamedTuple):
    """Two inputs, and what is special about them."""

    tag: str
    x: Vector
    x2: Vector

    @property
    def is_extreme(self) -> bool:
        """Whether a norm lies beyond 1e±100."""
        norms = [float(np.abs(v).max()) for v in (self.x, self.x2)]
        return any(norm > 0 and not 1e-100 <= norm <= 1e100 for norm in norms)

    @property
    def size(self) -> float:
        """The largest entry."""
        return float(max(np.abs(self.x).max(), np.abs(self.x2).max()))


class Case(NamedTuple):
    """A network, its depth, and how exact its kernels have to be."""

    arch: Node
    depth: int  # activations on the longest way through
    least_degree: float
    kind: str | None = None  # of its bound, where that depends on nothing else
    longest: float = math.inf  # inputs that the library or the oracle takes
    kernels: tuple[str, ...] = ("ntk", "nngp")  # that exist
    batch: int | None = None  # pairs that are computed at once, where each takes long
    programs: str = "one"  # beside NumPy: that of symmetric matrices; or "none", or "every"

    def takes(self, pair: Pair) -> bool:
        return pair.size <= self.longest

    def bound(self, pair: Pair) -> float:
        """Of the error, relative to sqrt(Theta(x,x) Theta(x2,x2)), and so for K."""
        if self.kind is not None:
            return BOUNDS[self.kind]
        if self.least_degree < 1 and pair.is_extreme:
            return BOUNDS["degree below 1 at extreme norms"]
        return BOUNDS["shallow" if self.depth <= SHALLOW else "deep"]


# ---------------------------------------------------------------- networks


def dense(b_std: float = 0.1, W_std: float = 2**0.5) -> Dense:
    return Dense(64, W_std=W_std, b_std=b_std)


def deep(
    depth: int,
    act: lnk.Elementwise,
    b_std: float = 0.1,
    *,
    W_std: float = 2**0.5,
    before: tuple[Norm, ...] = (),
    after: tuple[Norm, ...] = (),
) -> lnk.Serial:
    """`depth` times (Dense, *before, act, *after), then a Dense."""
    block = (dense(b_std, W_std), *before, act, *after)
    return serial(*block * depth, dense(b_std, W_std))


def chain(*acts: PositivelyHomogeneous, b_std: float = 0.1) -> lnk.Serial:
    """A Dense before each activation, and a last one."""
    blocks = [layer for act in acts for layer in (dense(b_std), act)]
    return serial(*blocks, dense(b_std))


def architectures() -> dict[str, Case]:
    """Every network of the table, by name."""
    tables = (activations(), depths(), norms(), groups(), sums())
    return {name: _case(arch) for table in tables for name, arch in table.items()}


def activations() -> dict[str, Node]:
    """Every activation, with biases; without them every second degree, before a last LayerNorm."""
    table: dict[str, Node] = {
        "leaky": deep(3, LeakyRelu(0.2)),
        "abs": deep(3, Abs()),
        "linear": deep(3, Homogeneous(1, 1.0, -1.0)),
        "identity": serial(dense(), Identity(), dense()),
        "scales": serial(
            dense(),
            Scale(-0.7),
            Relu(),
            Scale(-1.5),
            LayerNorm(0.1),
            dense(),
            Scale(3.0),
            Abs(),
            dense(),
        ),
        "shifts": serial(
            dense(),
            Relu(),
            Shift(-0.3),
            dense(),
            Abs(),
            Scale(-0.5),
            Shift(0.7),
            LayerNorm(),
            dense(),
        ),
        "odd .8": deep(4, Homogeneous(0.8, 1.0, -1.0)),
        "general .6": deep(10, Homogeneous(0.6, 0.7, 0.4)),
        "general .75": deep(4, Homogeneous(0.75, 1.0, -0.4)),
        "general 1": deep(4, Homogeneous(1, -0.5, 2.0)),
        "general 1.5": deep(4, Homogeneous(1.5, 0.7, 0.4)),
        "general 2": deep(2, Homogeneous(2, 1.0, -0.3)),
        "degrees .6, 1.5, 2.5": chain(*(RectifiedPower(p) for p in (0.6, 1.5, 2.5))),
        "degrees 3, .75, linear": chain(
            RectifiedPower(3), Homogeneous(0.75, 1.0, -0.4), Homogeneous(1, 1.0, -1.0)
        ),
        "degrees 2, .6, no bias": chain(RectifiedPower(2), RectifiedPower(0.6), b_std=0.0),
    }
    for p in (0.6, 0.75, 1.5, 2, 2.5, 3):
        act = RectifiedPower(p)
        table[f"p{p:g}"] = deep(3, act)
        table[f"p{p:g} LN all"] = deep(5, act, before=(LayerNorm(),))
        table[f"p{p:g} LN last, no bias"] = serial(*deep(2, act, 0.0).layers, LayerNorm(), dense())
    return table


def depths() -> dict[str, Node]:
    table: dict[str, Node] = {}
    for depth in (2, 5, 10, 20, 50):
        table[f"relu {depth}"] = deep(depth, Relu())
    for depth in (2, 10):
        table[f"relu {depth}, no bias"] = deep(depth, Relu(), 0.0)
    return table | {
        "leaky 10": deep(10, LeakyRelu(0.2)),
        "abs 10": deep(10, Abs()),
        "abs 50": deep(50, Abs(), W_std=1.0),
        "p1.5 LN all 20": deep(20, RectifiedPower(1.5), before=(LayerNorm(),)),
        "relu LN all 50": deep(50, Relu(), before=(LayerNorm(),)),
        "relu LN after 50": deep(50, Relu(), after=(LayerNorm(),)),
        "relu LN eps 20": deep(20, Relu(), before=(LayerNorm(eps=1e-3),)),
    }


def norms() -> dict[str, Node]:
    """LayerNorm and RMSNorm in each place, exact and with eps, fixed and trainable."""
    affine = LayerNorm(eps=1e-5, scale=True, bias=True)
    rest = deep(2, Relu()).layers
    return {
        "LN first": lnk.mlp(3, norm="first"),
        "LN last": lnk.mlp(3, norm="last"),
        "LN all": deep(5, Relu(), before=(LayerNorm(),)),
        "LN all, eps": deep(5, Relu(), before=(LayerNorm(eps=1e-3),)),
        "LN after": deep(5, Relu(), after=(LayerNorm(),)),
        "LN after, eps": deep(3, LeakyRelu(0.2), after=(LayerNorm(eps=1e-3),)),
        "LN before the readout": serial(*rest[:-1], LayerNorm(), dense()),
        "LN on the input": serial(LayerNorm(), *deep(3, Relu()).layers),
        "LN eps on the input, p.75": serial(
            LayerNorm(eps=0.1), *deep(3, RectifiedPower(0.75)).layers
        ),
        "RMS on the input": serial(RMSNorm(eps=0.1), *deep(3, Relu()).layers),
        "LN twice": deep(2, Relu(), before=(LayerNorm(eps=0.1), LayerNorm())),
        "LN before and after": deep(2, Abs(), before=(LayerNorm(),), after=(LayerNorm(eps=1e-2),)),
        "RMS": deep(3, Relu(), before=(RMSNorm(eps=0.1),)),
        "RMS after, LN": serial(
            dense(),
            Relu(),
            RMSNorm(eps=0.1, scale=True),
            LayerNorm(eps=0.01),
            dense(),
            Abs(),
            RMSNorm(),
            dense(),
        ),
        "scale and bias": serial(
            dense(),
            LayerNorm(scale=True, bias=True),
            Relu(),
            dense(),
            affine,
            RectifiedPower(2),
            dense(),
        ),
        "scale and bias, p.75": serial(dense(), affine, RectifiedPower(0.75), dense(), affine),
        "scale and bias, no bias": deep(2, Relu(), 0.0, before=(affine,)),
        "scale and bias after": deep(2, Relu(), 0.0, after=(affine,)),
        "scale": deep(2, LeakyRelu(0.1), before=(LayerNorm(scale=True), RMSNorm(scale=True))),
    }


def groups() -> dict[str, Node]:
    """GroupNorm of 1, 3, 7, 4, 16, 63 degrees of freedom, and after a sum."""
    sizes = ((2, True), (4, True), (8, True), (4, False), (16, False), (64, True))
    table: dict[str, Node] = {
        f"GroupNorm {size}{'' if centre else ', not centred'}": serial(
            dense(),
            GroupNorm(size, centre=centre, scale=True, bias=True),
            dense(),
            Relu(),
            dense(),
        )
        for size, centre in sizes
    }
    skip = residual(dense(), Relu(), dense())
    return table | {"GroupNorm after a sum": serial(dense(), skip, GroupNorm(8), dense())}


def sums() -> dict[str, Node]:
    """Residual blocks and parallel branches, on Gaussian states and on features."""
    block = residual(LayerNorm(), dense(), Relu(), dense())
    rough = RectifiedPower(0.75)
    return {
        "residual": serial(dense(), residual(dense(), Relu(), dense()), dense(), Relu(), dense()),
        "residual, no bias": serial(
            dense(0.0), residual(dense(0.0), Abs(), dense(0.0)), Relu(), dense(0.0)
        ),
        "pre-LN": serial(dense(), block, block, LayerNorm(), dense()),
        "post-LN": serial(
            dense(), residual(dense(), Relu(), dense()), LayerNorm(eps=1e-3), Relu(), dense()
        ),
        "residual of features": serial(
            dense(), residual(dense(), Relu()), dense(), Relu(), dense()
        ),
        "residual of features, p.75": serial(
            dense(), residual(dense(), rough), dense(), rough, dense()
        ),
        "residual of features, LN, p.75": serial(
            dense(), residual(dense(), rough), LayerNorm(), dense(), rough, dense()
        ),
        "parallel": serial(
            dense(),
            parallel(
                serial(dense(), Relu()),
                serial(dense(), Abs()),
                serial(dense(), Homogeneous(1.5, -1.0, 0.2)),
            ),
            RMSNorm(eps=0.1),
            LayerNorm(),
            dense(),
        ),
        "parallel, degrees 1 and 2": serial(
            dense(),
            parallel(
                serial(dense(), Homogeneous(1, -1.0, 0.2)), serial(dense(0.0), RectifiedPower(2))
            ),
            LayerNorm(),
            dense(),
            Relu(),
            dense(),
        ),
    }


def smooth() -> dict[str, Case]:
    """Networks with analytic activations, behind a norm, so that inputs of every length are allowed."""
    table: dict[str, Node] = {
        "gelu LN all, relu": serial(
            *deep(1, lnk.Gelu(), before=(LayerNorm(),)).layers, Relu(), dense()
        ),
        "tanh LN first": lnk.mlp(2, norm="first", activation=lnk.Tanh(), W_std=1.0),
        "silu LN before and after, relu": serial(
            dense(), LayerNorm(), lnk.Silu(), LayerNorm(eps=0.1), dense(), Relu(), dense()
        ),
        "softplus RMS, scale and bias, LN, relu": serial(
            dense(),
            LayerNorm(scale=True, bias=True),
            lnk.Softplus(),
            RMSNorm(),
            LayerNorm(),
            dense(),
            Relu(),
            dense(),
        ),
    }
    return {name: Case(arch, depth_of(arch), 1.0) for name, arch in table.items()}


def _case(arch: Node) -> Case:
    return Case(arch, depth_of(arch), min((act.degree for act in _homogeneous(arch)), default=1.0))


def _parts(arch: Any) -> tuple[Node, ...]:
    parts: tuple[Node, ...] = getattr(arch, "layers", getattr(arch, "branches", ()))
    return parts


def depth_of(arch: Node) -> int:
    inside = [depth_of(part) for part in _parts(arch)]
    if isinstance(arch, lnk.Serial):
        return sum(inside)
    return max(inside) if inside else int(isinstance(arch, lnk.Elementwise))


def _homogeneous(arch: Node) -> Iterator[PositivelyHomogeneous]:
    if isinstance(arch, PositivelyHomogeneous):
        yield arch
    for part in _parts(arch):
        yield from _homogeneous(part)


# ---------------------------------------------------------------- pairs of inputs


def pairs(rng: np.random.Generator, d: int) -> list[Pair]:
    """Pairs in d dimensions, from nasty to easy; some hold a zero vector."""
    x, y = rng.normal(size=(2, d))
    zero = np.zeros(d)
    table = [*_near(rng, x), *_on_a_line(rng, x), *_far(rng, x)]
    table += [("random", x, y), ("random", y, 3 * rng.normal(size=d)), ("self", x, x)]
    if d > 1:
        table.append(("orthogonal", x, y - x * (x @ y) / (x @ x)))
        table.append(("orthogonal, exact", *_orthogonal(x)))
    table += [("zero", zero, y), ("zero and zero", zero, zero)]
    return [Pair(*row) for row in table]


def pairs_of(case: Case, rng: np.random.Generator, d: int) -> list[Pair]:
    """Those of `pairs` whose inputs are not too long for the network."""
    return [pair for pair in pairs(rng, d) if case.takes(pair)]


Rows = list[tuple[str, Vector, Vector]]


def _near(rng: np.random.Generator, x: Vector) -> Rows:
    """Near-duplicates: in a random direction, along the ray, and in one last bit."""
    step = rng.normal(size=len(x))
    rows = [(f"1e-{k} apart", x, x + 10.0**-k * step) for k in (1, 3, 5, 7, 8, 9, 11, 13, 14)]
    rows += [(f"radial 1e-{k}", x, x * (1 + 10.0**-k)) for k in (3, 7, 9, 12, 15)]
    other = x.copy()
    other[0] = np.nextafter(other[0], 9.0)
    return [*rows, ("one bit apart", x, other)]


def _on_a_line(rng: np.random.Generator, x: Vector) -> Rows:
    step = rng.normal(size=len(x))
    return [
        ("collinear", x, 2 * x),
        ("collinear", x, 2.0**-40 * x),
        ("collinear, rounded", x, np.pi * x),
        ("collinear, rounded", x, x / 3),
        ("collinear, rounded, far", x, 1e9 * x / 3),
        ("nearly collinear", x, 3 * x + 1e-8 * step),
        ("antipodal", x, -x),
        ("antipodal", x, -4 * x),
        ("antipodal, rounded", x, -np.e * x),
        ("nearly antipodal", x, -x + 1e-3 * step),
        ("nearly antipodal", x, -x + 1e-9 * step),
        ("nearly antipodal", x, -7 * x + 1e-13 * step),
    ]


def _far(rng: np.random.Generator, x: Vector) -> Rows:
    """Norms 1e-150 to 1e150: alike, mixed, and as near-duplicates."""
    y, step = rng.normal(size=(2, len(x)))
    rows = []
    for k in (-150, -100, -50, -20, -6, 6, 20, 50, 100, 150):
        size = 10.0**k
        rows.append((f"norms 1e{k}", x * size, y * size))
        rows.append((f"norms 1e{k}, near", x * size, (x + 1e-8 * step) * size))
    rows.append(("norms 1e150, radial", x * 1e150, x * (1e150 * (1 + 1e-9))))
    mixed = ((-150, 150), (-100, 3), (-20, 20), (-6, 6), (0, 10), (0, 3), (1, 150), (-150, 0))
    return rows + [(f"norms 1e{i}, 1e{j}", x * 10.0**i, y * 10.0**j) for i, j in mixed]


def _orthogonal(x: Vector) -> tuple[Vector, Vector]:
    turned = np.zeros_like(x)
    turned[:2] = x[1], -x[0]
    flat = x.copy()
    flat[2:] = 0.0
    return flat, turned


# ---------------------------------------------------------------- evaluation


def some_slow(names: Iterable[str], slow: set[str]) -> list[Any]:
    """The names, as parameters of a test; for those in `slow` it is a long one."""
    import pytest  # the benchmarks use the table without it

    marks = {True: pytest.mark.slow, False: ()}
    return [pytest.param(name, marks=marks[name in slow]) for name in names]


def uncompiled(arch: Node, x: Any) -> lnk.Kernels:
    """Both Gram matrices of x by NumPy, every pair with all care: nothing is compiled, and nothing is kept.

    So rules that a test has replaced are really run.
    """
    points = np.asarray(x, float)
    program = program_for(dissect_numbers(arch), lnk.Kernels._fields, points)
    prepared = pairs_of_points.prepare(program.needs, points)
    rows, columns = (index.ravel() for index in np.indices((len(points),) * 2))
    found = eager.carefully(program, prepared, prepared, rows, columns)
    return lnk.Kernels(*(values.reshape(len(points), -1) for values in found))


def by_operations(arch: Node, x: Any) -> lnk.Kernels:
    """The same by JAX, operation by operation: a program that is not compiled as a whole."""
    points = np.asarray(x, float)[None]
    with jax.enable_x64(True), jax.disable_jit():
        grams = jax.vmap(lnk.kernels(arch))(points, points)
    return lnk.Kernels(*(np.asarray(gram[0]) for gram in grams))
