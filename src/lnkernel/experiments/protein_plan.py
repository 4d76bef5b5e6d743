"""How much of the protein experiment is run: seeds, training rows, recipes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax

from lnkernel.errors import InputError
from lnkernel.experiments.folder import seeds_from
from lnkernel.experiments.learners import Recipe
from lnkernel.experiments.variants import VARIANTS, Variant

FULL = Recipe(steps=2500, learning_rate=1e-3)
BRIEF = Recipe(steps=200, learning_rate=1e-3)
METHODS = ("networks", "trees", "infinite")
PLACES = tuple(one.name for one in VARIANTS)


@dataclass(frozen=True)
class ProteinPlan:
    """The size of the experiment."""

    seeds: list[int]
    recipe: Recipe = FULL
    most: int | None = None  # training rows, at most; None is all of them
    rows: int = 10_000  # of them, for infinitely wide networks
    validation: int = 4_000  # others of them, to choose the noise by
    limits: Sequence[Variant] = VARIANTS  # whose infinite width is computed
    all_rows: bool = False  # whether infinitely wide networks are also trained on all rows
    methods: Sequence[str] = METHODS
    norms: Sequence[str] = PLACES  # of the variants that take part

    @property
    def limits_of_all(self) -> list[Variant]:
        """Whose infinite width is trained on all rows. Behind a LayerNorm in the first layer every length is the same,
        and another one changes Θ to (Θ - b²)/q + b² with q = 1.01 and b² = 0.01: a fit of minutes would repeat it."""
        repeats = "all" if any(one.name == "first" for one in self.limits) else None
        return [one for one in self.limits if one.name != repeats]

    @property
    def note(self) -> str:
        """The note for every row of the table."""
        many = f"{len(self.seeds)} of the paper's 10 seeds" if len(self.seeds) < 10 else ""
        return many if self.most is None else f"QUICK RUN, {self.most} training rows; {many}"


def choose_plan(quick: bool, seed: int, seeds: int | None) -> ProteinPlan:
    """Ten seeds on a GPU, three on a CPU, where a network takes minutes; two in a quick run."""
    if quick:
        return ProteinPlan(
            seeds_from(seed, seeds, 2),
            BRIEF,
            most=2_000,
            rows=800,
            validation=400,
            limits=[one for one in VARIANTS if one.norm in (None, "first")],
        )
    return ProteinPlan(seeds_from(seed, seeds, 10 if jax.default_backend() == "gpu" else 3))


def choose_rows(plan: ProteinPlan, infinite_rows: str | int | None) -> ProteinPlan:
    """The plan with so many rows for infinitely wide networks; "all" adds networks trained on all of them.

    >>> choose_rows(choose_plan(False, 0, 1), "5000").rows, choose_rows(choose_plan(False, 0, 1), "all").all_rows
    (5000, True)
    """
    if infinite_rows is None:
        return plan
    if infinite_rows == "all":
        return replace(plan, all_rows=True)
    text = str(infinite_rows)
    if not text.isdecimal() or int(text) < 1:
        expected = 'a number of training rows, or "all"'
        raise InputError("infinite_rows", expected, repr(infinite_rows), "Leave it out for 10,000")
    return replace(plan, rows=int(text))


def choose_methods(plan: ProteinPlan, only: str | None) -> ProteinPlan:
    """The plan with these methods alone, for example "infinite" or "networks,trees".

    >>> choose_methods(choose_plan(False, 0, 1), "infinite").methods
    ['infinite']
    """
    return plan if only is None else replace(plan, methods=_some_of(METHODS, "only", only))


def choose_norms(plan: ProteinPlan, norms: str | None) -> ProteinPlan:
    """The plan with LayerNorm in these places alone, for example "first" or "none,first".

    >>> [one.name for one in choose_norms(choose_plan(False, 0, 1), "none,first").limits]
    ['none', 'first']
    """
    if norms is None:
        return plan
    names = _some_of(PLACES, "norms", norms)
    return replace(plan, norms=names, limits=[one for one in plan.limits if one.name in names])


def _some_of(all_of_them: Sequence[str], argument: str, given: str) -> list[str]:
    names = [name.strip() for name in given.split(",")]
    if not set(names) <= set(all_of_them):
        expected = f"one or more of {', '.join(all_of_them)}, with commas between them"
        raise InputError(argument, expected, repr(given), "Leave it out for all of them")
    return names
