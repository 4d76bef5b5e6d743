"""A network at one moment of its training, seen through its tangent inside of a compiled program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lnkernel.errors import InputError
from lnkernel.tangents.function import Function
from lnkernel.tangents.gram import Way, multiply
from lnkernel.tangents.leading import Leading, leading_pairs
from lnkernel.tangents.local import LocalForm, local_forms
from lnkernel.tangents.model import Tree

T = TypeVar("T")
USUAL = 10  # pairs that are found together, so that measures share them


@dataclass(frozen=True, eq=False)
class Snapshot:
    r"""What a measure of `watch` gets as its `tangent`: the network's values, $K = J J^T$ and its largest
    eigenvalues, as pure functions that may be traced.

    It has the names of `Tangent`, whose methods work in tiles and outside of programs. What several
    measures ask of the same inputs is computed once.

    Attributes:
        function: the network as a pure function, with its parameters.
        structured: whether its Jacobian can be kept in factors.
        start: the network before the first step.
    """

    function: Function
    structured: bool
    start: Snapshot | None = None
    _kept: dict[tuple[str, int], tuple[Any, Any]] = field(default_factory=dict, repr=False)

    @property
    def params(self) -> Tree:
        """The trained parameters, as they are now."""
        return self.function.params

    def before(self) -> Snapshot:
        """The network before the first step; that is itself where nothing came before."""
        return self if self.start is None else self.start

    def value(self, x: Float[Array, "n ..."]) -> Float[Array, "n k"]:
        """f(x), always with an axis for the outputs."""
        return self._once("value", x, lambda: self.function.on(self.params, x))

    def gram(
        self, x: Float[Array, "n ..."], x2: Float[Array, "m ..."] | None = None
    ) -> Float[Array, "n m"] | Float[Array, "n k m k"]:
        """K(x, x2), (n, m) of one output and (n, k, m, k) of several, as `Tangent.gram`."""
        if x2 is None:
            return self._once("gram", x, lambda: self._gram(x, x))
        return self._gram(x, x2)

    def matrix(self, x: Float[Array, "n ..."]) -> Float[Array, "rows rows"]:
        """K with a row for every input and output."""
        made = self.gram(x)
        return made if made.ndim == 2 else made.reshape(made.shape[0] * made.shape[1], -1)

    def leading(self, x: Float[Array, "n ..."], k: int = 1) -> Leading:
        """The k largest eigenvalues of K and their vectors, by `leading_pairs`."""
        enough = max(k, USUAL)
        made = self._once(f"leading {enough}", x, lambda: leading_pairs(self.matrix(x), enough))
        return Leading(made.values[:k], made.vectors[:, :k], made.residuals[:k])

    def local(self, x: Float[Array, "n d"]) -> LocalForm:
        """a, D and H of every input, of a network with one output: the kernel near its diagonal."""
        if self.function.outputs > 1 or x.ndim != 2:
            raise InputError(
                "measures",
                "a network with one output, on inputs (n, d), for the kernel's local structure",
                f"{self.function.outputs} outputs, inputs of shape {x.shape}",
                "Leave out mag_ma and min_cosine",
            )
        return self._once(
            "local", x, lambda: local_forms(lambda p, at: self.function(p, at)[0], self.params, x)
        )

    def vjp(self, x: Float[Array, "n ..."], c: Float[Array, "n k"]) -> Tree:
        """J(x)ᵀ c, a tree like the parameters."""
        return jax.vjp(lambda params: self.function.on(params, x), self.params)[1](c)[0]

    def _gram(self, x: Array, x2: Array) -> Array:
        way = Way(self.structured, vector=False, full=self.function.outputs > 1)
        here = self._once("jacobian", x, lambda: way.jacobian(self.function, x))
        there = here if x2 is x else way.jacobian(self.function, x2)
        return multiply(way, self.function.outputs, here, there)[0]

    def _once(self, name: str, x: Array, make: Callable[[], T]) -> T:
        key = name, id(x)
        if key not in self._kept:
            self._kept[key] = x, make()  # x is kept, so that its id stays its own
        made: T = self._kept[key][1]
        return made


def distance(tree: Tree, other: Tree) -> Float[Array, ""]:
    """|θ - θ'| over all leaves of two trees alike.

    >>> float(distance({"w": jnp.array([3.0])}, {"w": jnp.array([0.0])}))
    3.0
    """
    pairs = zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True)
    return jnp.sqrt(sum((jnp.sum(jnp.square(a - b)) for a, b in pairs), jnp.zeros(())))
