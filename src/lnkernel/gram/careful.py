"""Pairs that ask for care, computed by compiled programs in chunks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.gram import pairs
from lnkernel.gram.compiled import compiled
from lnkernel.gram.network import Needs
from lnkernel.gram.program import Program, network_from, select
from lnkernel.gram.structure import Structure
from lnkernel.types import Array

Out = tuple[Array, ...]
CHUNKS = (64, 1024, 16384)  # delicate pairs are computed so many at a time
DEAR_CHUNKS = (16, 128)  # where a pair takes milliseconds, so that none is computed in vain
MOST_COORDINATES = 1 << 22  # of a chunk


def _cores() -> int:
    """The cores that this process may use, which a scheduler may have chosen among all."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


# Kept: threads start once, not with every matrix. One computes a batch, by XLA's threads on all cores, while others
# copy what is there; with one for each core the copying, which is bound by memory, never waits for a thread.
THREADS = ThreadPoolExecutor(_cores(), "lnkernel")


def by_program(
    program: Program,
    points: pairs.Points,
    points2: pairs.Points,
    rows: np.ndarray,
    columns: np.ndarray,
) -> Iterator[tuple[np.ndarray, np.ndarray, list[np.ndarray]]]:
    """Rows, columns and values of the pairs at these places, in chunks."""
    most = MOST_COORDINATES // points.raw.unit.shape[1]
    chunks = DEAR_CHUNKS if program.needs.compiler else CHUNKS
    allowed = [c for c in chunks if c <= most] or chunks[:1]
    chunk = next((c for c in allowed if c >= len(rows)), allowed[-1])
    static = program.structure, program.needs, program.which, program.all_live
    compute = compiled(_careful, *static)

    def some(k: int) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        a, b = rows[k : k + chunk], columns[k : k + chunk]
        sides = pairs.take(points, np.resize(a, chunk)), pairs.take(points2, np.resize(b, chunk))
        with jax.enable_x64(True):  # each thread has settings of its own
            found = compute(program.varying, *sides)
            return a, b, [np.asarray(value)[: len(a)] for value in found]

    # pairs that are integrated keep one core busy each, so that there are threads for all of them
    yield from THREADS.map(some, range(0, len(rows), chunk))


def _careful(
    structure: Structure,
    needs: Needs,
    which: tuple[str, ...],
    all_live: bool,
    varying: Array,
    one: pairs.Points,
    two: pairs.Points,
) -> Out:
    """Some pairs, with all care."""
    net = network_from(structure, needs, varying)
    values = select(pairs.careful(net, one, two, all_live), which)
    return tuple(jnp.broadcast_to(v, one.raw.live.shape) for v in values)
