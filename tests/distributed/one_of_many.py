"""A script, run as several processes at once: posteriors over all of them, beside those of one.

python one_of_many.py TASK COORDINATOR PROCESSES PROCESS FOLDER
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import jax
import numpy as np
from jax.sharding import Mesh

import lnkernel as lnk
from lnkernel.errors import InputError
from lnkernel.gp import matrix_free, strips

ARCH = lnk.mlp(hidden=1, norm="first")
RNG = np.random.default_rng(0)
N = 150
X, Y, NEW = RNG.normal(size=(N, 3)), RNG.normal(size=N), RNG.normal(size=(5, 3))


def agree(folder: Path) -> None:
    """Kernel, factorised and iterated posterior are those of one process; the kernel's program does not talk."""
    mesh = lnk.distributed.mesh()
    points = X[:144]  # equal parts for each device
    kernel = lnk.ntk(ARCH)(points, sharding=mesh)
    whole = lnk.ntk(ARCH)(points)
    for part in kernel.addressable_shards:
        assert np.abs(np.asarray(part.data) - whole[part.index]).max() < 1e-14
    _demand_silence(mesh)
    exact = lnk.posterior(ARCH, X, Y, noise=0.1)
    many = lnk.posterior(ARCH, X, Y, noise=0.1, sharding=mesh, tiles=folder / "tiles")
    size = np.abs(exact.mean(NEW)).max()
    assert np.abs(many.mean(NEW) - exact.mean(NEW)).max() < 1e-12 * size
    assert np.abs(many.variance(NEW) - exact.variance(NEW)).max() < 1e-12
    likelihoods = [p.log_marginal_likelihood() for p in (many, exact)]
    assert abs(likelihoods[0] / likelihoods[1] - 1) < 1e-12
    near = lnk.posterior(ARCH, X, Y, noise=0.1, sharding=mesh, tolerance=1e-6)
    assert np.abs(near.mean(NEW) - exact.mean(NEW)).max() <= near.error <= 1e-6
    strips.StripLayout.bytes_of_device = lambda self: 2**60  # the matrix has no room
    matrix_free.TILE = 40
    free = lnk.posterior(ARCH, X, Y, noise=0.1, sharding=mesh, tolerance=1e-6)
    assert free._fit.solver.stored_strips is None
    assert np.abs(free.mean(NEW) - exact.mean(NEW)).max() <= free.error <= 1e-6
    print("mean", " ".join(value.hex() for value in many.mean(NEW)))


def _demand_silence(mesh: Mesh) -> None:
    """What follows the kernel's own parts, which each process computes by itself, needs no other process either."""
    layout = strips.deal_out(N, mesh)
    strip = jax.ShapeDtypeStruct((layout.height,) * 2, np.float64, sharding=layout.by_rows)
    with jax.enable_x64(True):
        numbers = np.ones(layout.height)
        lowered = strips._finish.lower(strip, numbers, numbers, 0, layout.by_rows)
        text = lowered.compile().as_text()
    for word in ("all-gather", "all-reduce", "all-to-all", "collective", "reduce-scatter"):
        assert word not in text, word


def refuse(folder: Path) -> None:
    """Other data in one process, and a mesh without one of them, are told."""
    y = Y + (jax.process_index() == 1)
    expect("the data", lambda: lnk.posterior(ARCH, X, y, sharding=lnk.distributed.mesh()))
    few = Mesh(
        np.array([d for d in jax.devices() if d.process_index < jax.process_count() - 1]), ("rows",)
    )
    if jax.process_count() > 2:
        expect("none of process", lambda: lnk.posterior(ARCH, X, Y, sharding=few))
    print("refused")


def expect(text: str, call: object) -> None:
    try:
        call()  # type: ignore[operator]
    except InputError as problem:
        assert text in str(problem), problem
    else:
        raise AssertionError("no error")


def die(folder: Path) -> None:
    """The last process is killed after it has written one strip."""
    strips.GROUP = 50
    usual, count = strips.GramStrips.strip, [0]

    def strip(self, m, ends):  # type: ignore[no-untyped-def]
        count[0] += 1
        if count[0] == 2 and jax.process_index() == jax.process_count() - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return usual(self, m, ends)

    strips.GramStrips.strip = strip
    lnk.posterior(ARCH, X, Y, noise=0.1, sharding=lnk.distributed.mesh(), tiles=folder / "tiles")


def resume(folder: Path) -> None:
    """What was written is not computed again."""
    strips.GROUP = 50
    computed = []
    usual = strips.TileFiles.part

    def part(self, name, shape, start, rows, compute):  # type: ignore[no-untyped-def]
        def counted() -> np.ndarray:
            computed.append(name)
            return compute()

        return usual(self, name, shape, start, rows, counted)

    strips.TileFiles.part = part
    many = lnk.posterior(
        ARCH, X, Y, noise=0.1, sharding=lnk.distributed.mesh(), tiles=folder / "tiles"
    )
    exact = lnk.posterior(ARCH, X, Y, noise=0.1)
    assert np.abs(many.mean(NEW) - exact.mean(NEW)).max() < 1e-12
    print("computed", *sorted(set(computed)))


def main() -> None:
    task, coordinator, processes, process, folder = sys.argv[1:]
    heartbeat = lnk.distributed.start.HEARTBEAT if task == "lose" else 10
    devices = 2 if task != "unequal" or process == "0" else 1
    jax.config.update("jax_num_cpu_devices", devices)
    lnk.distributed.initialize(
        coordinator, int(processes), int(process), heartbeat=heartbeat, patience=60
    )
    {"agree": agree, "refuse": refuse, "die": die, "lose": die, "resume": resume}[task](
        Path(folder)
    )


if __name__ == "__main__":
    main()
