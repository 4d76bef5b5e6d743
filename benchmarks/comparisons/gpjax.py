"""GPJax: its arc-cosine kernel is the NNGP kernel of one layer (`peers/inside/gpjax_kernel.py`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import lnkernel as lnk
from benchmarks.comparisons.digits import BOUND, errors, some_entries
from benchmarks.comparisons.row import Row, Size
from benchmarks.memory import peak
from benchmarks.peers.description import describe
from benchmarks.peers.kernel_peer import GPJax
from benchmarks.timing import in_turns, seconds

DENSE = lnk.Dense(128, W_std=2**0.5, b_std=0.1)
STEP = {"layer": "RectifiedPower", "degree": 0}
WARM = 300


def layer(degree: int) -> lnk.Node:
    return lnk.serial(DENSE, lnk.RectifiedPower(degree))


def versions() -> dict[str, str]:
    with GPJax() as peer:
        return peer.versions()


def rows(size: Size) -> Iterator[Row]:
    n = size.of(2000, 200)
    x = np.random.default_rng(0).normal(size=(n, 9))
    with GPJax() as peer:
        for degree in (1, 2):
            yield covariance(degree, x, peer, size)
        yield step(x[:200], peer)


def covariance(degree: int, x: np.ndarray, peer: GPJax, size: Size) -> Row:
    kernel, n = lnk.nngp(layer(degree)), len(x)

    def mine() -> float:
        return seconds(lambda: kernel(x))

    mine()
    peer.load(layer(degree), x)
    ours, theirs = in_turns(mine, peer.time, rounds=size.of(16, 1), series=5)
    found = np.asarray(kernel(x)), peer.kernels()["nngp"]
    agreement = float(np.abs(found[0] - found[1]).max() / found[0].max())
    error, peer_error = errors(layer(degree), x, x, some_entries(n, True), "nngp", *found)
    return Row(
        "GPJax",
        f"K of one layer, u₊{'²' if degree == 2 else ''}, {n:,} points",
        "take more than one layer; Θ; norms" if degree == 1 else "take degrees other than 0, 1, 2",
        agreement=agreement,
        error=error,
        peer_error=peer_error,
        seconds=ours,
        peer_seconds=theirs,
        memory=peak_of_ours(degree, n),
        peer_memory=peak_of_peer(degree, x),
        checks={
            "agrees": agreement < 1e-13,
            "exact": error <= BOUND,
            **size.claims(**{"at least twice as fast": theirs >= 2 * ours}),
        },
    )


def step(x: np.ndarray, peer: GPJax) -> Row:
    """Order 0, the step function: Θ of one ReLU layer is K of its Dense times it."""
    (dense,) = describe(DENSE)["layers"]
    peer.load({"layers": [dense, STEP]}, x)
    slopes = peer.kernels()["nngp"]
    theta = np.asarray(lnk.ntk(layer(1))(x))
    product = slopes * np.asarray(lnk.nngp(DENSE)(x))
    agreement = float(np.abs(theta - product).max() / theta.max())
    places = some_entries(len(x), True)
    error, peer_error = errors(layer(1), x, x, places, "ntk", theta, product)
    return Row(
        "GPJax",
        "Θ of one ReLU layer, put together from its order 0",
        "keep more than half of the digits at equal inputs",
        agreement=agreement,
        error=error,
        peer_error=peer_error,
        checks={"agrees": agreement < 1e-7, "exact": error <= BOUND},
    )


def peak_of_ours(degree: int, n: int) -> int | None:
    prepared = (
        "import numpy as np, lnkernel as lnk\n"
        "from benchmarks.comparisons.gpjax import layer\n"
        f"kernel = lnk.nngp(layer({degree}))\n"
        f"x = np.random.default_rng(0).normal(size=({n}, 9))\nkernel(x[:{WARM}])"
    )
    return peak(prepared, "k = kernel(x)")[0]


def peak_of_peer(degree: int, x: np.ndarray) -> int | None:
    with GPJax() as fresh:
        return fresh.peak(
            lambda: fresh.load(layer(degree), x[:WARM]), lambda: fresh.load(layer(degree), x)
        )
