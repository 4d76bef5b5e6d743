"""laplace-torch: Laplace's approximation on copied weights, exact and by ELLA, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import nnx

import lnkernel as lnk
from benchmarks.comparisons.row import Row, Size
from benchmarks.memory import peak
from benchmarks.peers.laplace_torch import LaplaceTorch
from benchmarks.timing import in_turns, seconds
from lnkernel.experiments.machine import hardware
from lnkernel.tangents.ella import draw_rows

CLASSES, TAU = 10, 1.0
BATCHES = (50, 250, 1000)  # sizes; the peer gets the one that suits it best
AT_LEAST, NO_SLOWER = 3.0, 1.0


class Case(NamedTuple):
    """The sizes of a problem: 784 inputs and 64 units make 50,890 parameters."""

    dimension: int
    width: int
    n: int  # training inputs
    m: int  # inputs to predict at
    rank: int | None = None  # None is the exact approximation
    subsample: int | None = None

    def few(self) -> Case:
        """As few inputs as are enough to warm up with."""
        return self._replace(n=60, m=10, subsample=self.subsample and 50)


class Problem(NamedTuple):
    """A network with one hidden layer, training inputs with classes, and inputs to predict at."""

    net: nnx.Sequential
    x: np.ndarray
    y: np.ndarray
    x2: np.ndarray


def problem(case: Case) -> Problem:
    """A problem in float64, so that the two can be compared to the last digits."""
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        first, last = (
            nnx.Linear(*sizes, rngs=nnx.Rngs(i), dtype=np.float64, param_dtype=np.float64)
            for i, sizes in enumerate(((case.dimension, case.width), (case.width, CLASSES)))
        )
    x, x2 = (rng.normal(size=(many, case.dimension)) for many in (case.n, case.m))
    return Problem(nnx.Sequential(first, nnx.relu, last), x, rng.integers(CLASSES, size=case.n), x2)


def arrays(case: Case, given: Problem) -> dict[str, Any]:
    """The data and parameters, copied out, under the names of `peers/inside/laplace_torch.py`."""
    chosen, outputs = draw_rows(given.y, case.subsample or 1, CLASSES, seed=0)
    found: dict[str, Any] = {"x": given.x, "y": given.y, "x2": given.x2}
    found |= {"chosen": chosen, "outputs": outputs}
    dense: list[Any] = [layer for layer in given.net.layers if isinstance(layer, nnx.Linear)]
    for i, layer in enumerate(dense):
        assert layer.bias is not None  # each was made with one
        found |= {f"W{i}": np.asarray(layer.kernel[...]), f"b{i}": np.asarray(layer.bias[...])}
    return found


def covariance(case: Case, given: Problem) -> np.ndarray:
    """Our covariance of the outputs at each of the inputs to predict at."""
    t = lnk.tangent(given.net)
    made = t.laplace(given.x, given.y, "categorical", TAU, case.rank, case.subsample)
    return made.covariance(given.x2)


def ask(peer: LaplaceTorch, case: Case, batch: int) -> float:
    """The seconds that the peer takes for the same."""
    if case.rank is None:
        return peer.full(batch, TAU)
    return peer.ella(case.rank, batch, TAU)


def versions() -> dict[str, str]:
    with LaplaceTorch() as peer:
        return peer.versions()


def rows(size: Size) -> Iterator[Row]:
    case = size.of(Case(784, 64, 2000, 1000, 20, 500), Case(20, 16, 200, 50, 5, 60))
    yield beside(
        size,
        case,
        f"ELLA, M = {case.subsample}, K = {case.rank}",
        "stop early where the validation loss is least",
        AT_LEAST,
    )
    # a network so small that a matrix of all its parameters is no burden to the peer
    small = size.of(Case(20, 40, 200, 500), Case(5, 8, 60, 20))
    yield beside(
        size, small, "exact Laplace", "give it without a matrix of the parameters", NO_SLOWER
    )


def beside(size: Size, case: Case, name: str, cannot: str, at_least: float | None = None) -> Row:
    """The row: agreement, times in turns, memory of fresh processes; the peer gets the batch that suits it."""
    given, threads = problem(case), hardware()["cores"]
    batches = size.of(BATCHES, BATCHES[:1])
    with LaplaceTorch() as peer:
        peer.load(threads, **arrays(case, given))
        ask(peer, case, batches[0])
        best = min(batches, key=partial(ask, peer, case))
        found = covariance(case, given)
        ours, theirs = in_turns(
            lambda: seconds(lambda: covariance(case, given)),
            partial(ask, peer, case, best),
            rounds=size.of(3, 1),
        )
        its = peer.covariance()
    agreement = float(np.abs(found - its).max() / np.abs(its).max())
    fast = {f"at least {at_least:g} times as fast": theirs >= at_least * ours} if at_least else {}
    parameters = lnk.tangent(given.net).size
    return Row(
        "laplace-torch",
        f"{name}, {parameters:,} parameters, {case.n:,} training inputs, covariances at {case.m:,}",
        cannot,
        agreement=agreement,
        seconds=ours,
        peer_seconds=theirs,
        memory=peak_of_ours(case),
        peer_memory=peak_of_peer(case, best, threads),
        checks={"agrees": agreement < 1e-10, **size.claims(**fast)},
    )


def peak_of_ours(case: Case) -> int | None:
    prepared = (
        "from benchmarks.comparisons.laplace import Case, covariance, problem\n"
        f"case = {case}\ngiven = problem(case)\ncovariance(case.few(), problem(case.few()))"
    )
    return peak(prepared, "found = covariance(case, given)")[0]


def peak_of_peer(case: Case, batch: int, threads: int) -> int | None:
    with LaplaceTorch() as fresh:

        def evaluate(sizes: Case) -> None:
            fresh.load(threads, **arrays(sizes, problem(sizes)))
            ask(fresh, sizes, batch)

        return fresh.peak(lambda: evaluate(case.few()), lambda: evaluate(case))
