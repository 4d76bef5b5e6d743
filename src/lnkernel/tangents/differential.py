r"""The derivative of a network in its parameters, $J = \partial f/\partial\theta$: products with it, and
the kernel $K = J J^T$."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lnkernel.errors import InputError
from lnkernel.precision import inside_jit, is_traced
from lnkernel.tangents import gram as tiled
from lnkernel.tangents import products
from lnkernel.tangents.function import Function, are_alike
from lnkernel.tangents.inputs import (
    as_direction,
    as_rows,
    check_each_on_its_own,
    count_outputs,
    in_precision,
)
from lnkernel.tangents.model import Model, Tree
from lnkernel.tangents.selection import Path, spell
from lnkernel.tangents.structured import piece_paths
from lnkernel.types import Inputs, MoreInputs

Kernel = Float[np.ndarray, "n m"] | Float[np.ndarray, "n k m k"]
PerInput = Float[np.ndarray, " n"] | Float[np.ndarray, "n k"]
BY = ("layer", "parameter")


@dataclass(frozen=True, eq=False, repr=False)
class Differential:
    """A model with its chosen parameters: what all of `Tangent` is made from."""

    _model: Model
    batch_size: int  # inputs at a time, in products
    _name: str = "model"  # in messages

    @property
    def function(self) -> Function:
        """The model as a pure function."""
        return self._model.function

    @property
    def structured(self) -> bool:
        """Whether the Jacobian can be kept in factors."""
        return self._model.structured

    @property
    def params(self) -> Tree:
        """The chosen parameters θ₀: an `nnx.State`, or the tree with None for those not chosen."""
        return self._model.function.params

    @property
    def paths(self) -> list[Path]:
        """Where each chosen parameter stands in the model, in the order of the leaves."""
        return list(self._model.paths)

    @property
    def size(self) -> int:
        """How many numbers were chosen."""
        return sum(int(np.size(leaf)) for leaf in jax.tree.leaves(self.params))

    @property
    def dtype(self) -> Any:
        """The precision that all is computed in: that of the parameters."""
        return jnp.result_type(*jax.tree.leaves(self.params))

    def whole(self, params: Tree) -> Tree:
        """Chosen parameters together with all others, in the form in which the model was given:
        `nnx.update(model, …)`, `model.apply(…, x)` and `f(…, x)` take them."""
        return self._model.whole(params)

    def chosen(self, params: Tree) -> Tree:
        """The chosen ones of parameters, which may be all of the model's or the chosen ones alone."""
        if are_alike(params, self.params):
            return params
        return self._model.chosen(params)

    @contextmanager
    def open(self, *inputs: tuple[str, Inputs]) -> Iterator[tuple[Function, list[np.ndarray]]]:
        """The function and the named inputs in the model's precision, which holds in this scope.

        The precision is that of the parameters, whatever JAX's setting: float64 if one of them is,
        and float32 otherwise.
        """
        function = self._model.function
        if is_traced(function.params, *(x for _, x in inputs)) or inside_jit():
            raise InputError(
                self._name,
                "a call outside of jax.jit, jax.grad and jax.vmap",
                "a call inside of one of them",
                "Call it outside of them: the work is done in tiles, by compiled programs",
            )
        with self._precision():
            given = [in_precision(name, x, self.dtype) for name, x in inputs]
            sizes = [
                count_outputs(function, name, x) for (name, _), x in zip(inputs, given, strict=True)
            ]
            opened = replace(function, outputs=sizes[0])
            if self._model.joint is not None:
                check_each_on_its_own(self._model.joint, opened, given[0])
            yield opened, given

    def _precision(self) -> AbstractContextManager[Any]:
        """The scope in which JAX has the precision of the parameters."""
        return jax.enable_x64(self.dtype == np.float64)

    # ------------------------------------------------------------ products

    def value(self, x: Inputs) -> PerInput:
        """f(x) at the parameters θ₀: (n,), or (n, k) of k outputs.

        >>> import jax.numpy as jnp, lnkernel as lnk
        >>> t = lnk.tangent(lambda w, x: x @ w, jnp.array([1.0, 2.0]))
        >>> t.value([[1.0, 0.0], [1.0, 1.0]])
        array([1., 3.], dtype=float32)
        """
        with self.open(("x", x)) as (function, (points,)):
            return one_or_all(products.values(function, points, self.batch_size))

    def jvp(self, x: Inputs, v: Tree) -> PerInput:
        """J(x) v, the change of f(x) along v: (n,), or (n, k).

        Args:
            x: inputs, (n, d), or (n, ...) if the model takes such.
            v: a direction in the chosen parameters, a tree like `params`, or like all of the model's
                parameters, of which the chosen ones count.

        >>> import jax.numpy as jnp, lnkernel as lnk
        >>> t = lnk.tangent(lambda w, x: x @ w, jnp.array([1.0, 2.0]))
        >>> t.jvp([[1.0, 0.0], [1.0, 1.0]], jnp.array([5.0, 7.0]))
        array([ 5., 12.], dtype=float32)
        """
        with self.open(("x", x)) as (function, (points,)):
            direction = as_direction("v", self.chosen(v), function.params)
            return one_or_all(products.jvp(function, points, direction, self.batch_size))

    def vjp(self, x: Inputs, c: PerInput) -> Tree:
        """J(x)ᵀ c, the sum of gradients with weights c, (n,) or (n, k): a tree like `params`.

        >>> import jax.numpy as jnp, lnkernel as lnk
        >>> t = lnk.tangent(lambda w, x: x @ w, jnp.array([1.0, 2.0]))
        >>> t.vjp([[1.0, 0.0], [1.0, 1.0]], [1.0, 10.0])
        Array([11., 10.], dtype=float32)
        """
        with self.open(("x", x)) as (function, (points,)):
            rows = as_rows("c", c, len(points), function.outputs)
            return products.vjp(function, points, rows, self.batch_size)

    def matvec(self, x: Inputs, *, outputs: str = "full") -> Callable[[PerInput], PerInput]:
        r"""$v \mapsto K v$ without $K$: for v of shape (n,), or (n, k) of k outputs.

        With `outputs="mean"` K is the mean over the outputs and v has shape (n,).

        >>> import jax.numpy as jnp, lnkernel as lnk
        >>> t = lnk.tangent(lambda w, x: x @ w, jnp.array([1.0, 2.0]))
        >>> t.matvec([[1.0, 0.0], [1.0, 1.0]])([1.0, 10.0])    # K = [[1, 1], [1, 2]]
        array([11., 21.], dtype=float32)
        """
        tiled.one_of("outputs", outputs, tiled.OUTPUTS)

        with self.open(("x", x)) as (function, (points,)):
            apply = products.matvec(function, points, self.batch_size)

        def times(v: PerInput) -> PerInput:
            with self._precision():
                if outputs == "full" or function.outputs == 1:
                    made = apply(as_rows("v", v, len(points), function.outputs))
                    return made.reshape(np.shape(v))
                rows = as_rows("v", v, len(points), 1)
                units = np.eye(function.outputs)
                each = [apply(rows * unit)[:, o] for o, unit in enumerate(units)]
                return np.mean(each, axis=0).reshape(np.shape(v))

        return times

    # ------------------------------------------------------------ the kernel

    def gram(
        self,
        x: Inputs,
        x2: MoreInputs | None = None,
        *,
        outputs: str = "full",
        method: str = "auto",
    ) -> Kernel:
        r"""$K(x, x') = \sum_\theta \partial_\theta f(x)\,\partial_\theta f(x')$ over the chosen
        parameters: (n, m) of one output, (n, k, m, k) of k outputs.

        Args:
            x: inputs, (n, d), or (n, ...) if the model takes such.
            x2: other inputs. Without them the matrix is symmetric, and half of it is computed.
            outputs: "full" keeps all pairs of outputs; "mean" is the mean of $K_{oo}$ over them, (n, m).
            method: as in `finite.empirical_ntk`.

        Returns:
            A NumPy array in the precision of the parameters, in which all is computed.

        >>> import jax.numpy as jnp, lnkernel as lnk
        >>> t = lnk.tangent(lambda w, x: x @ w, jnp.array([1.0, 2.0]))
        >>> t.gram([[1.0, 0.0], [1.0, 1.0]], [[2.0, 3.0]])
        array([[2.],
               [5.]], dtype=float32)
        """
        made = self._gram(x, x2, method, outputs)[0]
        return made[:, 0, :, 0] if made.ndim == 4 and made.shape[1] == 1 else made

    def diagonal(
        self, x: Inputs, *, outputs: str = "full"
    ) -> Float[np.ndarray, " n"] | Float[np.ndarray, "n k k"]:
        """K(x, x) of every input on its own: (n,), or (n, k, k) of k outputs unless
        `outputs="mean"`.

        >>> import jax.numpy as jnp, lnkernel as lnk
        >>> t = lnk.tangent(lambda w, x: x @ w, jnp.array([1.0, 2.0]))
        >>> t.diagonal([[1.0, 0.0], [1.0, 1.0]])
        array([1., 2.], dtype=float32)
        """
        with self.open(("x", x)) as (function, (points,)):
            way = tiled.choose_way(self.structured, function, "auto", outputs)
            made = tiled.diagonal(function, way._replace(vector=False), points)
        return made[:, 0, 0] if made.ndim == 3 and made.shape[1] == 1 else made

    def cosine(self, x: Inputs, *, outputs: str = "full") -> Kernel:
        r"""$K_{ij}/\sqrt{K_{ii} K_{jj}}$, the cosine of the angle between gradients; between
        all pairs of outputs, or of the mean over the outputs, as in `gram`.

        >>> import jax.numpy as jnp, lnkernel as lnk
        >>> t = lnk.tangent(lambda w, x: x @ w, jnp.array([1.0, 2.0]))
        >>> t.cosine([[1.0, 0.0], [1.0, 1.0]]).round(3)
        array([[1.   , 0.707],
               [0.707, 1.   ]], dtype=float32)
        """
        made = self.gram(x, outputs=outputs)
        rows = made.reshape(int(np.sqrt(made.size)), -1)
        length = np.sqrt(np.diagonal(rows))
        if not length.all():
            where = int(np.flatnonzero(length == 0)[0])
            raise InputError(
                "x",
                "inputs at which the gradient is not zero",
                f"a gradient of zero in row {where}",
                "It has no angle with others: drop the input, or choose more parameters",
            )
        return (rows / length[:, None] / length).reshape(made.shape)

    def blocks(
        self,
        x: Inputs,
        x2: MoreInputs | None = None,
        *,
        outputs: str = "full",
        by: str | Callable[[Path], str] = "layer",
    ) -> dict[str, Kernel]:
        """The kernel of every block of parameters, by its name; they add up to `gram`.

        Args:
            x, x2, outputs: as in `gram`.
            by: "layer" takes the parameters of one layer together, such as kernel and bias;
                "parameter" takes each alone; or a function from a path to the name of its block.

        >>> import jax.numpy as jnp, lnkernel as lnk
        >>> params = {"slope": jnp.ones(2), "shift": jnp.ones(())}
        >>> t = lnk.tangent(lambda p, x: x @ p["slope"] + p["shift"], params)
        >>> t.blocks([[1.0, 0.0], [1.0, 1.0]])
        {'shift': array([[1., 1.], [1., 1.]], dtype=float32),
         'slope': array([[1., 1.], [1., 2.]], dtype=float32)}
        """
        if not callable(by):
            tiled.one_of("by", by, BY)
        names = [_block(path, by) for path in self.paths]
        known = list(dict.fromkeys(names))
        made = self._gram(x, x2, "auto", outputs, (names, known, by == "layer"))
        one = [
            whole[:, 0, :, 0] if whole.ndim == 4 and whole.shape[1] == 1 else whole
            for whole in made
        ]
        return dict(zip(known, one, strict=True))

    def _gram(
        self,
        x: Inputs,
        x2: MoreInputs | None,
        method: str,
        outputs: str,
        blocks: tuple[list[str], list[str], bool] | None = None,
    ) -> list[np.ndarray]:
        """(n, m) or (n, k, m, k), of all parameters or of every block."""
        symmetric = x2 is None or x2 is x
        given = [("x", x)] if x2 is None or symmetric else [("x", x), ("x2", x2)]
        with self.open(*given) as (function, inputs):
            way = tiled.choose_way(self.structured, function, method, outputs)
            if blocks is not None:
                way = self._in_blocks(way, function, *blocks)
            return tiled.gram(function, way, inputs[0], inputs[-1], symmetric)

    def _in_blocks(
        self, way: tiled.Way, function: Function, names: list[str], known: list[str], layers: bool
    ) -> tiled.Way:
        """The factors of a layer are of all its parameters together."""
        structured = way.structured and layers
        if structured:
            name_of = {path[:-1]: name for path, name in zip(self.paths, names, strict=True)}
            pieces = piece_paths(function)
            names = [name_of[p] if p in name_of else name_of[p[:-1]] for p in pieces]
        numbers = tuple(known.index(name) for name in names)
        return way._replace(structured=structured, vector=False, blocks=numbers)


def _block(path: Path, by: str | Callable[[Path], str]) -> str:
    if callable(by):
        return str(by(path))
    return spell(path[:-1] if by == "layer" and len(path) > 1 else path)


def one_or_all(values: np.ndarray) -> np.ndarray:
    """One output has no axis of its own."""
    return values[:, 0] if values.shape[1] == 1 else values
