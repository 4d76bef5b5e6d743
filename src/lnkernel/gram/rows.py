"""Pairs of images by one program, in which equal positions are compared: input by input, each with many others.

The numbers of many pairs lie side by side, behind their positions: so a window is a sum of whole rows in memory, and
every loop uses whole registers. One input of the first side is compared at a time, so that its numbers stay in the
cache and their memory is used again; what belongs to the second side alone is computed before the loop (XLA moves it
there). The raw inputs come in, since what is made of them takes NumPy as long as the pairs of few inputs take here.
Such a program runs on one core, and several of them side by side.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from lnkernel.calculus.positions import Positions
from lnkernel.calculus.state import State
from lnkernel.evaluate.float64.arithmetic import Float64, PlainLengths
from lnkernel.evaluate.float64.deep import run
from lnkernel.evaluate.float64.own import Reading
from lnkernel.gram.compiled import EMITTED_SOON, WHOLE_REGISTERS, compiled
from lnkernel.gram.network import Needs
from lnkernel.gram.program import Program, network_from
from lnkernel.gram.sides import Images, pairs_at_input, prepare, with_plain_lengths, without_zeros
from lnkernel.gram.stages import has_plain_lengths
from lnkernel.gram.structure import Structure
from lnkernel.types import Array

LANES = 16  # pairs side by side: what a row takes then stays in a cache of a megabyte
IN_A_CALL = 1 << 21  # pairs of positions for which a program is called
ON_ONE_CORE = {"xla_cpu_multi_thread_eigen": False}
# the older way to emit loops uses whole registers here, and the newer does not
OPTIONS = {**WHOLE_REGISTERS, **EMITTED_SOON, **ON_ONE_CORE}

Out = tuple[Array, ...]


class Inputs(NamedTuple):
    """Raw inputs; and 1 at every position that counts, 0 at the others, where there are such."""

    x: Any  # (n, positions, channels)
    inside: Any = None  # (n, positions)


End = Callable[[State, Float64], Out]
T = TypeVar("T")
S = TypeVar("S")


def suits(needs: Needs) -> bool:
    """Whether pairs take little work, and lengths neither leave the range of float64 nor need more of its digits."""
    return has_plain_lengths(needs) and not needs.compiler


def kernels(program: Program, one: Inputs, two: Inputs) -> Out:
    """The kernels of all pairs, (n, m) each, of a network that compares equal positions alone."""
    structure, varying, which, all_live, needs = program
    made: Out = compiled(_kernels, structure, needs, all_live, which, options=OPTIONS)(
        varying, one, two
    )
    return made


def _kernels(
    structure: Structure,
    needs: Needs,
    all_live: bool,
    which: tuple[str, ...],
    varying: Array,
    one: Inputs,
    two: Inputs,
) -> Out:
    def end(state: State, num: Float64) -> Out:
        found = state.kernels(num)
        return tuple(getattr(found, name) for name in which)

    net = structure, needs, all_live, varying
    return by_rows(*net, one, two, lambda *_: Reading((), ()), end)


def by_rows(
    structure: Structure,
    needs: Needs,
    all_live: bool,
    varying: Array,
    one: Inputs,
    two: Inputs,
    own: Callable[[Inputs, Inputs], Any],
    end: End,
) -> Out:
    """What `end` makes of the last state of all pairs, (n, m) each; `own` is what is known of single inputs."""
    net, num = network_from(structure, needs, varying), PlainLengths()

    def images(x: Array) -> Images:
        made = with_plain_lengths(prepare(needs, x))
        return without_zeros(made) if all_live else made

    second = images(two.x)

    def of_row(row: Inputs) -> Out:
        first: Inputs = jax.tree.map(lambda part: part[None], row)
        at = Positions(two.x.shape[1:-1], False, own(first, two), behind=2)
        start = pairs_at_input(needs, images(first.x), second, at)
        found = end(run(net.arch, start, num, net.source), num)
        return tuple(jnp.broadcast_to(made, (1, len(two.x)))[0] for made in found)

    found: Out = lax.map(of_row, one)
    return found


def one_by_one(compute: Callable[[S], T], parts: Iterable[S]) -> Iterator[tuple[S, T]]:
    """The parts, each with what is computed of it."""
    return ((part, compute(part)) for part in parts)


def side_by_side(compute: Callable[[S], T], parts: Iterable[S]) -> Iterator[tuple[S, T]]:
    """The same on all cores, in order, and no more at a time than there are cores."""

    def of(part: S) -> T:
        with jax.enable_x64(True):  # it holds for one thread
            return jax.block_until_ready(compute(part))

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    left = iter(parts)
    with ThreadPoolExecutor(cores) as pool:
        waiting = [(part, pool.submit(of, part)) for part in islice(left, cores)]
        while waiting:
            part, found = waiting.pop(0)
            result = found.result()
            waiting += [(more, pool.submit(of, more)) for more in islice(left, 1)]
            yield part, result
