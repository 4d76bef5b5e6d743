"""Runs the notebooks from scratch and writes them back with their outputs.

    python notebooks/execute.py [NOTEBOOK ...]

All of this folder by default. Nothing is kept that differs from run to run or from machine to machine,
so that a notebook which says the same is the same file.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).parent
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS = 120  # for one cell
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
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


def main(paths: list[Path]) -> int:
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
