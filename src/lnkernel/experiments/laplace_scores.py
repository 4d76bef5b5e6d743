"""The scores of all methods of the experiment on Laplace's approximation, over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lnkernel.experiments.calibration import Reliability, accuracy, ece, nll, reliability
from lnkernel.experiments.domains import summary
from lnkernel.experiments.laplace_task import RANK, Task
from lnkernel.experiments.laplace_trial import EVIDENCE, EXACT, MAP, SCALED, STOPPED, ella

SCORES = {"NLL": nll, "ECE": ece, "accuracy": accuracy}
LABELS = {
    MAP: "MAP",
    SCALED: "MAP, temperature by validation",
    EXACT: "exact Laplace, τ by validation",
    EVIDENCE: "exact Laplace, τ by marginal likelihood",
    STOPPED: f"ELLA, rank {RANK}, stopped early",
}


@dataclass(frozen=True, eq=False)
class Results:
    """A task, and what `run_trial` found for each seed."""

    task: Task
    trials: Sequence[Mapping[str, np.ndarray]]

    @property
    def methods(self) -> list[str]:
        """The methods that were run, in the order of the table."""
        every = [MAP, SCALED, *map(ella, self.task.ranks), STOPPED, EXACT, EVIDENCE]
        return [method for method in every if f"p {method}" in self.trials[0]]

    def scores(self, method: str, score: str) -> np.ndarray:
        """The score of a method, for each seed."""
        measure = SCORES[score]
        return np.array([measure(trial[f"p {method}"], trial["label"]) for trial in self.trials])

    def numbers(self, name: str) -> np.ndarray:
        """A number that every trial has, such as `tau ella 20`."""
        return np.array([float(trial[name]) for trial in self.trials])

    def reliability(self, method: str) -> Reliability:
        """How sure and how right the predictions of all seeds together are."""
        p = np.concatenate([trial[f"p {method}"] for trial in self.trials])
        return reliability(p, np.concatenate([trial["label"] for trial in self.trials]))

    def rows(self) -> list[dict[str, Any]]:
        """The table: mean and standard error over the seeds."""
        made = []
        for method in self.methods:
            row: dict[str, Any] = {"data": self.task.title, "method": label(method)}
            for score in SCORES:
                row[score], row[f"± ({score})"] = summary(self.scores(method, score))
            known = f"tau {method}" in self.trials[0]
            row["τ, median"] = float(np.median(self.numbers(f"tau {method}"))) if known else None
            made.append(row)
        return made


def label(method: str) -> str:
    """The name of a method, for readers.

    >>> label(ella(5)), label(MAP)
    ('ELLA, rank 5', 'MAP')
    """
    return LABELS.get(method, method.replace("ella ", "ELLA, rank "))
