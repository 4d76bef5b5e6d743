r"""The Jacobian of a sequence of layers, kept in factors.

The gradient in the parameters of $h = c\,W a + s\,b$ is the outer product of $(c\,a, s)$ and of the
slope $\partial f/\partial h$, so that its products are $(c^2\, a \cdot a' + s^2)\;\partial f/\partial h
\cdot \partial f'/\partial h'$: there is no need to form it, which makes the kernel of wide networks
cheaper by the order of their width (Novak, Sohl-Dickstein and Schoenholz 2022).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array
from jaxtyping import Float

from lnkernel.finite.build import Network
from lnkernel.finite.empirical.function import Function, Piece
from lnkernel.finite.modules import NTKLinear, Sum

LINEAR = (nnx.Linear, NTKLinear)
Path = tuple[Any, ...]


def is_structured(network: Any) -> bool:
    """Whether every linear layer is found, and found once: in plain sequences, as twins are."""
    if type(network) not in (nnx.Sequential, Network):
        return False
    layers = [layer for _, layer in _leaves(network, ())]
    own = [id(param) for layer in layers for _, param in nnx.iter_graph(layer) if _is_param(param)]
    return len(set(own)) == len(own)


def structured_jacobian(function: Function, x: Float[Array, "n d"]) -> list[Piece]:
    """The Jacobian at every input, in pieces: one for every linear layer, one for every parameter
    of the other layers.
    """
    params = dict(nnx.to_flat_state(function.params))
    found = [
        path for path, layer in _leaves(function.merge(function.params), ()) if _is_linear(layer)
    ]
    others = {path: value for path, value in params.items() if path[:-1] not in found}

    def outputs(pushes: dict[Path, Array], others: Any, point: Array) -> tuple[Array, Any]:
        """f with something added behind each linear layer, and what went into and out of them."""
        network = function.merge(nnx.from_flat_state(params | others))
        seen: dict[Path, tuple[Array, Array]] = {}
        out = _run(network, (), point[None], pushes, seen)
        return jnp.ravel(out), seen

    def of_one(point: Array) -> tuple[Any, dict[Path, Array]]:
        _, shapes = jax.eval_shape(outputs, {}, others, point)
        pushes = {path: jnp.zeros(h.shape, h.dtype) for path, (_, h) in shapes.items()}
        slopes, seen = jax.jacrev(outputs, (0, 1), has_aux=True)(pushes, others, point)
        return slopes, {path: a[0] for path, (a, _) in seen.items()}

    (slopes, direct), inputs = jax.vmap(of_one)(x)
    layers = dict(_leaves(function.merge(function.params), ()))
    factored = [Piece(slopes[path], _with_bias(layers[path], inputs[path])) for path in found]
    return factored + [Piece(leaf, None) for leaf in jax.tree.leaves(direct)]


def _with_bias(
    layer: nnx.Linear | NTKLinear, a: Float[Array, "n features"]
) -> Float[Array, "n parameters"]:
    """(c a, s) of c W a + s b: (n, features + 1)."""
    if isinstance(layer, NTKLinear):
        c, s = layer.W_std / math.sqrt(layer.in_features), layer.b_std
    else:
        c, s = 1.0, 1.0
    return c * a if layer.bias is None else jnp.pad(c * a, ((0, 0), (0, 1)), constant_values=s)


def _leaves(layer: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """The layers that are no sequences or sums of others, with their paths."""
    inner = _inside(layer)
    if inner is None:
        yield path, layer
        return
    name, parts = inner
    for number, part in enumerate(parts):
        yield from _leaves(part, (*path, name, number))


def _run(
    layer: Any, path: Path, h: Array, pushes: dict[Path, Array], seen: dict[Path, Any]
) -> Array:
    inner = _inside(layer)
    if inner is None:
        out = layer(h)
        if _is_linear(layer):
            seen[path] = h, out
            out = out + pushes.get(path, 0)
        return out
    name, parts = inner
    if name == "branches":
        ends = [_run(part, (*path, name, i), h, pushes, seen) for i, part in enumerate(parts)]
        return sum(ends[1:], start=ends[0])
    for number, part in enumerate(parts):
        h = _run(part, (*path, name, number), h, pushes, seen)
    return h


def _inside(layer: Any) -> tuple[str, Any] | None:
    """The attribute that holds the parts of a sequence or a sum, and the parts."""
    if type(layer) in (nnx.Sequential, Network):
        return "layers", layer.layers
    return ("branches", layer.branches) if type(layer) is Sum else None


def _is_linear(layer: Any) -> bool:
    return type(layer) in LINEAR


def _is_param(value: Any) -> bool:
    return isinstance(value, nnx.Param)
