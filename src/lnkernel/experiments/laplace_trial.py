r"""One network: its own probabilities, and those of Laplace's approximation, exact and by ELLA.

The prior precision τ of every approximation is the one whose probabilities have the least NLL on
validation data. ELLA's directions for a small rank are the first ones for a large rank, so features
Ψ(x) = J(x) V of the largest rank serve all ranks r and all τ: with Ψ_r its first r columns and G_r the
corner of G = Σ Ψᵀ Λ Ψ, the covariance is Ψ_r (G_r + τ)⁻¹ Ψ_rᵀ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from flax import nnx
from jaxtyping import Float64

from lnkernel.datasets.pictures import Pictures
from lnkernel.experiments.calibration import best_temperature, nll, softmax
from lnkernel.experiments.classifier import train_classifier
from lnkernel.experiments.laplace_task import (
    FEW_PRIORS,
    FEW_SAMPLES,
    NARROWER,
    PRIORS,
    RANK,
    SAMPLES,
    Parts,
    Task,
)
from lnkernel.tangents.ella import NystromLaplace, covariance_of, directions, features
from lnkernel.tangents.laplace import standard_normal
from lnkernel.tangents.likelihoods import Categorical, softmax_mean
from lnkernel.tangents.tangent import Tangent, tangent

Covariances = Float64[np.ndarray, "n k k"]
NONE = np.empty((0, 0, 0))
MAP, SCALED, EXACT, EVIDENCE, STOPPED = "map", "scaled", "exact", "evidence", "stopped"


def ella(rank: int) -> str:
    """The name of ELLA of a rank among the arrays of a trial."""
    return f"ella {rank}"


class Outputs(NamedTuple):
    """The network's outputs at the pictures of one part, and its features where they are needed."""

    pictures: Pictures
    values: Float64[np.ndarray, "n k"]
    features: Float64[np.ndarray, "n k r"] = NONE

    def probabilities(
        self, covariance: Covariances, samples: int = SAMPLES
    ) -> Float64[np.ndarray, "n k"]:
        normal = standard_normal(None, samples, self.values.shape[1])
        return softmax_mean(self.values, covariance, normal)


def run_trial(task: Task, parts: Parts, seed: int) -> dict[str, Any]:
    """Probabilities of the test pictures by every method, `p METHOD`, and what was chosen.

    Further arrays: `label`; `tau METHOD`; `trace METHOD`, the mean over the test pictures of the
    trace of the covariance; `temperature`; `checks`, `losses` and `taus` of early stopping.
    """
    net = task.make(parts.train.x.shape[1:], 10, nnx.Rngs(seed))
    loss = train_classifier(net, parts.train.x, parts.train.label, task.recipe, seed)
    t = tangent(net)
    found: dict[str, Any] = {"label": parts.test.label, "loss": loss}
    values = {name: np.asarray(t.value(part.x), np.float64) for name, part in vars(parts).items()}
    heat = best_temperature(values["validation"], parts.validation.label)
    found |= {f"p {MAP}": softmax(values["test"]), "temperature": heat}
    found |= {f"p {SCALED}": softmax(values["test"], heat)}
    found |= _of_all_ranks(task, parts, t, values)
    found |= _stopped_early(task, parts, t, float(found[f"tau {ella(RANK)}"]))
    return found | (_exact(parts, t, values) if task.exact else {})


def _of_all_ranks(
    task: Task, parts: Parts, t: Tangent, values: dict[str, np.ndarray]
) -> dict[str, Any]:
    """ELLA of every rank, with a prior precision of its own."""
    x, labels = parts.train
    basis = directions(t, x, labels, 10, max(task.ranks), task.subsample, seed=0)
    train, validation, test = (
        Outputs(part, values[name], features(t, part.x, basis))
        for name, part in vars(parts).items()
    )
    curvature = Categorical().curvature(train.values, train.features)
    found: dict[str, Any] = {}
    for rank in task.ranks:

        def covariance(at: Outputs, tau: float, rank: int = rank) -> Covariances:
            precision = curvature[:rank, :rank] + tau * np.eye(rank)
            return covariance_of(at.features[..., :rank], precision)

        tau = _least(PRIORS, validation, lambda tau: covariance(validation, tau))
        found |= _scored(ella(rank), test, covariance(test, tau), tau)
    return found


def _stopped_early(task: Task, parts: Parts, t: Tangent, tau: float) -> dict[str, Any]:
    """ELLA of rank 20 that stops taking in training inputs where the validation loss is least, for
    the best prior precision without that, and for larger ones."""
    made = [
        t.laplace(
            *(parts.train.x, parts.train.label, "categorical", tau * factor, RANK, task.subsample),
            validation=(parts.validation.x, parts.validation.label),
            check_every=task.check_every,
        )
        for factor in NARROWER
    ]
    runs = [each for each in made if isinstance(each, NystromLaplace)]
    best = min(runs, key=lambda run: min(loss for _, loss in run.losses))
    return {
        f"p {STOPPED}": best.probabilities(parts.test.x, samples=SAMPLES),
        f"tau {STOPPED}": best.prior_precision,
        "used": best.used,
        "taus": [run.prior_precision for run in runs],
        "checks": [done for done, _ in best.losses],
        "losses": [[loss for _, loss in run.losses] for run in runs],
    }


def _exact(parts: Parts, t: Tangent, values: dict[str, np.ndarray]) -> dict[str, Any]:
    """The exact posterior, by the kernel of all training outputs: τ by validation, and by marginal likelihood."""
    data = parts.train.x, parts.train.label, "categorical"
    validation = Outputs(parts.validation, values["validation"])
    test = Outputs(parts.test, values["test"])
    tau = _least(
        FEW_PRIORS, validation, lambda tau: t.laplace(*data, tau).covariance(parts.validation.x)
    )
    found = _scored(EXACT, test, t.laplace(*data, tau).covariance(parts.test.x), tau)
    by_evidence = t.laplace(*data)
    covariance = by_evidence.covariance(parts.test.x)
    return found | _scored(EVIDENCE, test, covariance, by_evidence.prior_precision)


def _least(
    priors: Iterable[float], validation: Outputs, covariance: Callable[[float], Covariances]
) -> float:
    """The τ with the least NLL on the validation data."""

    def loss(tau: float) -> float:
        chances = validation.probabilities(covariance(tau), FEW_SAMPLES)
        return nll(chances, validation.pictures.label)

    return min(priors, key=loss)


def _scored(name: str, test: Outputs, covariance: Covariances, tau: float) -> dict[str, Any]:
    trace = float(np.trace(covariance, axis1=1, axis2=2).mean())
    return {
        f"p {name}": test.probabilities(covariance),
        f"tau {name}": tau,
        f"trace {name}": trace,
    }
