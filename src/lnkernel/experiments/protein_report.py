"""The protein experiment's figures, tables and words."""

from __future__ import annotations

from collections.abc import Sequence

from lnkernel.datasets import Proteins
from lnkernel.experiments import domain_figures as figures
from lnkernel.experiments.domain_report import add_quick_notice, add_scores
from lnkernel.experiments.domains import Result, count_repeated
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.protein_plan import ProteinPlan
from lnkernel.experiments.report import Report

RMSD = "RMSD / Å"
LARGE = 20_000.0  # the surface area F1 below which the domain lies


def report_of(
    folder: Folder, proteins: Proteins, results: Sequence[Result], plan: ProteinPlan
) -> Report:
    """Figures and tables in the folder, and the report that shows them."""
    report = Report(
        "Proteins larger than any in the training data",
        "How far is a predicted structure of a protein from the true one? Networks with two hidden "
        "layers learn it on proteins with a surface area below 20,000 and are asked about larger ones. "
        "Beside them: XGBoost, and the infinitely wide networks themselves.",
    )
    if plan.most is not None:
        add_quick_notice(report, f"on {plan.most} training rows with {plan.recipe.steps} steps")
    report.heading("R², ours beside the published")
    add_scores(report, folder, results, plan.seeds)
    report.heading("What is predicted out of domain")
    report.figure(
        figures.histograms(folder, "predictions", results, RMSD),
        "Predictions for the larger proteins, all seeds together, over the true values (grey).",
        "A histogram for each method.",
    )
    report.figure(
        figures.errors_along(
            folder,
            "errors",
            results,
            proteins.surface,
            LARGE,
            ("total surface area F1 / Å²", "root mean square error / Å"),
        ),
        "The error against the surface area, in bins of equally many proteins.",
        "A line for each method; the training data end at 20,000.",
    )
    report.heading("Setting")
    _setting(report, proteins, results, plan)
    return report


def _setting(
    report: Report, proteins: Proteins, results: Sequence[Result], plan: ProteinPlan
) -> None:
    part = results[0].splits[0]
    few = "" if plan.most is None else " of them in a quick run"
    twice, of = count_repeated(part), len(part.inside.y)
    report.paragraph(
        f"Of {len(proteins.y)} proteins {len(part.outside.y)} have F1 ≥ 20,000 and are out of "
        f"domain. Of the others each seed draws 90 % at random for training "
        f"({len(part.train.y)} rows{few}) and is tested in domain on the rest. Inputs and targets are "
        "standardised by the mean and the deviation of the training rows; R² is of the RMSD itself. "
        f"The data have equal rows: {twice} of the {of} in-domain test rows of the first seed are "
        "also among its training rows, for every method alike."
    )
    recipe = plan.recipe
    report.paragraph(
        f"Networks: ReLU, width {recipe.width}, standard parametrisation, He weights and biases "
        f"N(0, 0.01), LayerNorm without scale and bias; full batch, Adam at {recipe.learning_rate:g}, "
        f"{recipe.steps} steps, float32. XGBoost: its defaults, 100 rounds."
    )
    report.paragraph(
        f"Infinitely wide networks: the posterior mean of the tangent kernel on {plan.rows} of the "
        "training rows, equal ones merged, in closed form and float64. The noise on the diagonal is "
        f"chosen, in steps of √10, by R² on {plan.validation} other training rows; no row of the "
        "tests has a say in it. The paper does not have these."
    )
    if plan.all_rows:
        report.paragraph(
            "Those of all rows are trained on all training rows, equal ones included, with the noise that was chosen "
            "for the fewer ones; it is the exact posterior, by half of the Gram matrix where the whole has no room. "
            "LayerNorm in all hidden layers is not among them: at infinite width it gives the kernel of LayerNorm in "
            "the first layer, but for a factor of 1.01 and a constant of 0.0001."
        )
