"""Strips of a kernel matrix on disk, so that a run that was killed goes on where it was.

Each strip is a zarr array (version 3) of one chunk for each device's rows, written by tensorstore with a checksum
(CRC-32C) that is verified when it is read. A chunk appears as a whole or not at all. Which problem the strips belong
to is told by a hash of the points, the network and the layout, which is part of the folder's name.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.errors import TileFileError
from lnkernel.types import Array


@dataclass(frozen=True)
class TileFiles:
    """The strips of one problem, below a folder of the user's."""

    folder: Path

    def demand_room(self, bytes_here: int) -> None:
        """Space on the disk for what this process has still to write."""
        self.folder.mkdir(parents=True, exist_ok=True)
        done = sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())
        free, needed = shutil.disk_usage(self.folder).free, bytes_here - done
        if needed > free:
            raise TileFileError(
                self.folder,
                f"{needed / 2**30:.2f} GiB of space on its disk",
                f"{free / 2**30:.2f} GiB",
                "Name a folder on a larger disk, or compute without tile files",
            )

    def part(
        self,
        name: str,
        shape: tuple[int, int],
        start: int,
        rows: int,
        compute: Callable[[], Array],
    ) -> np.ndarray:
        """Rows of a strip: from the disk, or computed and written there."""
        store = self._open(name, shape, rows)
        here = store[start : start + rows]
        try:
            found = np.asarray(here.read().result())
        except (ValueError, OSError) as problem:  # the checksum is wrong, or the file ends early
            raise TileFileError(
                self.folder / name,
                "what was written",
                "a chunk whose checksum is wrong",
                f"Delete {self.folder / name}; it is then computed again",
            ) from problem
        if not np.isnan(found[0, 0]):
            return found
        made = np.asarray(compute())
        try:
            here.write(made).result()
        except (ValueError, OSError) as problem:
            raise TileFileError(
                self.folder / name,
                "to write it",
                str(problem).splitlines()[0],
                "Make room on the disk and start again: what is written is kept, and not computed twice",
            ) from problem
        return made

    def _open(self, name: str, shape: tuple[int, int], rows: int) -> Any:
        import tensorstore

        return tensorstore.open(
            {
                "driver": "zarr3",
                "kvstore": {"driver": "file", "path": str(self.folder / name)},
                "metadata": {
                    "shape": list(shape),
                    "chunk_grid": {
                        "name": "regular",
                        "configuration": {"chunk_shape": [rows, shape[1]]},
                    },
                    "codecs": [
                        {"name": "bytes", "configuration": {"endian": "little"}},
                        {"name": "crc32c"},
                    ],
                    "data_type": "float64",
                    "fill_value": "NaN",  # what has not been written; a kernel is never NaN
                },
            },
            create=True,
            open=True,
        ).result()


def tile_files(folder: str | Path, description: dict[str, Any], *arrays: np.ndarray) -> TileFiles:
    """The files of this problem. Those of others in the same folder are left alone."""
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return TileFiles(Path(folder).expanduser().resolve() / f"strips-{digest.hexdigest()[:16]}")
