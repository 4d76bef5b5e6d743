"""A function f(params, x) of a tree of parameters; a module of Flax Linen is one of its variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flax
import jax
import jax.numpy as jnp
from flax import linen
from jax import Array
from jax.typing import DTypeLike

from lnkernel.errors import InputError, TrainingModeError
from lnkernel.tangents.function import Function
from lnkernel.tangents.model import Model, Tree, cast, refuse_infinite, refuse_integers
from lnkernel.tangents.selection import Choice, Path, Wrt, choose, refuse_nothing


@dataclass(frozen=True)
class TreeApply:
    """f(params, x), whose parameters come as two trees: the chosen ones, and all others."""

    f: Callable[[Tree, Array], Any]

    def __call__(self, params: Tree, rest: Tree, x: Array) -> Any:  # whatever users return
        return self.f(join(params, rest), x)


@dataclass(frozen=True)
class LinenCall:
    """A module of Linen as a function of its variables."""

    module: linen.Module

    def __call__(self, variables: Tree, x: Array) -> Array:
        try:
            out: Any = self.module.apply(variables, x)
        except (flax.errors.ModifyScopeVariableError, flax.errors.InvalidRngError) as problem:
            said = str(problem).split("(http")[0].strip(" .")
            raise TrainingModeError(
                type(self.module).__name__,
                said,
                "Make the module with use_running_average=True and deterministic=True, or give "
                "f(params, x) that calls it so (Linen has no model.eval())",
            ) from problem
        return out


def read_linen(
    model: linen.Module, variables: Any, wrt: Wrt, dtype: DTypeLike | None, name: str
) -> Model:
    """A module of Linen with the variables that `model.init` made; paths begin below "params"."""
    if not hasattr(variables, "keys") or "params" not in variables.keys():  # noqa: SIM118
        raise InputError(
            "params",
            'the variables of the Linen module, a dict with "params"',
            type(variables).__name__,
            "Write lnk.tangent(model, model.init(key, x))",
        )
    wanted = choose(True if wrt is None else wrt)

    def within(path: Path, leaf: Any) -> bool:
        return path[0] == "params" and wanted(path[1:], leaf)

    return _read(LinenCall(model), variables, within, wrt, dtype, name, above=1)


def read_function(
    f: Callable[..., Any], params: Any, wrt: Wrt, dtype: DTypeLike | None, name: str
) -> Model:
    """f(params, x) with these parameters."""
    made = _read(f, params, choose(True if wrt is None else wrt), wrt, dtype, name)
    whole = join(made.function.params, made.function.rest)
    return made._replace(joint=lambda x: f(whole, x))


def _read(
    f: Callable[[Tree, Array], Array],
    params: Any,
    wanted: Choice,
    wrt: Wrt,
    dtype: DTypeLike | None,
    name: str,
    above: int = 0,
) -> Model:
    """`above`: how many keys at the beginning of a path are not shown."""
    flat, made = jax.tree.flatten_with_path(cast(params, dtype))
    tree: Any = made
    paths = [tuple(_key(entry) for entry in path) for path, _ in flat]
    leaves = [jnp.asarray(leaf) for _, leaf in flat]
    is_chosen = [
        wanted(path, leaf) and (wrt is not None or jnp.issubdtype(leaf.dtype, jnp.floating))
        for path, leaf in zip(paths, leaves, strict=True)
    ]
    chosen = [one if here else None for one, here in zip(leaves, is_chosen, strict=True)]
    others = [None if here else one for one, here in zip(leaves, is_chosen, strict=True)]
    found = [path[above:] for path, here in zip(paths, is_chosen, strict=True) if here]
    refuse_nothing(found, (path[above:] for path in paths), name, wrt)
    refuse_integers(found, [one for one in chosen if one is not None])
    refuse_infinite(found, [one for one in chosen if one is not None], name)
    rest = tree.unflatten(others)
    function = Function(TreeApply(f), tree.unflatten(chosen), rest, 0)

    def only_chosen(whole: Tree) -> Tree:
        if jax.tree.structure(whole) != tree:
            return whole  # whoever takes it says what is wrong with it
        pairs = zip(tree.flatten_up_to(whole), is_chosen, strict=True)
        return tree.unflatten([one if here else None for one, here in pairs])

    return Model(function, found, lambda some: join(some, rest), only_chosen)


def join(params: Tree, rest: Tree) -> Tree:
    """One tree of two, each of which has None where the other has a leaf."""
    return jax.tree.map(
        lambda a, b: b if a is None else a, params, rest, is_leaf=lambda leaf: leaf is None
    )


def _key(entry: Any) -> str | int:
    """The plain key of one step of a path: of a dict, a list, or an attribute."""
    for name in ("key", "idx", "name"):
        if hasattr(entry, name):
            found = getattr(entry, name)
            return found if isinstance(found, str | int) else str(found)
    return str(entry)
