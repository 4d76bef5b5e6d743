"""The UTKFace experiment's figures, tables and words."""

from __future__ import annotations

from collections.abc import Sequence

from lnkernel.datasets import Faces
from lnkernel.experiments import domain_figures as figures
from lnkernel.experiments.domain_report import add_quick_notice, add_scores
from lnkernel.experiments.domains import Result
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.report import Report
from lnkernel.experiments.utkface_plan import FacesPlan


def report_of(folder: Folder, faces: Faces, results: Sequence[Result], plan: FacesPlan) -> Report:
    """Figures and tables in the folder, and the report that shows them."""
    report = Report(
        "Faces of a group that the training data do not have",
        "Networks with two hidden layers learn a person's age from features of a photograph, on "
        "people whom UTKFace calls White, Black, Asian and Indian, and are asked about its Others.",
    )
    if plan.most is not None:
        add_quick_notice(report, f"on {plan.most} training faces for {plan.epochs} epochs")
    report.heading("R², ours beside the published")
    report.paragraph(
        f"The features are of this backbone: {faces.backbone}. The paper's is a ResNet-18, so where "
        "they differ the rows compare the variants with each other, not one number with another."
    )
    add_scores(report, folder, results, plan.seeds)
    report.heading("What is predicted out of domain")
    report.figure(
        figures.histograms(folder, "predictions", results, "age / years", columns=2),
        "Predictions for the group Others, all seeds together, over the true ages (grey).",
        "A histogram for each variant.",
    )
    report.heading("Setting")
    part = results[0].splits[0]
    report.paragraph(
        f"Of {len(faces.age)} faces {len(part.outside.y)} are Others, out of domain. Of the others "
        f"each seed draws 90 % at random for training ({len(part.train.y)} faces) and is tested in "
        "domain on the rest. Features and ages are standardised by the mean and the deviation of "
        "the training faces; R² is of the age in years."
    )
    report.paragraph(
        "Networks: ReLU, width 128, standard parametrisation, He weights and biases N(0, 0.01), "
        f"LayerNorm without scale and bias; batches of 128, {plan.epochs} epochs, Adam at 1e-3, and "
        "at 3e-3 where LayerNorm is in the last or in all hidden layers, as in the paper; float32. "
        "UTKFace is for non-commercial research only."
    )
    return report
