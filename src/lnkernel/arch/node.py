"""What every part of an architecture is: frozen data, equal by value, a JAX pytree."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, dataclass_transform

import jax

T = TypeVar("T")


class Node:
    """A part of an architecture: a layer, or a composition of layers.

    It says what the network is and nothing else. Kernels, certificates and
    finite networks are interpretations that stand outside it.
    """


def static(**kwargs: Any) -> Any:
    """A field that is part of the structure, not a hyperparameter to differentiate."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


@dataclass_transform(frozen_default=True, field_specifiers=(static, dataclasses.field))
def node(cls: type[T]) -> type[T]:
    """Make `cls` a frozen dataclass and a pytree whose leaves are its hyperparameters."""
    made: Any = dataclasses.dataclass(frozen=True)(cls)
    leaves = [f.name for f in dataclasses.fields(made) if not f.metadata.get("static", False)]
    fixed = [f.name for f in dataclasses.fields(made) if f.metadata.get("static", False)]

    def flatten(self: Any) -> tuple[list[tuple[Any, Any]], Any]:
        children = [(jax.tree_util.GetAttrKey(name), getattr(self, name)) for name in leaves]
        # the class belongs to the structure: JAX holds equal data of two classes for equal
        return children, (made, tuple(getattr(self, name) for name in fixed))

    def unflatten(structure: Any, children: Any) -> Any:
        self = object.__new__(made)  # unchecked: a tree of gradients has the same structure
        values = (*zip(leaves, children, strict=True), *zip(fixed, structure[1], strict=True))
        for name, value in values:
            object.__setattr__(self, name, value)
        return self

    jax.tree_util.register_pytree_with_keys(made, flatten, unflatten)
    return made


def fields_of(part: Node) -> dict[str, Any]:
    """The fields of a node by name, in order."""
    fields = dataclasses.fields(part)  # type: ignore[arg-type]  # every node is a dataclass
    return {field.name: getattr(part, field.name) for field in fields}
