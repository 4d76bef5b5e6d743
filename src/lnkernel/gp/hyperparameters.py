"""The hyperparameters of a network by name: what `fit` searches over.

A leaf of an architecture has a path, `layers[0].W_std`, and a name, `W_std`. Everything is searched over by the
logarithm of its size: a number keeps its sign, and a zero, which is a fact about the structure (no bias), is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from lnkernel.arch import Node
from lnkernel.check.arrays import Data
from lnkernel.errors import InputError
from lnkernel.gp.noise import Variance

NOISE = "noise"
FIRST_NOISE = 0.01  # of the mean square of the targets, where no noise is given to start from


class Place(NamedTuple):
    """A hyperparameter of a network: where it is, what it is called, its value."""

    path: str
    name: str
    value: float


class Parameter(NamedTuple):
    """A number to search for: one leaf, or several that are equal. No leaf: the noise."""

    name: str
    leaves: tuple[int, ...]
    start: float


def places_of(arch: Node) -> list[Place]:
    """All hyperparameters, in the order of the leaves.

    >>> import lnkernel as lnk
    >>> [place.path for place in places_of(lnk.serial(lnk.Dense(8), lnk.LeakyRelu(0.1), lnk.Dense(1)))]
    ['layers[0].W_std', 'layers[0].b_std', 'layers[1].slope', 'layers[2].W_std', 'layers[2].b_std']
    """
    found, _ = jax.tree_util.tree_flatten_with_path(arch)
    return [Place(_text(path), _name(path), float(value)) for path, value in found]


def _text(path: Any) -> str:
    return jax.tree_util.keystr(path).removeprefix(".")


def _name(path: Any) -> str:
    named = (key.name for key in reversed(path) if isinstance(key, jax.tree_util.GetAttrKey))
    return str(next(named))


def parameters_of(arch: Node, over: Any, noise: Variance, data: Data) -> list[Parameter]:
    """What is to be searched for, checked."""
    asked = (over,) if isinstance(over, str) else over
    if not isinstance(asked, Sequence) or not asked or not all(isinstance(o, str) for o in asked):
        raise InputError(
            "over", "names of hyperparameters", repr(over), 'Write e.g. over=("W_std", "noise")'
        )
    places = places_of(arch)
    made: list[Parameter] = []
    for name in asked:
        made += [_noise(noise, data)] if name == NOISE else _in_network(name, places)
    _refuse_twice([leaf for one in made for leaf in one.leaves or (-1,)], places)
    return made


def _noise(noise: Variance, data: Data) -> Parameter:
    if isinstance(noise, np.ndarray):
        raise InputError(
            "noise",
            'one variance to start from, because over has "noise"',
            "one for each point",
            'Give one number, or leave "noise" out of over',
        )
    start = (
        noise
        or FIRST_NOISE * float(np.mean(np.square(data.y / _largest(data)))) * _largest(data) ** 2
    )
    return Parameter(NOISE, (), start)


def _largest(data: Data) -> float:
    largest = float(np.abs(data.y).max())
    if largest == 0:
        raise InputError(
            "y", "targets of which one is not 0", "zeros", "Any hyperparameters fit them"
        )
    if not 1e-150 < largest < 1e150:
        raise InputError(
            "y",
            "targets whose squares float64 holds, because the noise is a part of them",
            f"targets up to {largest:.3g}",
            "Divide the targets by their largest absolute value, and multiply what is predicted by it",
        )
    return largest


def _in_network(name: str, places: list[Place]) -> list[Parameter]:
    """One parameter for a name or a path; one for each place of a pattern like layers[*].W_std."""
    pattern = re.escape(name).replace(re.escape("[*]"), r"\[\d+\]")
    if "[*]" in name:
        groups = [[i] for i, place in enumerate(places) if re.fullmatch(pattern, place.path)]
    else:
        groups = [[i for i, place in enumerate(places) if name in (place.name, place.path)]]
    if not groups or not groups[0]:
        names = sorted({place.name for place in places} | {NOISE})
        raise InputError(
            "over",
            f"names of hyperparameters, which are {', '.join(names)}",
            repr(name),
            f"Or name one place of the network: {', '.join(place.path for place in places)}",
        )
    return [_shared(name if len(groups) == 1 else places[g[0]].path, g, places) for g in groups]


def _shared(name: str, group: list[int], places: list[Place]) -> Parameter:
    values = {places[i].value for i in group}
    shown = ", ".join(f"{places[i].path}={places[i].value:.6g}" for i in group)
    if len(values) > 1:
        raise InputError(
            "over",
            f"one value to start from, because {name!r} is one number wherever it occurs",
            shown,
            f"Search for each by itself, over=({places[group[0]].path!r}, ...), or start from equal ones",
        )
    if 0.0 in values:
        raise InputError(
            "over",
            f"a value of {name!r} to start from that is not 0, which is a fact about the structure",
            shown,
            f"Start from another, e.g. {places[group[0]].name}=0.1",
        )
    return Parameter(name, tuple(group), values.pop())


def _refuse_twice(leaves: list[int], places: list[Place]) -> None:
    for leaf in leaves:
        if leaves.count(leaf) > 1:
            twice = NOISE if leaf < 0 else places[leaf].path
            raise InputError("over", "every hyperparameter once", f"{twice} twice", "Leave one out")


def with_values(
    arch: Node, noise: Variance, parameters: Sequence[Parameter], values: np.ndarray
) -> tuple[Node, Variance]:
    """The network and the noise with these values of the parameters."""
    leaves, tree = jax.tree.flatten(arch)
    for one, value in zip(parameters, values, strict=True):
        for leaf in one.leaves:
            leaves[leaf] = float(value)
        noise = noise if one.leaves else float(value)
    return jax.tree.unflatten(tree, leaves), noise
