"""Networks with a normalisation as programs that they share: all that is behind it is one function of the angle."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from lnkernel.arch import Serial
from lnkernel.arch.facts import needs_difference, needs_sharp_lengths
from lnkernel.evaluate.float64.angle_function import is_gentle, with_angle_function
from lnkernel.evaluate.float64.expansion import has_series
from lnkernel.evaluate.float64.gaps import NOTHING_DELICATE
from lnkernel.gram.program import Dissected, Program, network_of
from lnkernel.gram.structure import Structure, dissect


def quickest(program: Program) -> Program:
    """The same kernels of pairs, for the least work: by their angle alone where that will do, and without more care for
    small angles where a network makes little of a rounding error of the cosine."""
    made = by_angle(program)
    return without_care(program) if made is program else made


def without_care(program: Program) -> Program:
    """The same kernels of pairs, without more care for small angles, where the network is gentle."""
    if not (program.all_live and program.needs.gentle):
        return program
    # nor do rounding errors of the lengths count beside that of the cosine
    return program._replace(
        needs=program.needs._replace(delicate=NOTHING_DELICATE, sharp_lengths=False)
    )


def by_angle(program: Program) -> Program:
    """The same kernels of pairs, for less work; or the program itself, where the lengths of the inputs matter in every
    layer, or a layer takes so much work that few angles are worth a program."""
    if not program.all_live or program.needs.compiler:
        return program
    made = _dissect(_Key(program.structure, program.varying.tobytes(), program.which, program))
    if made is None:
        return program
    return program._replace(structure=made.structure, varying=made.varying, needs=made.needs)


@dataclass(frozen=True)
class _Key:
    """A network by its structure and its numbers."""

    structure: Structure
    numbers: bytes
    which: tuple[str, ...]
    program: Program = field(compare=False)


@lru_cache(maxsize=256)
def _dissect(key: _Key) -> Dissected | None:
    whole = network_of(key.program).arch
    arch = with_angle_function(whole, "ntk" in key.which, "nngp" in key.which)
    if arch is None:
        return None
    structure, varying = dissect(arch)
    # Behind a norm lengths no longer matter; nor does an error of the angle that is no larger than a rounding error,
    # since the function is smooth in it.
    before = Serial(arch.layers[:-1])
    difference = needs_difference(before)
    needs = key.program.needs._replace(
        loop=False,
        sharp_lengths=needs_sharp_lengths(before),
        difference=difference,
        quick_difference=difference,
    )
    if has_series(whole) and not needs.centred_input and is_gentle(arch):
        needs = needs._replace(delicate=NOTHING_DELICATE)
    return Dissected(structure, np.asarray(varying), needs)
