"""neural-tangents: kernels, near-duplicates, posteriors, and what it has no kernel for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import lnkernel as lnk
from benchmarks import gram, posterior
from benchmarks.comparisons.digits import BOUND, errors, some_entries
from benchmarks.comparisons.row import Row, Size
from benchmarks.memory import peak
from benchmarks.peers.kernel_peer import NeuralTangents
from benchmarks.peers.process import PeerFailedError

PEER = "neural-tangents"
ARCH = gram.ARCH
AFTER = lnk.serial(
    *(lnk.Dense(128, W_std=2**0.5, b_std=0.1), lnk.Relu(), lnk.LayerNorm()),
    *(lnk.Dense(128, W_std=2**0.5, b_std=0.1), lnk.Relu()),
    lnk.Dense(1, W_std=2**0.5, b_std=0.1),
)
WARM = 300  # points of the call that memory is counted from
PREPARED = (
    "import numpy as np, lnkernel as lnk\n"
    "from benchmarks import gram, posterior\n"
    "theta = lnk.ntk(gram.ARCH)\n"
)


def rows(size: Size) -> Iterator[Row]:
    """All rows, with one process that stays up for the times."""
    with NeuralTangents() as peer:
        for case in gram.CASES[0], gram.CASES[2]:
            yield matrix(replace(case, n=size.of(case.n, 200)), peer, size)
        yield near_duplicates(peer)
        yield prediction(peer, size)
        yield layer_norm_after(peer)
    yield bound()


def versions() -> dict[str, str]:
    with NeuralTangents() as peer:
        return peer.versions()


def matrix(case: gram.Case, peer: NeuralTangents, size: Size) -> Row:
    """A Gram matrix, as `benchmarks/gram.py` measures it."""
    result = gram.measure(case, size.of(16, 1), peer)
    x, x2 = gram.points(case)
    found = np.asarray(lnk.ntk(ARCH)(x, x2)), peer.kernels()["ntk"]
    places = some_entries(case.n, diagonal=case.symmetric)
    error, peer_error = errors(ARCH, x, x if x2 is None else x2, places, "ntk", *found)
    shape = f"{case.n:,}" if case.symmetric else f"{case.n:,} × {case.n:,}"
    speed = f"at least {case.at_least:g} times as fast"
    return Row(
        PEER,
        f"Θ of {shape} points" + (", symmetric" if case.symmetric else ""),
        "use the symmetry: it computes both halves" if case.symmetric else "",
        agreement=result.worst_difference,
        error=error,
        peer_error=peer_error,
        seconds=result.ours,
        peer_seconds=result.peer,
        memory=peak_of_ours(case),
        peer_memory=peak_of_peer(case),
        checks={
            "agrees": result.worst_difference < (1e-6 if case.symmetric else 1e-13),
            "exact": error <= BOUND,
            **size.claims(**{speed: result.ok}),
        },
    )


def peak_of_ours(case: gram.Case) -> int | None:
    arguments = "x" if case.symmetric else "x, x2"
    few = ", ".join(f"{name}[:{WARM}]" for name in arguments.split(", "))
    made = f"x, x2 = gram.points(gram.{case!r})\ntheta({few})"
    return peak(PREPARED + made, f"k = theta({arguments})")[0]


def peak_of_peer(case: gram.Case) -> int | None:
    x, x2 = gram.points(case)
    few = x[:WARM], x2 if x2 is None else x2[:WARM]
    with NeuralTangents() as fresh:
        return fresh.peak(lambda: fresh.load(ARCH, *few), lambda: fresh.load(ARCH, x, x2))


def near_duplicates(peer: NeuralTangents) -> Row:
    """Pairs 0 to 1e-3 apart, with and against the direction of the input."""
    rng = np.random.default_rng(0)
    x, step = rng.normal(size=(2, 9))
    near = [x + distance * step for distance in (0.0, 1e-12, 1e-9, 1e-6, 1e-3)]
    x2 = np.stack([*near, 2 * x, np.pi * x])
    peer.load(ARCH, x[None], x2)
    found = np.asarray(lnk.ntk(ARCH)(x[None], x2)), peer.kernels()["ntk"]
    places = [(0, j) for j in range(len(x2))]
    error, peer_error = errors(ARCH, x[None], x2, places, "ntk", *found)
    return Row(
        PEER,
        "Θ of near-duplicates, 0 to 1e-3 apart, and of collinear inputs",
        "keep more than half of the digits",
        agreement=float(np.abs(found[0] - found[1]).max() / found[0].max()),
        error=error,
        peer_error=peer_error,
        checks={"exact": error <= BOUND, "at least 1e5 times as exact": error * 1e5 < peer_error},
    )


def prediction(peer: NeuralTangents, size: Size) -> Row:
    """The posterior mean, as `benchmarks/posterior.py` measures it."""
    n = size.of(5000, 200)
    error, peer_error = posterior.errors_at_few_points(peer)
    result = posterior.measure(n, size.of(3, 1), False, peer)
    speed = f"at least {posterior.AT_LEAST:g} times as fast"
    return Row(
        PEER,
        f"posterior mean, {n:,} points, 1,000 predictions",
        "",
        agreement=result.difference,
        error=error,
        peer_error=peer_error,
        seconds=result.ours,
        peer_seconds=result.peer,
        memory=posterior_peak_of_ours(n),
        peer_memory=posterior_peak_of_peer(n),
        checks={
            "agrees": result.difference < 1e-5,
            "at least as exact": error <= peer_error and result.error <= result.peer_error,
            **size.claims(**{speed: result.ratio >= posterior.AT_LEAST}),
        },
    )


def posterior_peak_of_ours(n: int) -> int | None:
    made = (
        f"x, y, x2 = posterior.data({n}, posterior.PREDICTIONS)\n"
        f"lnk.posterior(gram.ARCH, x[:{WARM}], y[:{WARM}]).mean(x2[:{WARM}])"
    )
    return peak(PREPARED + made, "m = lnk.posterior(gram.ARCH, x, y).mean(x2)")[0]


def posterior_peak_of_peer(n: int) -> int | None:
    x, y, x2 = posterior.data(n, posterior.PREDICTIONS)
    few = x[:WARM], y[:WARM], x2[:WARM]
    with NeuralTangents() as fresh:
        return fresh.peak(
            lambda: fresh.posterior(ARCH, *few), lambda: fresh.posterior(ARCH, x, y, x2)
        )


def layer_norm_after(peer: NeuralTangents) -> Row:
    """LayerNorm behind an activation: ours against 50 digits, and that the peer does refuse."""
    dense = {"layer": "Dense", "width": 128}
    layers = [dense, {"layer": "Relu"}, {"layer": "LayerNorm", "eps": 0.0}, dense]
    x = np.random.default_rng(0).normal(size=(6, 9))
    try:
        peer.load({"layers": layers}, x)
        refused = False
    except PeerFailedError as failure:
        refused = "NotImplementedError" in str(failure)
    theta = np.asarray(lnk.ntk(AFTER)(x))
    (error,) = errors(AFTER, x, x, [(i, j) for i in range(6) for j in range(i + 1)], "ntk", theta)
    return Row(
        PEER,
        "Θ with LayerNorm behind an activation",
        "this: `NotImplementedError`",
        error=error,
        checks={"exact": error <= BOUND, "it refuses": refused},
    )


def bound() -> Row:
    """The bound on the output at every input; no peer has one."""
    X = np.linspace(-5, 5, 100)[:, None]
    y = np.sin(X[:, 0])
    start = time.perf_counter()
    found = lnk.bound(ARCH, X, y)
    seconds = time.perf_counter() - start
    far = np.concatenate([sign * np.geomspace(1e-3, 1e8, 400) for sign in (-1, 1)])[:, None]
    largest = float(np.abs(np.asarray(lnk.posterior(ARCH, X, y).mean(far))).max())
    return Row(
        PEER,
        "a bound on the mean at every input",
        "this: it has no bound",
        seconds=seconds,
        checks={"the bound holds": largest <= found.rkhs},
    )
