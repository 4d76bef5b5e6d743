"""Compiled programs: one for all sizes, and only the latest are kept."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import cases
import jax
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.errors import InputError
from lnkernel.evaluate.float64.expansion import expand, has_series
from lnkernel.evaluate.float64.per_input import OutOfStepError, Recalling
from lnkernel.gram import careful, compiled, eager, pairs, tiled
from lnkernel.gram.network import Network
from lnkernel.gram.prepared import prepare
from lnkernel.gram.program import dissect_numbers, program_for
from lnkernel.gram.structure import assemble

pytestmark = pytest.mark.usefixtures("programs_for_all_but_few")

RNG = np.random.default_rng(0)


def points(n: int, d: int) -> np.ndarray:
    """With copies, multiples and antipodes, which are computed once more."""
    x = RNG.normal(size=(n, d))
    x[1], x[2], x[3] = x[0] * (1 + 1e-12), -x[0], 3 * x[0]
    return x


@pytest.fixture(scope="module")
def events() -> list[str]:
    found: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: found.append(event) if "backend_compile" in event else None
    )
    return found


@pytest.mark.parametrize("norm", [None, "first"])
def test_another_size_compiles_nothing(events: list[str], norm: str | None) -> None:
    theta = lnk.ntk(lnk.mlp(hidden=1, norm=norm))
    theta(points(110, 10))
    assert events  # it would be noticed
    events.clear()
    for n, d in ((110, 10), (129, 10), (333, 10), (1001, 9), (150, 12)):
        theta(points(n, d))
        theta(points(n, d), points(n - 9, d))
        theta.diagonal(points(n, d))
    assert not events


def test_another_dimension_compiles_its_products(events: list[str]) -> None:
    theta = lnk.ntk(lnk.mlp(hidden=1))
    theta(points(110, 50))
    events.clear()
    theta(points(140, 60))
    assert len(events) == 1  # the matrix product
    theta(points(150, 60))
    assert len(events) == 1


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 32, 33])
def test_dimensions_filled_up_with_zeros(d: int) -> None:
    """The same kernel as in few pairs, which are not filled up to a tile."""
    x, theta = points(103, d), lnk.ntk(lnk.mlp(hidden=1))
    whole, ends = theta(x), np.sqrt(theta.diagonal(x))
    error = np.abs(whole[:20, 90:] - theta(x[:20], x[90:])) / ends[:20, None] / ends[90:]
    assert error.max() < 4e-15


SERIES = {
    "gelu": lnk.mlp(hidden=2, activation=lnk.Gelu()),
    "erf": lnk.mlp(norm="all", activation=lnk.Erf()),
    "silu": lnk.mlp(activation=lnk.Silu()),
    "tanh": lnk.mlp(hidden=2, norm="first", activation=lnk.Tanh()),
    "sin": lnk.mlp(activation=lnk.Sin(1.5, 0.4)),
    "polynomial": lnk.mlp(activation=lnk.Polynomial((0.1, 1.0, 0.3))),
}
ALL = {name: case.arch for name, case in cases.architectures().items()} | SERIES


WITH_ZERO = ["LN first", "LN after", "scale and bias", "RMS", "residual", "p0.6 LN all", *SERIES]


# every layer and every place of a norm; of the others each takes a second to trace
QUICK = {*cases.FEW, *SERIES, *WITH_ZERO, "leaky", "linear", "identity", "p0.6", "p2.5", "parallel"}
IN_STEP = [
    *(pytest.param(n, False, marks=[] if n in QUICK else pytest.mark.slow) for n in ALL),
    *((name, True) for name in WITH_ZERO),
]


@pytest.mark.parametrize(("name", "zero"), IN_STEP)
def test_rules_are_in_step(name: str, zero: bool) -> None:
    """What NumPy remembers of every input is what the program asks for; it is made, but not compiled."""
    x = points(7, 3)
    x[4] *= 0.0 if zero else 1.0
    arch = expand(ALL[name], x) if has_series(ALL[name]) else ALL[name]
    program = program_for(dissect_numbers(arch), ("nngp", "ntk"), x)
    assert program.all_live is not zero
    with jax.enable_x64(True):
        made = prepare(program, x, 4)
        static = program.structure, program.needs, program.which, program.all_live
        jax.eval_shape(
            lambda *numbers: tiled._batch(*static, *numbers),
            *(program.varying, *(side.at(np.arange(2)) for side in made.sides), None),
        )


@pytest.mark.parametrize("name", ["LN after", "erf", "silu", "p0.6 LN all"])
@pytest.mark.parametrize("side", [0, 1])
def test_what_is_known_of_no_points_changes_nothing(name: str, side: int) -> None:
    """What the rules make of the side without points is noted once and not computed again."""
    x = points(7, 3)
    arch = expand(ALL[name], x) if has_series(ALL[name]) else ALL[name]
    program = program_for(dissect_numbers(arch), ("ntk",), x)
    net = Network(assemble(program.structure, np.asarray(program.varying)), program.needs)
    with jax.enable_x64(True), np.errstate(all="ignore"):
        prepared, few = (pairs.prepare(net.needs, some) for some in (x, x[:3]))
        noted = pairs.remember(net, few, side, True).noted
        usual = pairs.remember(net, prepared, side, True)
        again = pairs.remember(net, prepared, side, True, nothing=tuple(noted))
    assert noted and not again.noted  # nothing of it was computed
    assert usual.record().steps == again.record().steps
    np.testing.assert_array_equal(usual.record().numbers, again.record().numbers)


def test_the_same_bits_every_time() -> None:
    """Tiles are written by threads; whatever their order, no number is lost or written over. A thread that asked for
    memory, and was late, spoiled one matrix of thirty of this size."""
    x, theta = points(1400, 64), lnk.ntk(lnk.mlp(hidden=2, norm="first"))
    first = theta(x)
    assert all(np.array_equal(theta(x), first) for _ in range(80))


def test_delicate_pairs_come_in_two_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that are found, while the rest is computed, if that is worth it."""

    def found(*numbers: int) -> tiled.Part:
        part = tiled.Part(Future(), Future())
        part.delicate.set_result((np.array(numbers, int), np.array(numbers, int) + 1))
        return part

    def pieces(*parts: tiled.Part) -> list[list[int]]:
        made = list(tiled._collect(list(parts)))
        assert [each for _, written in made for each in written] == [p.written for p in parts]
        return [[int(k) for rows, _ in pairs for k in rows] for pairs, _ in made]

    assert pieces(found(), found(1), found(), found(2, 3), found(4)) == [[1, 2, 3, 4]]
    monkeypatch.setattr(tiled, "MANY_FOUND", 1)
    assert pieces(found(), found(1), found(), found(2, 3), found(4)) == [[1], [2, 3, 4]]
    assert pieces(found(), found(1), found(2, 3), found(4)) == [[1, 2, 3, 4]]


@pytest.mark.parametrize(("count", "chunks"), [(10, [16]), (128, [128]), (300, [128, 128, 128])])
def test_pairs_that_are_integrated_are_not_computed_in_vain(
    count: int, chunks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes milliseconds: little is filled up, and all cores have chunks of their own."""
    sizes: list[int] = []

    def without_computing(*_: object) -> object:
        def compute(varying: object, one: pairs.Points, two: pairs.Points) -> list[np.ndarray]:
            sizes.append(len(one.raw.live))
            return [np.zeros(len(two.raw.live))]

        return compute

    monkeypatch.setattr(careful, "compiled", without_computing)
    x = points(30, 3)
    arch = expand(lnk.serial(lnk.Dense(8), lnk.Clip(0.5, 2.0), lnk.Dense(1)), x)
    program = program_for(dissect_numbers(arch), ("ntk",), x)
    assert program.needs.compiler
    made, places = pairs.prepare(program.needs, x), np.triu_indices(30, 1)
    some = [tuple(place[:count] for place in places)]
    found = list(tiled._with_care(program, made, made, some, (30, 30)))
    assert sizes == chunks
    assert sum(len(rows) for rows, _, _ in found) == count


@pytest.mark.parametrize("step", ["_delicate_pairs", "Tile"])  # before and while tiles are written
def test_an_error_in_a_thread_is_an_error(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise MemoryError

    x, theta = points(101, 3), lnk.ntk(lnk.mlp(norm="first"))
    with eager.without_numpy():
        usual = theta(x)
        with monkeypatch.context() as now, pytest.raises(MemoryError):
            now.setattr(tiled, step, fails)
            theta(x)
        np.testing.assert_array_equal(theta(x), usual)


def test_rules_out_of_step_compute_it_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    x = points(101, 5)
    arch = lnk.serial(lnk.Dense(8), lnk.Abs(), lnk.Dense(8, b_std=0.3), lnk.Relu(), lnk.Dense(1))
    usual = lnk.ntk(arch)(x)
    lnk.keep_programs(1)  # forget the usual program
    lnk.nngp(lnk.mlp())(x)
    lnk.keep_programs()

    def out_of_step(*_: object) -> None:
        raise OutOfStepError

    monkeypatch.setattr(Recalling, "once", out_of_step)
    ends = np.sqrt(np.diagonal(usual))
    assert (np.abs(lnk.ntk(arch)(x) - usual) / ends / ends[:, None]).max() < 4e-15


@pytest.fixture
def few_programs() -> Iterator[int]:
    lnk.keep_programs(3)
    yield 3
    lnk.keep_programs()


def test_programs_of_old_networks_are_dropped(few_programs: int) -> None:
    def maps() -> int:
        return len(Path("/proc/self/maps").read_text().splitlines())

    activations = (lnk.Relu(), lnk.Abs(), lnk.LeakyRelu(0.2), lnk.Identity())
    networks = [
        lnk.serial(lnk.Dense(8), one, lnk.Dense(8), two, lnk.Dense(1))
        for one, two in itertools.product(activations, repeat=2)
    ]
    x, found = points(101, 3), []
    for arch in networks[:10]:
        lnk.nngp(arch)(x)
        found.append(maps())
    assert len(compiled._kept) == few_programs
    assert found[-1] < found[few_programs] + 60  # of hundreds, if all were kept
    np.testing.assert_array_equal(lnk.nngp(networks[0])(x), lnk.nngp(networks[0])(x))


def test_gradients_of_old_networks_are_dropped() -> None:
    """Each takes some 180 memory maps, of which those of the latest network alone stay."""

    def maps_behind_gradient(activation: lnk.Node) -> int:
        kernel = lnk.nngp(lnk.serial(lnk.Dense(8), activation, lnk.Dense(1)))
        jax.grad(lambda v: kernel(v[None], np.ones((1, 3)))[0, 0])(np.arange(3.0))
        return len(Path("/proc/self/maps").read_text().splitlines())

    lnk.keep_programs(1)
    with jax.enable_x64(True):
        first, *_, last = map(maps_behind_gradient, (lnk.Relu(), lnk.Abs(), lnk.LeakyRelu(0.2)))
    lnk.keep_programs()
    assert last < first + 120


def test_how_many_must_be_a_number() -> None:
    with pytest.raises(InputError, match=r"^most: expected a number of programs"):
        lnk.keep_programs(0)
