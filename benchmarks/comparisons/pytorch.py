"""PyTorch: the tangent kernel of a network by `torch.func`, and an ensemble trained one by one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import numpy as np

import lnkernel as lnk
from benchmarks import training
from benchmarks.comparisons.row import Row, Size
from benchmarks.memory import peak
from benchmarks.peers.pytorch import TorchNTK, TorchTraining
from benchmarks.timing import in_turns, seconds
from lnkernel.experiments.machine import hardware

WIDTH, DIMENSION, WARM = 512, 9, 10
ARCH = lnk.mlp(hidden=2, width=WIDTH, norm="first")


def versions() -> dict[str, str]:
    with TorchNTK() as peer:
        return {"torch": peer.versions()["torch"]}


def rows(size: Size) -> Iterator[Row]:
    yield tangent_kernel(size)
    yield ensemble(size)


def network(width: int) -> lnk.finite.Network:
    """A network in float64, so that the two can be compared to its last digits."""
    with jax.enable_x64(True):
        return lnk.finite.network(ARCH, DIMENSION, width, rngs=0, dtype=np.float64)


def parameters(net: Any) -> dict[str, Any]:
    """The parameters, copied out, under the names of `peers/inside/torch_ntk.py`."""
    dense = [layer for layer in net.layers if hasattr(layer, "kernel")]
    found: dict[str, Any] = {"W_std": 2**0.5, "b_std": 0.1}
    for i, layer in enumerate(dense):
        found |= {f"W{i}": np.asarray(layer.kernel[...]), f"b{i}": np.asarray(layer.bias[...])}
    return found


def points(n: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, DIMENSION))


def tangent_kernel(size: Size) -> Row:
    """Both of PyTorch's ways are tried; the faster one is timed in turns with ours."""
    n, width = size.of(200, 20), size.of(WIDTH, 32)
    x, net = points(n), network(width)
    threads = hardware()["cores"]

    def mine() -> float:
        return seconds(lambda: lnk.finite.empirical_ntk(net, x))

    with TorchNTK() as peer:
        peer.load(threads, x=x, **parameters(net))
        for way in peer.ways:
            peer.time(way)
        best = min(peer.ways, key=peer.time)
        mine()
        ours, theirs = in_turns(mine, partial(peer.time, best), rounds=size.of(5, 1))
        its = peer.kernel()
    found = lnk.finite.empirical_ntk(net, x)
    agreement = float(np.abs(found - its).max() / np.abs(found).max())
    return Row(
        "torch.func",
        f"Θ̂ of a network of width {width}, {n} points, on copied weights",
        "give the limit of infinite width",
        agreement=agreement,
        seconds=ours,
        peer_seconds=theirs,
        memory=peak_of_ours(width, n),
        peer_memory=peak_of_peer(best, net, x, threads),
        checks={
            "agrees": agreement < 1e-12,
            **size.claims(**{"at least 10 times as fast": theirs >= 10 * ours}),
        },
    )


def peak_of_ours(width: int, n: int) -> int | None:
    prepared = (
        "import lnkernel as lnk\n"
        "from benchmarks.comparisons.pytorch import network, points\n"
        f"net, x = network({width}), points({n})\n"
        f"lnk.finite.empirical_ntk(net, x[:{WARM}])"
    )
    return peak(prepared, "k = lnk.finite.empirical_ntk(net, x)")[0]


def peak_of_peer(way: str, net: Any, x: np.ndarray, threads: int) -> int | None:
    with TorchNTK() as fresh:

        def evaluate(inputs: np.ndarray) -> None:
            fresh.load(threads, x=inputs, **parameters(net))
            fresh.time(way)

        return fresh.peak(lambda: evaluate(x[:WARM]), lambda: evaluate(x))


def ensemble(size: Size) -> Row:
    """An ensemble, as `benchmarks/training.py` measures it, in one dimension."""
    steps = size.of(3000, 150)
    with TorchTraining() as peer:
        result = training.measure(1, steps, size.of(2, 1), False, peer)
    speed = f"at least {training.AT_LEAST:g} times as fast"
    return Row(
        "PyTorch",
        f"{training.SEEDS} networks of width 128, {steps:,} steps of Adam on 100 points, float32 "
        f"(one by one, {result.peer_how})",
        "",
        agreement=result.apart,
        seconds=result.ours,
        peer_seconds=result.peer,
        checks={
            f"the same losses after {training.EARLY} steps, within 1 %": result.apart < 0.01,
            **size.claims(**{speed: result.ratio >= training.AT_LEAST}),
        },
    )
