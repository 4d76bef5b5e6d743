"""Proteins larger than any of the training data: networks with and without LayerNorm, and XGBoost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax

from lnkernel.datasets import Proteins
from lnkernel.datasets import protein as load
from lnkernel.experiments.domains import Published, Result, split
from lnkernel.experiments.folder import Folder, fingerprint, seeds_from
from lnkernel.experiments.learners import Recipe
from lnkernel.experiments.protein_report import LARGE, report_of
from lnkernel.experiments.report import Report
from lnkernel.experiments.trials import Trials
from lnkernel.experiments.variants import VARIANTS, Variant

PUBLISHED = {
    "none": Published((0.58, 0.01), (0.31, 0.02)),
    "first": Published((0.59, 0.01), (0.50, 0.02)),
    "last": Published((0.60, 0.01), (0.50, 0.01)),
    "all": Published((0.60, 0.01), (0.50, 0.02)),
    "XGBoost": Published((0.61, 0.01), (0.27, 0.04)),
}
FULL = Recipe(steps=2500, learning_rate=1e-3)
BRIEF = Recipe(steps=200, learning_rate=1e-3)


@dataclass(frozen=True)
class Plan:
    """The size of the experiment."""

    seeds: list[int]
    recipe: Recipe = FULL
    most: int | None = None  # training rows, at most; None is all of them
    rows: int = 10_000  # of them, for infinitely wide networks
    validation: int = 4_000  # others of them, to choose the noise by
    limits: Sequence[Variant] = VARIANTS  # whose infinite width is computed

    @property
    def note(self) -> str:
        """For every row of the table."""
        many = f"{len(self.seeds)} of the paper's 10 seeds" if len(self.seeds) < 10 else ""
        return many if self.most is None else f"QUICK RUN, {self.most} training rows; {many}"


def plan_of(quick: bool, seed: int, seeds: int | None) -> Plan:
    """Ten seeds on a GPU, three on a CPU, where a network takes minutes; two in a quick run."""
    if quick:
        return Plan(
            seeds_from(seed, seeds, 2),
            BRIEF,
            most=2_000,
            rows=800,
            validation=400,
            limits=[one for one in VARIANTS if one.norm in (None, "first")],
        )
    return Plan(seeds_from(seed, seeds, 10 if jax.default_backend() == "gpu" else 3))


def compute(folder: Folder, plan: Plan, proteins: Proteins) -> list[Result]:
    """All methods on all splits, from the folder's pieces where they are there."""
    large = proteins.surface >= LARGE
    splits = [split(proteins.x, proteins.y, large, seed, plan.most) for seed in plan.seeds]
    trials = Trials(folder, plan.seeds, splits, plan.note)
    networks = [trials.networks(one, plan.recipe, PUBLISHED[one.name]) for one in VARIANTS]
    limits = [trials.limit(one, plan.rows, plan.validation) for one in plan.limits]
    return [*networks, trials.trees(PUBLISHED["XGBoost"]), *limits]


def conduct(
    folder: Folder, *, quick: bool, seed: int, seeds: int | None, data: str | None = None
) -> Report:
    """The experiment, as `REGISTRY["protein"].run` calls it."""
    proteins, plan = load(data), plan_of(quick, seed, seeds)
    folder.record(
        seeds=plan.seeds,
        settings={**plan.recipe.settings, "rows at infinite width": plan.rows},
        data={"rows": len(proteins.y), "fingerprint": fingerprint(proteins.x, proteins.y)},
    )
    results = compute(folder, plan, proteins)
    return report_of(folder, proteins, results, plan)
