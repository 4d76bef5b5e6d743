"""Figures ready for a paper: PNG and PDF, fonts embedded, one look."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lnkernel.experiments.folder import Folder

FULL_WIDTH = 6.9  # inches: the text width of a two-column paper
DPI = 200
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # TrueType: text in the PDF stays text
    "figure.constrained_layout.use": True,
}


@contextmanager
def new_figure(
    folder: Folder, name: str, height: float, width: float = FULL_WIDTH
) -> Iterator[Any]:
    """A matplotlib figure to draw into; at the end `name.png` and `name.pdf` are written.

    >>> import pathlib, tempfile
    >>> from lnkernel.experiments.folder import Folder
    >>> folder = Folder(pathlib.Path(tempfile.mkdtemp()), "toy", quick=True, progress=False)
    >>> with new_figure(folder, "line", height=2.0) as figure:
    ...     _ = figure.subplots().plot([0, 1], [0, 1])
    >>> figure_path(folder, "line").is_file()
    True
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height))
        yield figure
        file, of_fonts = figure_path(folder, name), logging.getLogger("fontTools")
        figure.savefig(file, dpi=DPI)
        level = of_fonts.level
        of_fonts.setLevel(logging.ERROR)  # it warns of dates in matplotlib's own fonts
        try:
            figure.savefig(file.with_suffix(".pdf"), metadata={"CreationDate": None})
        finally:
            of_fonts.setLevel(level)


def figure_path(folder: Folder, name: str) -> Path:
    """Where `new_figure` writes the PNG."""
    return folder.path / f"{name}.png"
