"""What the reports of regression inside and outside of a domain have in common."""

from __future__ import annotations

from collections.abc import Sequence

from lnkernel.experiments import domain_figures as figures
from lnkernel.experiments.domains import Result, by_seed
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.report import Report


def add_quick_notice(report: Report, size: str) -> None:
    """Say in the report that this is a small run, and no reproduction."""
    report.paragraph(
        f"This is a quick run, {size}: it shows that everything works, and its numbers are not to "
        "be held against the paper's."
    )


def add_scores(
    report: Report, folder: Folder, results: Sequence[Result], seeds: Sequence[int]
) -> None:
    """R² of all methods beside the paper's: the figure, the table, and their files."""
    ranges = any(one.published and one.published.has_range for one in results)
    report.figure(
        figures.scores(folder, "scores", results),
        "R² in and out of the domain: the mean over the seeds with its standard error, and below "
        "it what the paper gives" + (" (a line without a point: a range)." if ranges else "."),
        "A point for each method, in domain and out of domain.",
    )
    folder.write_table("table", [result.row() for result in results])
    folder.write_table("seeds", by_seed(results, seeds))
    report.table(
        [result.row_in_words() for result in results],
        f"R², mean ± standard error over {len(seeds)} seeds, each with a split and a start of "
        "its own (`table.csv`; each seed: `seeds.csv`); the paper's as it prints them, of ten seeds.",
    )
