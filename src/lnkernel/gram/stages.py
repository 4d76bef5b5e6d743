"""Networks on images, layer by layer, each by a program of its own.

Inside of one program XLA fuses a loop with those that make its inputs. For a window of nine places it would compute an
activation nine times, behind the next window 81 times, and it asks for every number whether it lies in the zeros around
the image: minutes of compilation, gigabytes of memory, several times the work. Between programs the numbers are in
memory, and equal layers share one program. So a network is cut before every layer that acts on positions:

    frame        the zeros, or the other end of the image, are put around it,
    stage        the layer, without padding, and what follows it at every position.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lnkernel.arch import Conv, ConvLocal, Node, Parallel, Serial
from lnkernel.arch.traits import traits
from lnkernel.arch.window import Slide, Window
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.positions import FIRST, SECOND, Positions, spread
from lnkernel.calculus.rules import rule, summed
from lnkernel.calculus.state import Kernels, State
from lnkernel.evaluate.float64.arithmetic import Float64, PlainLengths
from lnkernel.evaluate.float64.carried import Form, put_back, take_out
from lnkernel.evaluate.float64.own import Record
from lnkernel.gram.compiled import EMITTED_SOON, WHOLE_REGISTERS, compiled
from lnkernel.gram.network import Needs
from lnkernel.gram.structure import Structure, assemble, dissect
from lnkernel.types import Array

OPTIONS = {**WHOLE_REGISTERS, **EMITTED_SOON}


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["arrays", "notes"],
    meta_fields=["form", "record"],
)
@dataclass(frozen=True)
class Carried:
    """A state between two programs: its arrays, and what else it is, which a program is compiled for."""

    arrays: list[Array]
    notes: Any  # what the inputs tell of themselves, as `record` packs it
    form: Form
    record: type[Record]


def pack(state: State, record: Record, as_one: bool = False) -> Carried:
    """The state without what can be told from the rest.

    If w and t come `as_one` they are the two parts of a complex number. XLA writes every array by a loop of its own,
    and what w and t have in common, nearly all of an activation, would be computed twice.
    """
    cov = state.total
    if cov.never_obtuse:
        lean = dataclasses.replace(cov, z=None, c=None)
        t = state.t
        if as_one and _same_form(cov.w, t):
            lean, t = dataclasses.replace(lean, w=lax.complex(cov.w, t)), None
        centred = lean if state.centred is cov else state.centred
        state = dataclasses.replace(state, total=lean, centred=centred, t=t)
    nobody: Any = None  # the record goes by itself
    at = state.positions and dataclasses.replace(state.positions, own=nobody)
    arrays: list[Array] = []
    form = take_out(dataclasses.replace(state, positions=at), arrays)
    return Carried(arrays, record.packed, form, type(record))


def unpack(carried: Carried) -> tuple[State, Record]:
    """The state again, and the record that it reads or writes."""
    record = carried.record.unpacked(carried.notes)
    state: State = put_back(carried.form, carried.arrays)
    cov = state.total
    if cov.never_obtuse:
        w, t = (cov.w, state.t) if state.t is not None else (cov.w.real, cov.w.imag)
        full = dataclasses.replace(cov, w=w, z=1 - w, c=1 - 2 * w)
        centred = full if state.centred is cov else state.centred
        state = dataclasses.replace(state, total=full, centred=centred, t=t)
    at = state.positions and dataclasses.replace(state.positions, own=record)
    return dataclasses.replace(state, positions=at), record


def _same_form(one: Any, two: Any) -> bool:
    return all(isinstance(x, jax.Array) for x in (one, two)) and one.shape == two.shape


def run(arch: Node, carried: Carried, settings: Needs, is_branch: bool = False) -> Carried:
    """The state behind `arch`, whose hyperparameters are plain numbers."""
    layers: list[Node] = []
    parts = _cut(arch)
    for place, layer in enumerate(parts):
        if not _acts_on_positions(layer):
            layers.append(layer)
            continue
        carried = _through(layers, carried, settings, not mean_matters(parts[place:], is_branch))
        layers = []
        if isinstance(layer, Parallel):
            carried = _added_up(layer, carried, settings)
            continue
        with_frame = unpadded(layer)
        if with_frame is not None:
            window, layer = with_frame
            slides = tuple(window.over(_shape(carried), type(layer).__name__))
            carried = compiled(_framed, settings, slides, options=OPTIONS)(carried)
        behind = parts[place + 1 :]
        carried = _through([layer], carried, settings, not mean_matters(behind, is_branch))
    return _through(layers, carried, settings, not is_branch)


def has_plain_lengths(settings: Needs) -> bool:
    """Whether squared lengths are ordinary numbers: where layers neither multiply their errors nor leave the range."""
    return not (settings.range or settings.sharp_lengths)


def finish(carried: Carried, settings: Needs, which: tuple[str, ...]) -> tuple[Array, ...]:
    """The kernels of the last state."""
    made: tuple[Array, ...] = compiled(_kernels, settings, which, options=OPTIONS)(carried)
    return made


# ---------------------------------------------------------------- where a network is cut


@singledispatch
def unpadded(layer: Node) -> tuple[Window, Node] | None:
    """The window of a layer that pads its images, and the layer for images that are padded already; None of others."""
    return None


@unpadded.register(Conv)
@unpadded.register(ConvLocal)
def _(layer: Conv | ConvLocal) -> tuple[Window, Node] | None:
    if layer.padding == "VALID":
        return None
    return layer.window, dataclasses.replace(layer, padding="VALID")


@singledispatch
def _cut(arch: Node) -> list[Node]:
    """The parts that are done one after another."""
    return [arch]


@_cut.register
def _(arch: Serial) -> list[Node]:
    return [part for layer in arch.layers for part in _cut(layer)]


@singledispatch
def _acts_on_positions(layer: Node) -> bool:
    return traits(layer).on_positions


@_acts_on_positions.register
def _(layer: Serial) -> bool:
    return any(map(_acts_on_positions, layer.layers))


@_acts_on_positions.register
def _(layer: Parallel) -> bool:
    return any(map(_acts_on_positions, layer.branches))


def mean_matters(layers: list[Node], is_branch: bool) -> bool:
    """Whether what follows asks for the mean features before it: a norm does, if no weights come before it."""
    for layer in layers:
        facts = traits(layer)
        if not facts.needs_mean:
            return False
        if facts.reads_centred or isinstance(layer, Parallel):
            return True
    return is_branch


def _shape(carried: Carried) -> tuple[int, ...]:
    shape: tuple[int, ...] = put_back(carried.form, carried.arrays).positions.shape
    return shape


# ---------------------------------------------------------------- the programs


def _through(layers: list[Node], carried: Carried, settings: Needs, forgets: bool) -> Carried:
    if not layers:
        return carried
    structure, varying = dissect(Serial(tuple(layers)))
    numbers = np.asarray([float(number) for number in varying])
    as_one = not any(map(_acts_on_positions, layers))
    program = compiled(_stage, structure, settings, forgets, as_one, options=OPTIONS)
    made: Carried = program(numbers, carried)
    return made


def _added_up(layer: Parallel, carried: Carried, settings: Needs) -> Carried:
    """The sum of the branches, each of which goes on with what the one before it has left of the notes."""
    ends: list[Carried] = []
    for branch in layer.branches:
        notes = ends[-1].notes if ends else carried.notes
        ends.append(run(branch, dataclasses.replace(carried, notes=notes), settings, True))
    made: Carried = compiled(_sum, settings, options=OPTIONS)(ends)
    return made


def _stage(
    structure: Structure,
    settings: Needs,
    forgets: bool,
    as_one: bool,
    varying: Array,
    carried: Carried,
) -> Carried:
    """Behind these layers. If what follows `forgets` the mean features, they are not computed."""
    state, record = unpack(carried)
    state = rule(assemble(structure, varying), state, float64_for(settings))
    if forgets:
        state = dataclasses.replace(state, centred=state.total, mean=None)
    return pack(state, record, as_one=as_one)


def _sum(settings: Needs, ends: list[Carried]) -> Carried:
    states = [unpack(end)[0] for end in ends]
    return pack(summed(float64_for(settings), states), unpack(ends[-1])[1])


def _kernels(settings: Needs, which: tuple[str, ...], carried: Carried) -> tuple[Array, ...]:
    found: Kernels = unpack(carried)[0].kernels(float64_for(settings))
    return tuple(getattr(found, name) for name in which)


def _framed(settings: Needs, slides: tuple[Slide, ...], carried: Carried) -> Carried:
    """The state of the images with what padding puts around them: positions of length 0, or those of the other end."""
    state, record = unpack(carried)
    num = float64_for(settings)
    at = state.positions
    assert at is not None
    around = tuple((slide.low, slide.high) for slide in slides)
    mode = "wrap" if slides[0].wraps else "constant"

    def put_around(x: Any, side: int | None) -> Any:
        """An array at all positions; of pairs, or of one side."""

        def of(part: Any) -> Any:
            widths = _widths(at, around, side)
            return jnp.pad(part, [(0, 0)] * (part.ndim - len(widths)) + widths, mode=mode)

        return jax.tree.map(of, spread(num, x, at.form(side)))

    def of_pair(x: Any) -> Any:
        """What is one number for all pairs stays one: it is multiplied by the lengths."""
        return put_around(x, None) if isinstance(x, jax.Array) and x.ndim else x

    def of_length(length: Length, side: int) -> Length:
        live = length.live if length.live is True else put_around(length.live, side)
        return Length(put_around(length.q, side), live)

    cov = state.total
    total = Covariance(
        of_length(cov.first, FIRST),
        of_length(cov.second, SECOND),
        of_pair(cov.w),
        of_pair(cov.z),
        of_pair(cov.c),
        of_pair(cov.e),
        cov.never_obtuse,
    )
    shape = tuple(n + low + high for n, (low, high) in zip(at.shape, around, strict=True))
    o = None if state.o is None else put_around(state.o, None)
    framed = dataclasses.replace(
        state,
        total=total,
        centred=total,
        t=of_pair(state.t),
        o=o,
        positions=dataclasses.replace(at, shape=shape),
    )
    return pack(framed, record)


def _widths(
    at: Positions, around: tuple[tuple[int, int], ...], side: int | None
) -> list[tuple[int, int]]:
    """What is put around each of the last axes."""
    if not at.paired:
        return list(around)
    none = ((0, 0),) * len(around)
    first, second = (around if side in (None, one) else none for one in (FIRST, SECOND))
    return [*first, *second]


def float64_for(settings: Needs) -> Float64:
    """The arithmetic of these programs."""
    if has_plain_lengths(settings):
        return PlainLengths()
    return Float64(settings.range, False, False, settings.sharp_lengths, settings.delicate)
