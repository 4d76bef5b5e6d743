"""Our kernels beside those of neural-tangents (`make golden`), and 50 digits beside both.

neural-tangents forms the angle θ between two inputs from a rounded cosine. Where θ is near 0 or π
one rounding, eps, moves it by as much as √(2 eps), and Θ, whose slope in θ is not 0 there, by about
that much in each layer. Elsewhere, and in K, whose slope in θ is 0 there, only roundings are left.
So that is how far the two libraries may be apart; what the difference is made of, 50 digits say.
"""

from __future__ import annotations

import json
from functools import cache

import cases
import numpy as np
import oracle
import pytest

import lnkernel as lnk
from benchmarks.accuracy import KERNELS, SMALLEST, exact
from benchmarks.peers import golden
from benchmarks.peers.description import build
from benchmarks.posterior import exact_mean

with np.load(golden.FILE) as stored:
    GOLDEN = dict(stored)
ABOUT = json.loads(str(GOLDEN["about"]))
NAMES = list(ABOUT["architectures"])
TAGS = [str(tag) for tag in GOLDEN["tags"]]
# one of each kind; the others take long to evaluate
FEW = {
    *("relu 1", "leaky 3", "abs 1, no bias", "square 1", "relu 20, no bias"),
    *("relu, LN first", "residual", "residual, LN, no bias", "parallel"),
}
LONG_TO_COMPILE = {"residual 10", "residual 10, no bias"}  # two minutes each
ALL = cases.some_slow(NAMES, set(NAMES) - FEW)

EPS = np.finfo(np.float64).eps
AT_AN_ANGLE = 1e-14  # up to depth 20
PER_LAYER = (2 * EPS) ** 0.5  # of Θ, where the angle is near 0 or π
HARD = [
    *(("x", other) for other in TAGS if other.startswith("x")),
    *(("y", "y, far"), ("z", "z, near zero")),
]
EASY = [("x", "y"), ("x", "z"), ("x", "y, far"), ("x, antipodal", "z, near zero")]


def on_one_line() -> np.ndarray:
    """Whether the inputs of a pair lie on one line through 0, or almost: the angle is 0 or π."""
    line = np.array([tag.split(",")[0] for tag in TAGS])
    return line[:, None] == line


@cache
def arch_of(name: str) -> lnk.Node:
    return build(ABOUT["architectures"][name])


@cache
def ours(name: str) -> dict[str, np.ndarray]:
    found = cases.uncompiled(arch_of(name), GOLDEN["x"])
    return {kernel: getattr(found, kernel) for kernel in KERNELS}


def theirs(name: str, kernel: str) -> np.ndarray:
    matrix: np.ndarray = GOLDEN[kernel][NAMES.index(name)]
    return matrix


def differences(name: str, kernel: str) -> np.ndarray:
    """Relative to the square root of the diagonal's entries, as errors are measured throughout."""
    matrix = ours(name)[kernel]
    diagonal = np.sqrt(np.diagonal(matrix))
    return np.abs(matrix - theirs(name, kernel)) / np.outer(diagonal, diagonal)


def activations(name: str) -> list[lnk.PositivelyHomogeneous]:
    return [
        layer
        for layer in oracle.leaves(arch_of(name))
        if isinstance(layer, lnk.PositivelyHomogeneous)
    ]


def is_linear(name: str) -> bool:
    """All degrees are 1. Those above, neural-tangents divides by sin θ: NaN at equal inputs."""
    return all(act.degree == 1 for act in activations(name))


def test_the_file_says_what_it_holds() -> None:
    """Its networks and inputs are those that the command would ask for, and its versions pinned."""
    assert ABOUT["architectures"] == {
        name: golden.describe(arch) for name, arch in golden.architectures().items()
    }
    np.testing.assert_array_equal(GOLDEN["x"], np.stack(list(golden.points().values())))
    assert list(golden.points()) == TAGS
    pinned = golden.NeuralTangents.environment.file.read_text().split()
    assert [f"{k}=={v}" for k, v in ABOUT["versions"].items() if f"{k}=={v}" not in pinned] == []
    assert golden.FILE.stat().st_size < 300_000


@pytest.mark.parametrize("name", ALL)
def test_the_same_kernels(name: str) -> None:
    line = on_one_line()
    near = len(activations(name)) * PER_LAYER
    with np.errstate(invalid="ignore"):
        K, Theta = differences(name, "nngp"), differences(name, "ntk")
    if is_linear(name):
        assert K.max() < AT_AN_ANGLE
        assert Theta[~line].max() < AT_AN_ANGLE
        assert Theta[line].max() < near
    elif len(activations(name)) == 1:
        assert max(K[~line].max(), Theta[~line].max()) < AT_AN_ANGLE
    else:  # the NaN of the diagonals has reached everything
        assert np.isnan(K).all() and np.isnan(Theta).all()


@pytest.mark.parametrize("name", ALL)
def test_who_is_right(name: str) -> None:
    """We are, to 50 digits; and the difference is the peer's error, where two inputs are in line."""
    case = cases.Case(arch_of(name), len(activations(name)), 1.0)
    off: dict[str, list[float]] = {"hard": [], "easy": []}
    for kind, pairs in (("hard", HARD), ("easy", EASY)):
        places = [(TAGS.index(a), TAGS.index(b)) for a, b in pairs]
        inputs = [cases.Pair(kind, GOLDEN["x"][i], GOLDEN["x"][j]) for i, j in places]
        for place, row in zip(places, exact(case.arch, inputs), strict=True):
            for kernel, symbol in KERNELS.items():
                value, scale = getattr(row.values, symbol), getattr(row.values, f"{symbol}_scale")
                assert scale > SMALLEST
                mine, its = (
                    float(abs(value - oracle.mpf(float(matrix[place]))) / scale)
                    for matrix in (ours(name)[kernel], theirs(name, kernel))
                )
                assert mine <= case.bound(row.pair), (kernel, TAGS[place[0]], TAGS[place[1]])
                off[kind].append(its)
    bound = case.bound(row.pair)
    if is_linear(name):
        assert max(off["easy"]) < AT_AN_ANGLE
        assert max(off["hard"]) > 1e5 * bound / len(activations(name))
    else:
        assert not np.isfinite(off["hard"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in LONG_TO_COMPILE])
def test_as_users_call_it(name: str) -> None:
    """The compiled functions give what the tests above have seen."""
    found = lnk.kernels(arch_of(name))(GOLDEN["x"])
    for kernel in KERNELS:
        expected = ours(name)[kernel]
        scale = np.sqrt(np.outer(np.diagonal(expected), np.diagonal(expected)))
        assert np.abs((np.asarray(getattr(found, kernel)) - expected) / scale).max() < 4e-15 * len(
            activations(name)
        )


@pytest.mark.parametrize(
    "name", cases.some_slow(ABOUT["posteriors"], set(ABOUT["posteriors"]) - {"relu, LN first"})
)
def test_posterior_means(name: str) -> None:
    """Θ's errors on the diagonal, 1e-9 to 1e-7, become those of the peer's mean; ours are ulps."""
    X, y, x2 = (GOLDEN[each] for each in ("X", "y", "x2"))
    its = GOLDEN["mean"][ABOUT["posteriors"].index(name)]
    right = exact_mean(arch_of(name), X, y, x2)
    mine = np.asarray(lnk.posterior(arch_of(name), X, y).mean(x2))
    size = np.maximum(np.abs(right), np.abs(y).max())
    error, peer_error = (np.max(np.abs(mean - right) / size) for mean in (mine, its))
    assert error < 1e-13  # roundings of the Gram matrix times its condition number
    assert 100 * error < peer_error < 1e-5
