"""From a network and its inputs to the program that computes its matrices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnkernel.arch import Node
from lnkernel.calculus.state import Kernels
from lnkernel.gram.structure import Structure, assemble, dissect
from lnkernel.types import Array


class Program(NamedTuple):
    """What all pairs of a matrix have in common."""

    structure: Structure
    varying: Array  # its hyperparameters, in one array
    which: tuple[str, ...]  # of the kernels, in the order wanted
    all_live: bool  # whether no point is the zero vector


Dissected = tuple[Structure, np.ndarray]


def dissect_numbers(arch: Node) -> Dissected:
    """The structure of a network, and its hyperparameters as one array."""
    structure, varying = dissect(arch)
    return structure, np.asarray([float(v) for v in varying])


def program_for(dissected: Dissected, which: tuple[str, ...], *inputs: Array) -> Program:
    """For these inputs (n, d), which may hold zero vectors or not."""
    all_live = all(bool((np.asarray(x) != 0).any(axis=1).all()) for x in inputs)
    return Program(*dissected, which, all_live)


def named(kernels: Kernels, which: tuple[str, ...]) -> tuple[Array, ...]:
    """Those of the kernels that are wanted, in this order."""
    return tuple(getattr(kernels, name) for name in which)


def assembled(program: Program) -> Node:
    """The network again, with plain numbers as hyperparameters."""
    arch: Node = assemble(program.structure, np.asarray(program.varying).tolist())
    return arch
