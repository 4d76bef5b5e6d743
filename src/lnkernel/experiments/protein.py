"""Proteins larger than any of the training data: networks with and without LayerNorm, and XGBoost."""

from __future__ import annotations

from lnkernel.datasets import Proteins
from lnkernel.datasets import protein as load
from lnkernel.experiments.domains import Published, Result, split
from lnkernel.experiments.folder import Folder, fingerprint
from lnkernel.experiments.protein_plan import (
    ProteinPlan,
    choose_methods,
    choose_norms,
    choose_plan,
    choose_rows,
)
from lnkernel.experiments.protein_report import LARGE, report_of
from lnkernel.experiments.report import Report
from lnkernel.experiments.trials import Trials
from lnkernel.experiments.variants import VARIANTS

PUBLISHED = {
    "none": Published((0.58, 0.01), (0.31, 0.02)),
    "first": Published((0.59, 0.01), (0.50, 0.02)),
    "last": Published((0.60, 0.01), (0.50, 0.01)),
    "all": Published((0.60, 0.01), (0.50, 0.02)),
    "XGBoost": Published((0.61, 0.01), (0.27, 0.04)),
}


def compute(folder: Folder, plan: ProteinPlan, proteins: Proteins) -> list[Result]:
    """All methods on all splits, from the folder's pieces where they are there."""
    large = proteins.surface >= LARGE
    splits = [split(proteins.x, proteins.y, large, seed, plan.most) for seed in plan.seeds]
    trials = Trials(folder, plan.seeds, splits, plan.note)
    results: list[Result] = []
    if "networks" in plan.methods:
        some = [one for one in VARIANTS if one.name in plan.norms]
        results += [trials.networks(one, plan.recipe, PUBLISHED[one.name]) for one in some]
    if "trees" in plan.methods:
        results.append(trials.trees(PUBLISHED["XGBoost"]))
    if "infinite" in plan.methods:
        limits = {one: trials.limit(one, plan.rows, plan.validation) for one in plan.limits}
        results += limits.values()
        if plan.all_rows:
            results += [trials.limit_of_all(one, limits[one]) for one in plan.limits_of_all]
    return results


def conduct(
    folder: Folder,
    *,
    quick: bool,
    seed: int,
    seeds: int | None,
    data: str | None = None,
    infinite_rows: str | int | None = None,
    only: str | None = None,
    norms: str | None = None,
) -> Report:
    """The experiment, as `REGISTRY["protein"].run` calls it."""
    plan = choose_rows(choose_plan(quick, seed, seeds), infinite_rows)
    plan = choose_norms(choose_methods(plan, only), norms)
    proteins = load(data)
    folder.record(
        seeds=plan.seeds,
        settings={**plan.recipe.settings, "rows at infinite width": plan.rows},
        data={"rows": len(proteins.y), "fingerprint": fingerprint(proteins.x, proteins.y)},
    )
    results = compute(folder, plan, proteins)
    return report_of(folder, proteins, results, plan)
