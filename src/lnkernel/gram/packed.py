"""All numbers of the points of a block as one array: a batch of blocks is then one copy and one argument."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from lnkernel.types import Array


class Form(NamedTuple):
    """What was packed: its tree, and for each array its shape, less the blocks, and its type."""

    tree: Any
    arrays: tuple[tuple[tuple[int, ...], str], ...]


@partial(jax.tree_util.register_dataclass, data_fields=["numbers"], meta_fields=["form"])
@dataclass(frozen=True)
class Packed:
    """A tree of arrays (..., size), one below the other as rows of float64: (rows, size), or (blocks, rows, size)."""

    numbers: Array
    form: Form

    def at(self, index: np.ndarray) -> Packed:
        """The blocks with these numbers."""
        shape = (len(index), *self.numbers.shape[1:])
        return replace(self, numbers=np.take(self.numbers, index, 0, _aligned_room(shape), "clip"))


def _aligned_room(shape: tuple[int, ...]) -> np.ndarray:
    """Room for float64 numbers that starts at a multiple of 64 bytes: JAX then reads it where it is, without a copy."""
    size = 8 * math.prod(shape)
    room = np.empty(size + 63, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + size].view(np.float64).reshape(shape)


def pack(tree: Any) -> Packed:
    """A tree of NumPy's arrays (blocks, ..., size): truths, whole numbers below 2^53, and float64."""
    leaves, form = jax.tree.flatten(tree)
    arrays = tuple((array.shape[1:], array.dtype.str) for array in leaves)
    rows = [array.reshape(len(array), -1, array.shape[-1]) for array in leaves]
    blocks, size = len(rows[0]), rows[0].shape[-1]
    # block after block, whatever the order of the parts: else every batch of blocks would be a copy of them all
    numbers = np.empty((blocks, sum(part.shape[1] for part in rows), size))
    return Packed(np.concatenate(rows, axis=1, out=numbers), Form(form, arrays))


def unpack(packed: Packed) -> Any:
    """The tree again, of one block: (..., size)."""
    leaves, row = [], 0
    for shape, kind in packed.form.arrays:
        end = row + math.prod(shape[:-1])
        leaves.append(packed.numbers[row:end].reshape(shape).astype(kind))
        row = end
    return jax.tree.unflatten(packed.form.tree, leaves)
