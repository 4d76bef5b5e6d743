"""What the regression experiments train: networks, boosted trees, infinitely wide networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optax

from lnkernel.arch import mlp
from lnkernel.errors import MissingPackageError
from lnkernel.experiments.domains import Split, r_squared
from lnkernel.experiments.variants import INITIALISATION
from lnkernel.finite import train_ensemble
from lnkernel.gp.duplicates import merge_duplicates
from lnkernel.gp.posterior import Posterior, posterior

Predictions = dict[str, np.ndarray]
CHECKPOINT_EVERY = 100  # steps: a minute or less of the slowest training
START = 0.1  # the first noise that is tried
FACTOR = 10**0.5  # between two noises that are tried
ROUNDS = 100  # of boosting


@dataclass(frozen=True)
class Recipe:
    """How networks are trained."""

    steps: int
    learning_rate: float
    batch_size: int | None = None
    width: int = 128

    @property
    def settings(self) -> dict[str, Any]:
        """All of it, for the record."""
        return {
            "network": f"2 hidden layers of {self.width}, ReLU",
            "parameterization": "standard",
            **INITIALISATION,
            "optimizer": f"adam({self.learning_rate:g})",
            "steps": self.steps,
            "batch": self.batch_size or "all points",
        }


def networks(
    splits: Sequence[Split],
    norm: str | None,
    recipe: Recipe,
    seeds: Sequence[int],
    scratch: Path,
    progress: bool,
) -> Predictions:
    """What trained networks predict, each trained on its own split, all in one program."""
    ensemble = train_ensemble(
        mlp(hidden=2, width=recipe.width, norm=norm),
        [split.train.x for split in splits],
        [split.targets for split in splits],
        seeds=list(seeds),
        optimizer=optax.adam(recipe.learning_rate),
        steps=recipe.steps,
        batch_size=recipe.batch_size,
        parameterization="standard",
        checkpoint=scratch,
        checkpoint_every=CHECKPOINT_EVERY if recipe.batch_size is None else recipe.steps,
        progress=None if progress else False,
    )
    outputs = ensemble([_tests(split) for split in splits])[..., 0]
    each = [_in_units(split, out) for split, out in zip(splits, outputs, strict=True)]
    return {name: np.stack([one[name] for one in each]) for name in each[0]}


def boosted_trees(split: Split) -> Predictions:
    """What XGBoost predicts, with its default settings and 100 rounds."""
    try:
        import xgboost
    except ImportError as problem:
        raise MissingPackageError("this experiment", "xgboost", "experiments") from problem
    data = xgboost.DMatrix(split.train.x, split.targets)
    # one thread: its many waiting for each other are slow where a machine has other work to do
    trees = xgboost.train({"nthread": 1}, data, num_boost_round=ROUNDS)
    return _predictions(split, lambda x: trees.predict(xgboost.DMatrix(x)))


def infinite_network(split: Split, norm: str | None, rows: int, validation: int) -> Predictions:
    r"""What infinitely wide networks predict: $\Theta(x, X)\,(\Theta(X, X) + \mathrm{noise}\cdot I)^{-1} y$.

    On so many training rows (equal ones merged), with the noise that predicts `validation` other
    training rows best. The rows of the tests have no say in it.
    """
    x, y, arch = split.train.x, split.targets, mlp(hidden=2, norm=norm)
    fitted = merge_duplicates(x[:rows], y[:rows])
    others = slice(rows, rows + validation)

    def fit(noise: float) -> tuple[float, Posterior]:
        made = posterior(arch, *fitted, noise=noise)
        return r_squared(y[others], np.asarray(made.mean(x[others]))), made

    noise, score, best = climb(fit, START)
    found = {"noise": noise, "validation": score, "rows": len(fitted[0])}
    return _predictions(split, best.mean) | {name: np.array(value) for name, value in found.items()}


def infinite_network_of_all(split: Split, norm: str | None, noise: float) -> Predictions:
    """The same from all training rows, with a noise that fewer of them have chosen; it keeps equal rows apart."""
    x, y = split.train.x, split.targets
    best = posterior(mlp(hidden=2, norm=norm), x, y, noise=noise)
    found = {"noise": np.array(noise), "rows": np.array(len(x))}
    return _predictions(split, best.mean) | found


def climb(fit: Callable[[float], tuple[float, Any]], start: float) -> tuple[float, float, Any]:
    """The noise of the best score, found by steps of √10 as long as it gets better; score, fit.

    >>> noise, score, _ = climb(lambda noise: (-abs(noise - 3), None), start=0.3)
    >>> round(noise, 9)
    3.0
    """
    noise, (score, best) = start, fit(start)
    for factor in (FACTOR, 1 / FACTOR):
        moved = False
        while (other := fit(noise * factor))[0] > score:
            noise, (score, best), moved = noise * factor, other, True
        if moved:
            break
    return noise, score, best


def _predictions(split: Split, outputs: Callable[[np.ndarray], Any]) -> Predictions:
    return _in_units(split, outputs(_tests(split)))


def _tests(split: Split) -> np.ndarray:
    """The inputs of both tests, for one call: every number of points is compiled anew."""
    return np.concatenate([split.inside.x, split.outside.x])


def _in_units(split: Split, outputs: Any) -> Predictions:
    inside, outside = np.split(split.in_units(outputs), [len(split.inside.x)])
    return {"inside": inside, "outside": outside}
