"""What an experiment is, and how it is run."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lnkernel.errors import InputError


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper.

    The module of the same name in this package has a function
    `conduct(folder, *, quick, seed, seeds, **options)`, which computes, writes figures and tables
    into `folder` and returns a `Report`; it is imported when the experiment runs.

    Attributes:
        name: as on the command line, and of the module.
        title: what it is about, in a few words.
        options: what it takes beyond the common arguments, with a line of help for each.

    >>> from lnkernel.experiments import REGISTRY
    >>> REGISTRY["toy"].title
    'Three functions on a line, far outside the data'
    """

    name: str
    title: str
    options: Mapping[str, str] = field(default_factory=dict)

    def run(
        self,
        out: str | Path,
        *,
        quick: bool = False,
        seed: int = 0,
        seeds: int | None = None,
        progress: bool = True,
        **options: Any,
    ) -> Path:
        """Run it, or what an earlier run into the same folder left to do; the report's path.

        Args:
            out: the folder of the results, made if it is not there.
            quick: a small version, under a minute.
            seed: the seed of the first network; the others have the numbers that follow.
            seeds: networks of each kind; by default as many as the paper took, in `quick` fewer.
            progress: whether to show bars, on stderr.
            **options: those that `options` lists.
        """
        unknown = sorted(set(options) - set(self.options))
        if unknown:
            raise InputError(
                unknown[0],
                f"an option of the experiment {self.name}",
                "an unknown one",
                f"It takes {', '.join(self.options) or 'no further options'}",
            )
        from lnkernel.experiments.folder import Folder

        module = importlib.import_module(f"lnkernel.experiments.{self.name}")
        folder = Folder(Path(out), self.name, quick=quick, progress=progress)
        report = module.conduct(folder, quick=quick, seed=seed, seeds=seeds, **options)
        manifest = folder.finish()
        return folder.write("report.html", report.html(manifest))
