"""A network as a pure function of its chosen parameters and of one input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lnkernel.errors import InputError

Apply = Callable[[Any, Any, Array], Array]  # (chosen, others, inputs (1, ...)) -> outputs


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["params", "rest"],
    meta_fields=["apply", "outputs"],
)
@dataclass(frozen=True)
class Function:
    """A network's output at one input, as a function of the chosen parameters."""

    apply: Apply  # hashable: it is the key of the compiled programs
    params: Any  # the parameters that the derivatives are taken in
    rest: Any  # all other variables
    outputs: int

    def __call__(self, params: Any, x: Float[Array, ...]) -> Float[Array, " outputs"]:
        """f(x) of one input, as a vector: (outputs,)."""
        return jnp.ravel(_one_real_array(self.apply(params, self.rest, x[None])))

    def on(self, params: Any, x: Float[Array, "n ..."]) -> Float[Array, "n outputs"]:
        """f of each of the inputs on its own: (n, outputs)."""
        return jax.vmap(self, (None, 0))(params, x)

    def jacobian(self, x: Float[Array, "n ..."]) -> list[Piece]:
        """The derivatives at every input, in one piece for every parameter."""
        leaves = jax.tree.leaves(jax.vmap(jax.jacrev(self), (None, 0))(self.params, x))
        return [Piece(leaf, None) for leaf in leaves]


class OutputError(InputError):
    """What a network returns is nothing that can be differentiated."""


def _one_real_array(made: Any) -> Any:
    """What the network returned, if it is something that has derivatives in the parameters."""
    kind = getattr(made, "dtype", None)
    if kind is None or not jnp.issubdtype(kind, jnp.floating):
        raise OutputError(
            "model",
            "a network whose output is one array of real floating-point numbers",
            f"a {type(made).__name__}" if kind is None else f"an array of dtype {kind}",
            "Give a function f(params, x) that returns the outputs to be differentiated",
        )
    return made


class Piece(NamedTuple):
    """A part of the Jacobian at some inputs: the outer product of the two, or `slopes` alone."""

    slopes: Float[Array, "n outputs ..."]
    features: Float[Array, "n features"] | None


def are_alike(tree: Any, other: Any) -> bool:
    """Whether two trees have the same structure."""
    structures: list[Any] = [jax.tree.structure(one) for one in (tree, other)]
    return bool(structures[0] == structures[1])


@jax.jit
def evaluate(function: Function, x: Float[Array, "n ..."]) -> Float[Array, "n outputs"]:
    """f of each of the inputs. Its trace is kept, so that a shape costs little."""
    return function.on(function.params, x)
