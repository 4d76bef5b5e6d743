"""How much of the fine-tuning experiment is run, and on what: networks, choices of parameters, tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.typing import DTypeLike

from lnkernel.datasets.pictures import Pictures
from lnkernel.experiments.finetuning_gap import Task
from lnkernel.experiments.small_networks import Transformer, tanh_mlp
from lnkernel.finite import add_lora, train
from lnkernel.tangents.tangent import Tangent, tangent

SIDE, CLASSES, WIDTH, HIDDEN, FEATURES, HEADS = 14, 5, 64, 3, 32, 4
RANK = 8  # of the LoRA factors, the paper's
KINDS = ("MLP", "transformer")
PROJECTIONS = ("query", "key", "value")


@dataclass(frozen=True)
class TuningPlan:
    """The size of the experiment."""

    seeds: list[int]
    transformers: int = 3  # of the seeds, whose transformers are fine-tuned, too
    pretraining: int = 600  # steps
    points: int = 60  # digits to fine-tune on
    tests: int = 480  # a multiple of `points`: one compiled program for both
    kernel_points: int = 32  # digits whose kernel has the condition number, as in the paper
    strengths: Sequence[float] = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)  # in units of λ_max(K)
    steps: int = 100  # of fine-tuning a choice of layers
    most: int | None = 2  # layers in a choice of the transformer's; also all but one, and all
    choices: Sequence[str] = KINDS  # the networks whose layers are chosen
    rule_steps: int = 600
    singles: bool = True  # also single layers and blocks, and all of the transformer's parameters

    def seeds_of(self, kind: str) -> list[int]:
        """The seeds of a kind of network."""
        return self.seeds if kind == "MLP" else self.seeds[: self.transformers]

    @property
    def settings(self) -> dict[str, Any]:
        """All of it but the seeds, for the record."""
        own = {
            name: getattr(self, name)
            for name in self.__dataclass_fields__
            if name not in ("seeds", "transformers")
        }
        sizes = {"side": SIDE, "width": WIDTH, "hidden": HIDDEN, "features": FEATURES, "rank": RANK}
        return own | sizes


class Part(NamedTuple):
    """Parameters that are fine-tuned together."""

    name: str
    tangent: Tangent
    layers: list[bool] | None  # which layers of a plain MLP they are; None: β is not known


def shrink(pictures: Pictures) -> np.ndarray:
    """The means of 2 × 2 pixels, as rows: (n, 196)."""
    n, side = len(pictures.x), SIDE
    blocks = pictures.x.reshape(n, side, 2, side, 2)
    return blocks.mean(axis=(2, 4)).reshape(n, -1)


def one_hot(labels: np.ndarray) -> np.ndarray:
    """1 in the column of the class, 0 elsewhere."""
    return np.eye(CLASSES)[labels]


def pretrain(kind: str, digits: Pictures, seed: int, steps: int) -> Any:
    """A network that knows the digits 0 to 4, with a new linear layer on top, drawn at random."""
    network: Any = (
        tanh_mlp(SIDE**2, WIDTH, HIDDEN, CLASSES, seed)
        if kind == "MLP"
        else Transformer(SIDE, SIDE, FEATURES, HEADS, CLASSES, seed)
    )
    old = digits.take(digits.label < CLASSES)
    train(
        network,
        shrink(old),
        one_hot(old.label),
        optax.adam(2e-3),
        steps,
        batch_size=min(100, len(old.label)),
        seed=seed,
        progress=False,
    )
    fresh = nnx.Rngs(seed + 1_000_000)
    if kind == "MLP":
        network.layers[-1] = nnx.Linear(WIDTH, CLASSES, rngs=fresh)
    else:
        network.head = nnx.Linear(FEATURES, CLASSES, rngs=fresh)
    return network


def task_of(digits: Pictures, plan: TuningPlan) -> Task:
    """The digits 5 to 9, whose classes are 0 to 4 now."""
    new = digits.take(digits.label >= CLASSES)
    x, labels = shrink(new).astype(np.float64), new.label - CLASSES
    n, m = plan.points, plan.points + plan.tests
    return Task(x[:n], one_hot(labels[:n]), x[n:m], labels[n:m])


def parts_of(kind: str, network: Any, seed: int, plan: TuningPlan) -> list[Part]:
    """All parameters, some layers, and LoRA factors, each as a tangent in float64."""

    def of(model: Any, wrt: Any) -> Tangent:
        return tangent(model, wrt=wrt, dtype=jnp.float64, batch_size=plan.points)

    adapted = lora_of(kind, network, seed)
    lora = Part("LoRA", of(adapted, nnx.LoRAParam), None)
    if kind == "MLP":
        places = [2 * layer for layer in range(HIDDEN + 1)]
        layers = [
            Part(
                f"layer {number + 1}", of(network, f"layers/{place}"), [p == place for p in places]
            )
            for number, place in enumerate(places)
        ]
        return [
            Part("all parameters", of(network, None), [True] * len(places)),
            *layers * plan.singles,
            lora,
        ]
    if not plan.singles:
        return [lora]
    blocks = [Part(f"block {i + 1}", of(network, f"blocks/{i}"), None) for i in range(2)]
    return [Part("all parameters", of(network, None), None), *blocks, lora]


def lora_of(kind: str, network: Any, seed: int) -> Any:
    """LoRA factors in every layer of the MLP; in query, key and value of the transformer."""
    where: Callable[[Any], bool] | None = None
    if kind != "MLP":
        where = lambda path: path[-1] in PROJECTIONS  # noqa: E731
    return add_lora(network, RANK, rngs=seed, where=where)


def layers_of(kind: str, network: Any, seed: int, dtype: DTypeLike) -> Tangent:
    """The layers to choose from: those of the MLP, the transformer's adapted projections."""
    if kind == "MLP":
        return tangent(network, dtype=dtype)
    return tangent(lora_of(kind, network, seed), wrt=nnx.LoRAParam, dtype=dtype)
