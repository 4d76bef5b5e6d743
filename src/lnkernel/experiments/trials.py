"""Methods of regression on the splits of all seeds, in resumable pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lnkernel.experiments import learners
from lnkernel.experiments.domains import Published, Result, Split
from lnkernel.experiments.folder import Folder, fingerprint
from lnkernel.experiments.learners import Predictions, Recipe
from lnkernel.experiments.variants import Variant

GREY = "#666666"


@dataclass(frozen=True, eq=False)
class Trials:
    """What all methods have in common: where, which seeds, on what, and a note for the table."""

    folder: Folder
    seeds: list[int]
    splits: list[Split]
    note: str

    def networks(self, variant: Variant, recipe: Recipe, published: Published) -> Result:
        """Trained networks, those of all seeds in one program and one piece."""

        def make(scratch: Path) -> Predictions:
            progress = self.folder.progress
            return learners.networks(
                self.splits, variant.norm, recipe, self.seeds, scratch, progress
            )

        settings = {**recipe.settings, "norm": variant.norm, "seeds": self.seeds}
        data = [_fingerprint(part) for part in self.splits]
        name = f"networks-{variant.name}"
        piece = self.folder.piece(name, {**settings, "data": data}, make)
        made = [{name: values[i] for name, values in piece.items()} for i in range(len(self.seeds))]
        note = f"Adam at {recipe.learning_rate:g}, {recipe.steps} steps"
        return self._result(variant.label, variant.colour, made, published, note)

    def trees(self, published: Published) -> Result:
        """XGBoost."""

        def make(part: Split, seed: int, scratch: Path) -> Predictions:
            return learners.boosted_trees(part)

        made = self._each("xgboost", {"rounds": learners.ROUNDS}, make)
        return self._result("XGBoost", GREY, made, published, f"{learners.ROUNDS} rounds")

    def limit(self, variant: Variant, rows: int, validation: int) -> Result:
        """Infinitely wide networks."""

        def make(part: Split, seed: int, scratch: Path) -> Predictions:
            return learners.infinite_network(part, variant.norm, rows, validation)

        noise = {"start": learners.START, "factor": learners.FACTOR, "validation": validation}
        settings = {"norm": variant.norm, "rows": rows, "noise": noise}
        made = self._each(f"infinite-{variant.name}", settings, make)
        noises = sorted({f"{float(one['noise']):.2g}" for one in made})
        note = f"{rows} training rows, noise {' or '.join(noises)}"
        label = f"infinite width, {variant.label}"
        return self._result(label, variant.colour, made, None, note)

    def limit_of_all(self, variant: Variant, fewer: Result) -> Result:
        """Infinitely wide networks trained on all rows, with the noise that was chosen for fewer of them."""
        noises = dict(
            zip(self.seeds, (float(one["noise"]) for one in fewer.predictions), strict=True)
        )

        def make(part: Split, seed: int, scratch: Path) -> Predictions:
            return learners.infinite_network_of_all(part, variant.norm, noises[seed])

        settings = {"norm": variant.norm, "rows": "all"}
        made = self._each(f"infinite-all-{variant.name}", settings, make, noises)
        rows = sorted({int(one["rows"]) for one in made})
        note = f"all {' or '.join(map(str, rows))} training rows, the same noise"
        label = f"infinite width, {variant.label}, all rows"
        return self._result(label, variant.colour, made, None, note)

    def _each(
        self,
        name: str,
        settings: Mapping[str, Any],
        make: Callable[[Split, int, Path], Predictions],
        noises: Mapping[int, float] | None = None,
    ) -> list[dict[str, Any]]:
        def piece(seed: int, part: Split) -> dict[str, Any]:
            known = {**settings, "seed": seed, "data": _fingerprint(part)}
            if noises is not None:  # of this seed alone: more seeds find what fewer have stored
                known["noise"] = noises[seed]
            return self.folder.piece(f"{name}-{seed}", known, lambda at: make(part, seed, at))

        pairs = list(zip(self.seeds, self.splits, strict=True))
        return [piece(seed, part) for seed, part in self.folder.each(pairs, name)]

    def _result(
        self, method: str, colour: str, made: Any, published: Published | None, note: str
    ) -> Result:
        notes = "; ".join(part for part in (self.note, note) if part)
        return Result(method, colour, self.splits, made, published, notes)


def _fingerprint(part: Split) -> str:
    return fingerprint(part.train.x, part.train.y, part.inside.x, part.outside.x)
