"""A module of Flax NNX as a function of its chosen variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jax.typing import DTypeLike

from lnkernel.errors import InputError, TrainingModeError
from lnkernel.tangents.function import Function
from lnkernel.tangents.model import Model, Tree, cast, refuse_infinite, refuse_integers
from lnkernel.tangents.selection import Path, Wrt, choose, refuse_nothing, spell
from lnkernel.tangents.structured import is_structured


@dataclass(frozen=True)
class NNXApply:
    """A module, taken apart. Its chosen and its other variables are `nnx.State`s of arrays."""

    graph: Any

    def merge(self, params: Tree, rest: Tree) -> nnx.Module:
        """The network with these variables, a new one in every call."""
        made: nnx.Module = nnx.merge(self.graph, params, rest, copy=True)
        return made

    def __call__(self, params: Tree, rest: Tree, x: Array) -> Array:
        network = self.merge(params, rest)
        before = _what_training_changes(network)
        out: Array = network(x)
        after = _what_training_changes(network)
        changed = [path for path, value in after.items() if before.get(path) is not value]
        if changed:
            what = f"a call changes {spell(changed[0])}"
            raise TrainingModeError(type(network).__name__, what, "Call model.eval() first")
        return out


def _what_training_changes(network: nnx.Module) -> dict[Path, Any]:
    """Statistics of batches and counters of random numbers, as the objects that they are now.

    A call that replaces one of them is a call in training mode: whether the modules are Flax's or
    the user's own, and whether their numbers are known or being traced.
    """
    found = nnx.to_flat_state(nnx.state(network, nnx.Any(nnx.BatchStat, nnx.RngState)))
    return {path: variable.get_raw_value() for path, variable in found}


def read_nnx(model: nnx.Module, params: Any, wrt: Wrt, dtype: DTypeLike | None, name: str) -> Model:
    """A module with its own variables, or with those that `params`, a state of it, has."""
    if params is not None:
        _check_state(model, params)
    graph, *states = nnx.split(model, _as_filter(wrt), ...)
    chosen, rest = (cast(_replace(nnx.as_pure(state), params), dtype) for state in states)
    flat = nnx.to_flat_state(chosen)
    paths = [path for path, _ in flat]
    known = [path for path, _ in nnx.to_flat_state(nnx.state(model, nnx.Param))]
    refuse_nothing(paths, known, name, wrt)
    refuse_integers(paths, [leaf for _, leaf in flat])
    refuse_infinite(paths, [leaf for _, leaf in flat], name)
    function = Function(NNXApply(graph), chosen, rest, 0)

    def only_chosen(state: Tree) -> Tree:
        if not isinstance(state, nnx.State):
            return state  # whoever takes it says what is wrong with it
        known = dict(nnx.to_flat_state(nnx.as_pure(state)))
        return nnx.from_flat_state({path: known[path] for path in paths if path in known})

    return Model(function, paths, lambda tree: tree, only_chosen, is_structured(model))


def _as_filter(wrt: Wrt) -> Any:
    """A predicate on paths, or a list of them, chooses among the `nnx.Param`s."""
    if wrt is None:
        return nnx.Param
    chosen: Any = choose(wrt)
    return chosen if _is_of_flax(wrt) else nnx.All(nnx.Param, chosen)


def _is_of_flax(wrt: Wrt) -> bool:
    """Whether it is a filter of Flax's, which chooses the type of the variables as well."""
    if isinstance(wrt, list | tuple):
        return any(map(_is_of_flax, wrt))
    kind = type(wrt).__module__.startswith("flax.")
    return kind or isinstance(wrt, type | bool) or wrt is ...


def _check_state(model: nnx.Module, params: Any) -> None:
    """Whether `params` is a state of this module, or of a part of it."""
    expected, remedy = "a state of the module", "Write e.g. nnx.state(model, nnx.Param)"
    if not isinstance(params, nnx.State):
        raise InputError("params", expected, f"a {type(params).__name__}", remedy)
    shapes = [
        {path: np.shape(leaf) for path, leaf in nnx.to_flat_state(nnx.as_pure(state))}
        for state in (nnx.state(model), params)
    ]
    for path, shape in shapes[1].items():
        known = shapes[0].get(path)
        if shape != known:
            there = "which it has not" if known is None else f"where it has shape {known}"
            got = f"{spell(path)} of shape {shape}, {there}"
            raise InputError("params", expected, got, remedy)


def _replace(state: Tree, params: Any) -> Tree:
    """The state with the values that `params` has for some of its paths."""
    if params is None:
        return state
    given = dict(nnx.to_flat_state(nnx.as_pure(params)))
    known = nnx.to_flat_state(state)
    return nnx.from_flat_state({p: jnp.asarray(given.get(p, leaf)) for p, leaf in known})
