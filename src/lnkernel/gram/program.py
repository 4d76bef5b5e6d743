"""From a network and its inputs to the program that computes its matrices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnkernel.arch import Node
from lnkernel.calculus.state import Kernels
from lnkernel.evaluate.float64.deep import Source
from lnkernel.evaluate.float64.expansion import are_live
from lnkernel.gram.network import Needs, Network, needs_of
from lnkernel.gram.structure import Structure, assemble, dissect, places
from lnkernel.types import Array


class Program(NamedTuple):
    """What all pairs of a matrix have in common."""

    structure: Structure
    varying: Array  # its hyperparameters, in one array
    which: tuple[str, ...]  # names of the kernels, in the order wanted
    all_live: bool  # whether no point is the zero vector
    needs: Needs


class Dissected(NamedTuple):
    """The structure of a network, its hyperparameters as one array, and what its rules need."""

    structure: Structure
    varying: np.ndarray
    needs: Needs


def dissect_numbers(arch: Node) -> Dissected:
    """The parts of a network."""
    structure, varying = dissect(arch)
    return Dissected(structure, np.asarray([float(v) for v in varying]), needs_of(arch))


def program_for(dissected: Dissected, which: tuple[str, ...], *inputs: Array) -> Program:
    """The program for these inputs (n, ..., d), which may hold zero vectors or not."""
    live = are_live(*inputs)
    return Program(dissected.structure, dissected.varying, which, live, dissected.needs)


def select(kernels: Kernels, which: tuple[str, ...]) -> tuple[Array, ...]:
    """The kernels that are wanted, in this order."""
    return tuple(getattr(kernels, name) for name in which)


def network_from(structure: Structure, needs: Needs, varying: Array) -> Network:
    """The network inside of a program, where its hyperparameters come as one array."""
    source = Source(places(structure), varying) if needs.loop else None
    return Network(assemble(structure, varying), needs, source)


def network_of(program: Program) -> Network:
    """The network again, with plain numbers as hyperparameters."""
    arch: Node = assemble(program.structure, np.asarray(program.varying).tolist())
    return Network(arch, program.needs)
