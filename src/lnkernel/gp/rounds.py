"""Rounds of a factorisation over devices on disk, so that a run that was killed goes on after the last of them."""

from __future__ import annotations

import hashlib
import shutil
import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from lnkernel.gp.strips import StripLayout
from lnkernel.gp.tiles import Column
from lnkernel.gram.hosts import gather
from lnkernel.gram.tile_files import TileFiles

EVERY = 600.0  # seconds from one time of saving to the next


class Progress(NamedTuple):
    """The columns of L that are done, and what is left of the strips, each in tiles."""

    tiles: list[Column]
    active: list[list[jax.Array]]


@dataclass
class Rounds:
    """The files of one factorisation; what is added to the diagonal is part of their name."""

    files: TileFiles
    layout: StripLayout
    last: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, files: TileFiles, layout: StripLayout, diagonal: np.ndarray) -> Rounds:
        name = hashlib.sha256(diagonal.tobytes()).hexdigest()[:16]
        return cls(replace(files, folder=files.folder / f"factor-{name}"), layout)

    def find(self) -> Progress | None:
        """After the last round that all processes have saved."""
        known = np.array(
            [self._mark(k).exists() for k in range(1, self.layout.groups + 1)], np.uint32
        )
        if jax.process_count() > 1:
            known = gather(known).min(axis=0)
        if not known.any():
            return None
        done = int(np.flatnonzero(known)[-1]) + 1
        left = self.layout.groups - done
        tiles = [
            tuple(self._read(f"tile-{c}-{m}") for m in range(self.layout.groups - c))
            for c in range(done)
        ]
        active = [[self._read(f"active-{done}-{m}-{g}") for g in range(m + 1)] for m in range(left)]
        return Progress(tiles, active)

    def offer(self, reached: Progress) -> None:
        """Save it, if the last time was long ago."""
        if time.monotonic() - self.last < EVERY:
            return
        done = len(reached.tiles)
        for c, column in enumerate(reached.tiles):
            for m, tile in enumerate(column):
                self._write(f"tile-{c}-{m}", tile)
        for m, strip in enumerate(reached.active):
            for g, tile in enumerate(strip):
                self._write(f"active-{done}-{m}-{g}", tile)
        self._mark(done).touch()
        self._forget(done)
        self.last = time.monotonic()

    def _forget(self, done: int) -> None:
        """Strips of earlier rounds, but for the one before: another process may have come no further."""
        marks = sorted(k for k in range(1, done) if self._mark(k).exists())
        for k in marks[:-1]:
            self._mark(k).unlink()
            if jax.process_index() == 0:
                for path in self.files.folder.glob(f"active-{k}-*"):
                    shutil.rmtree(path, ignore_errors=True)

    def _mark(self, done: int) -> Path:
        return self.files.folder / f"round-{done}-of-process-{jax.process_index()}"

    def _write(self, name: str, array: jax.Array) -> None:
        rows, columns = array.shape
        for part in array.addressable_shards:
            start = part.index[0].start or 0
            given = partial(np.asarray, part.data)
            self.files.part(name, (rows, columns), start, len(part.data), given)

    def _read(self, name: str) -> jax.Array:
        shape = self.layout.height, self.layout.height
        placed = []
        for device, index in self.layout.by_rows.addressable_devices_indices_map(shape).items():
            assert index is not None  # only devices of other hosts have none
            start, block = index[0].start or 0, self.layout.block
            part = self.files.part(name, shape, start, block, _missing)
            placed.append(jax.device_put(part, device))
        return jax.make_array_from_single_device_arrays(shape, self.layout.by_rows, placed)


def _missing() -> np.ndarray:
    raise FileNotFoundError("a file of a round that was saved is gone; delete its folder")
