"""Images and sequences as rows or columns of a matrix, with what they tell of themselves, before the first layer."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, TypeVar

import jax
import numpy as np

from lnkernel.calculus.positions import Own, Positions
from lnkernel.calculus.state import State, at_input
from lnkernel.evaluate.float64 import pixels
from lnkernel.evaluate.float64.own import Notes
from lnkernel.evaluate.float64.pixels import Pixels
from lnkernel.evaluate.float64.precise import plain
from lnkernel.gram.network import Needs
from lnkernel.types import Array

T = TypeVar("T")


class Images(NamedTuple):
    """Inputs as they are, and less the means of their channels where a LayerNorm acts on the raw input."""

    raw: Pixels
    centred: Pixels | None


class Side(NamedTuple):
    """Inputs with what they tell of themselves."""

    images: Images
    notes: Notes

    @property
    def size(self) -> int:
        """How many they are."""
        return len(self.images.raw.length)


def prepare(needs: Needs, x: Array) -> Images:
    """The inputs (n, positions, channels) as a network with these needs takes them."""
    centred = pixels.prepare(x, True, needs.range) if needs.centred_input else None
    return Images(pixels.prepare(x, False, needs.range), centred)


def without_zeros(images: Images) -> Images:
    """The same, where no position is known to be the zero vector."""
    return images._replace(raw=images.raw._replace(live=None))


def with_plain_lengths(images: Images) -> Images:
    """The same with squared lengths to the digits of float64."""
    raw, centred = images
    if centred is not None:
        centred = centred._replace(square=plain(centred.square))
    return Images(raw._replace(square=plain(raw.square)), centred)


def shape_of(images: Images) -> tuple[int, ...]:
    """The shape of their positions."""
    return tuple(images.raw.length.shape[1:])


def from_here(side: T, start: int, size: int) -> T:
    """So many inputs from here on; the last one fills up."""
    count = len(jax.tree.leaves(side)[0])
    rows = np.minimum(np.arange(start, start + size), count - 1)
    made: T = jax.tree.map(lambda part: part[rows], side)
    return made


def power_of_two(n: int) -> int:
    """The largest up to n."""
    return 1 << (n.bit_length() - 1)


def next_power(n: int) -> int:
    """The smallest power of two from n on."""
    return 1 << (n - 1).bit_length()


def same_at_input(needs: Needs, images: Images, own: Own) -> State:
    """Every input with itself."""
    at = Positions(shape_of(images), needs.all_pairs, own)
    compare = partial(pixels.of_same, at=at, with_difference=needs.difference)
    total = compare(images.raw)
    return at_input(total, total if images.centred is None else compare(images.centred), at)


def pairs_at_input(needs: Needs, one: Images, two: Images, at: Positions) -> State:
    """All pairs of inputs."""
    compare = partial(pixels.of_pairs, at=at, with_difference=needs.difference)
    total = centred = compare(one.raw, two.raw)
    if one.centred is not None and two.centred is not None:
        centred = compare(one.centred, two.centred)
    return at_input(total, centred, at)
