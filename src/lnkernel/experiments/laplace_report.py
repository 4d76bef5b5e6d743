"""The report of the experiment on Laplace's approximation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lnkernel.experiments import laplace_figures as figures
from lnkernel.experiments.calibration import BINS
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.intervals import interval
from lnkernel.experiments.laplace_scores import SCORES, Results
from lnkernel.experiments.laplace_task import RANK, SAMPLES, WEAK
from lnkernel.experiments.laplace_trial import EXACT, MAP, SCALED, ella
from lnkernel.experiments.report import Report

TITLE = "How sure a network may be: Laplace's approximation"
SUMMARY = (
    "A classifier that is trained until its training data are certain is too sure of what it has not "
    "seen. Laplace's approximation puts a normal distribution around its parameters, of which the "
    "linearized network has outputs that vary, and averages over them. Exactly this needs the kernel "
    "of all training outputs; ELLA (Deng, Zhou and Zhu 2022) does it in a few directions of the "
    "parameters."
)


def report_of(folder: Folder, results: Sequence[Results], missing: str = "") -> Report:
    """Figures, tables and text, in the folder and in the report."""
    report = Report(TITLE, SUMMARY)
    if missing:
        report.paragraph(missing)
    many = len(results[0].trials)
    report.heading("Scores")
    report.figure(
        figures.draw_scores(folder, results),
        f"Test scores of ELLA against its rank, and of the other methods as lines: means over {many} "
        "networks with their standard errors (bars and bands). NLL and ECE are better the smaller. The "
        "exact one with τ by marginal likelihood is in the table alone.",
        "A column of panels for each data set: NLL, ECE and accuracy against the rank.",
    )
    rows = [row for found in results for row in found.rows()]
    folder.write_table("table", rows)
    report.table(
        [_shorten(row) for row in rows],
        f"Means ± standard errors over {many} networks (`table.csv`). ECE has {BINS} bins. τ is the "
        "prior precision.",
    )
    for found in results:
        report.paragraph(_compare(found))
    report.heading("Confidence")
    report.figure(
        figures.draw_reliability(folder, results),
        "Above: how often predictions of a confidence are right; on the diagonal they are as sure as "
        "they may be (bins with a hundredth of the predictions or more). Below: the share of the "
        "predictions of each confidence. All networks together.",
        "Accuracy against confidence for MAP and ELLA, and histograms of the confidence.",
    )
    report.heading("Early stopping")
    report.figure(
        figures.draw_stopping(folder, results),
        f"The NLL on validation data while ELLA of rank {RANK} takes in training inputs, for the first "
        "network: τ is the best prior precision with all of them, and the prior counts in proportion "
        "to the inputs so far, which is a posterior of a higher temperature. Diamonds: the least.",
        "Validation NLL against the number of training inputs, for three prior precisions.",
    )
    report.paragraph("Stopped early, in the table, is the best of the three on validation data.")
    report.heading("Setting")
    for found in results:
        report.paragraph(_describe(found))
    report.paragraph(
        f"Training is by Adam with a falling rate and a weak prior (precision {WEAK:g}). Each network "
        "has pictures and a start of its own. The prior precision of Laplace's approximation, the "
        "temperature, and when to stop are chosen by the NLL on validation data, which are neither "
        f"trained on nor tested on. With τ chosen afterwards the parameters are not the mode under that "
        f"prior. Probabilities are means over {SAMPLES} samples of the outputs."
    )
    return report


def _shorten(row: dict[str, object]) -> dict[str, object]:
    """The row for a reader: each score with its interval in one cell."""
    cells: dict[str, object] = {"data": row["data"], "method": row["method"]}
    for score in SCORES:
        half = row[f"± ({score})"]
        cells[score] = f"{row[score]:.3f}" + (f" ± {half:.3f}" if half is not None else "")
    return cells | {"τ, median": row["τ, median"]}


def _compare(found: Results) -> str:
    """What the table says about one task, in words; differences are of the same networks."""
    said = []
    for method, name in ((ella(RANK), f"ELLA of rank {RANK}"), (EXACT, "the exact one")):
        if method in found.methods:
            said.append(f"{name} less MAP: {_difference(found, method, MAP)}")
    scaled = _difference(found, ella(RANK), SCALED)
    said.append(f"ELLA of rank {RANK} less MAP with one temperature: {scaled}")
    return f"{found.task.title}, differences of NLL, network by network. {'; '.join(said)}."


def _difference(found: Results, one: str, other: str) -> str:
    """The NLL of one method less that of another, with its confidence interval over the networks."""
    each = found.scores(one, "NLL") - found.scores(other, "NLL")
    mean, low, high = interval(each.tolist())
    return f"{mean:+.3f}" + (f" (95 %: {low:+.3f} to {high:+.3f})" if len(each) > 1 else "")


def _describe(found: Results) -> str:
    task = found.task
    heat = float(np.median(found.numbers("temperature")))
    fits = (
        "the exact approximation fits"
        if task.exact
        else f"the kernel of all training outputs has {10 * task.train:,} rows, "
        f"{8 * (10 * task.train) ** 2 / 1e9:.0f} GB, and is left out"
    )
    return (
        f"{task.title}: {task.validation:,} to validate with, {task.test:,} to test on; "
        f"`{getattr(task.make, '__name__', '')}`, {task.recipe.epochs} epochs in batches of "
        f"{task.recipe.batch}; directions from {task.subsample} training inputs; {fits}. The "
        f"temperature that suits MAP is {heat:.2f} (median)."
    )
