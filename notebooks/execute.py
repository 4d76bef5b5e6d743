"""Runs the notebooks from scratch and writes them back with their outputs.

    python notebooks/execute.py [NOTEBOOK ...]

All of this folder by default. Compiled programs are kept from run to run, in the folder of `lnk.store_programs()`.
Nothing is kept in a notebook that differs from run to run or from machine to machine,
so that a notebook which says the same is the same file.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import jax
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

import lnkernel as lnk

FOLDER = Path(__file__).parent
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS = 120  # for one cell
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
FOLDER_OF_PROGRAMS = "JAX_COMPILATION_CACHE_DIR"  # which JAX reads when it is imported
LEAST_SECONDS = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
MAY_SPEAK = "stderr"  # tag of a cell that is meant to write to the standard error


def executed(path: Path) -> NotebookNode:
    """The notebook after a run in a fresh kernel; an error in a cell is an error here."""
    notebook = nbformat.read(path, as_version=4)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    )
    with tempfile.TemporaryDirectory() as empty:  # no one's own settings, no shared history
        client.execute(env={**os.environ, "IPYTHONDIR": empty})
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({k: v for k, v in cell.metadata.items() if k == "tags"})
    return notebook


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def complaints(notebook: NotebookNode) -> list[str]:
    """What cells wrote to the standard error, warnings above all, where they are not meant to."""
    return [
        output.text
        for cell in code_cells(notebook)
        if MAY_SPEAK not in cell.metadata.get("tags", [])
        for output in cell.outputs
        if output.output_type == "stream" and output.name == "stderr"
    ]


def store_programs() -> None:
    """Let the notebooks' kernels keep what they compile, as `lnk.store_programs()` does, unless the user said where."""
    if FOLDER_OF_PROGRAMS in os.environ:
        return
    with suppress(OSError):  # a machine without a home: everything works, but has to be compiled
        os.environ[FOLDER_OF_PROGRAMS] = str(lnk.store_programs())
        least = jax.config.values[LEAST_SECONDS.lower()]
        os.environ[LEAST_SECONDS] = str(least)


def main(paths: list[Path]) -> int:
    store_programs()
    failed = 0
    for path in paths:
        notebook = executed(path)
        said = complaints(notebook)
        failed += bool(said)
        nbformat.write(notebook, path)
        print("\n".join([path.name, *said]))
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main([Path(name) for name in sys.argv[1:]] or NOTEBOOKS))
