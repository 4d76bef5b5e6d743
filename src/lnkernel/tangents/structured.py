r"""The Jacobian of a sequence of layers, kept in factors.

The gradient in the parameters of $h = c\,W a + s\,b$ is the outer product of $(c\,a, s)$ and of the
slope $\partial f/\partial h$, so that its products are $(c^2\, a \cdot a' + s^2)\;\partial f/\partial h
\cdot \partial f'/\partial h'$: there is no need to form it, which makes the kernel of wide networks
cheaper by the order of their width (Novak, Sohl-Dickstein and Schoenholz 2022).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array
from jaxtyping import Float

from lnkernel.tangents.function import Function, Piece
from lnkernel.tangents.selection import Path
from lnkernel.tangents.structure import inner_layers, is_linear, is_sequence, parts, scales


def is_structured(network: Any) -> bool:
    """Whether every linear layer is found, and found once: in plain sequences, as twins are."""
    if not is_sequence(network):
        return False
    layers = [layer for _, layer in inner_layers(network)]
    own = [id(param) for layer in layers for _, param in nnx.iter_graph(layer) if _is_param(param)]
    return len(set(own)) == len(own)


def piece_paths(function: Function) -> list[Path]:
    """The layer, or the parameter of another layer, that each piece of the Jacobian belongs to."""
    found, params = _factored_layers(function)
    return found + [path for path in params if path[:-1] not in found]


def structured_jacobian(function: Function, x: Float[Array, "n d"]) -> list[Piece]:
    """The Jacobian at every input, in pieces: one for every linear layer, one for every parameter
    of the other layers.
    """
    found, params = _factored_layers(function)
    others = {path: value for path, value in params.items() if path[:-1] not in found}

    def outputs(pushes: dict[Path, Array], others: Any, point: Array) -> tuple[Array, Any]:
        """f with something added behind each linear layer, and what went into and out of them."""
        network = _merge(function, nnx.from_flat_state(params | others))
        seen: dict[Path, tuple[Array, Array]] = {}
        out = _run(network, (), point[None], pushes, seen)
        return jnp.ravel(out), {path: both for path, both in seen.items() if path in found}

    def of_one(point: Array) -> tuple[Any, dict[Path, Array]]:
        _, shapes = jax.eval_shape(outputs, {}, others, point)
        pushes = {path: jnp.zeros(h.shape, h.dtype) for path, (_, h) in shapes.items()}
        slopes, seen = jax.jacrev(outputs, (0, 1), has_aux=True)(pushes, others, point)
        return slopes, {path: a[0] for path, (a, _) in seen.items()}

    (slopes, direct), inputs = jax.vmap(of_one)(x)
    layers = dict(inner_layers(_merge(function, function.params)))
    factored = [
        _piece(slopes[path], _features(layers[path], path, params, inputs[path])) for path in found
    ]
    return factored + [Piece(leaf, None) for leaf in jax.tree.leaves(direct)]


def _factored_layers(function: Function) -> tuple[list[Path], dict[Path, Array]]:
    """The linear layers that have chosen parameters, and the chosen parameters, by their paths."""
    params = dict(nnx.to_flat_state(function.params))
    owners = {path[:-1] for path in params}
    layers = inner_layers(_merge(function, function.params))
    return [path for path, layer in layers if is_linear(layer) and path in owners], params


def _merge(function: Function, params: Any) -> Any:
    return function.apply.merge(params, function.rest)  # type: ignore[attr-defined]


def _piece(
    slopes: Float[Array, "n outputs one *positions width"],
    features: Float[Array, "n *positions parameters"],
) -> Piece:
    """The outer product in factors; of a layer at many positions the sum of theirs, multiplied out."""
    if features.ndim == 2:
        return Piece(slopes, features)
    n, outputs, width = len(slopes), slopes.shape[1], slopes.shape[-1]
    flat = features.reshape(n, -1, features.shape[-1])
    return Piece(jnp.einsum("nopw,npf->nowf", slopes.reshape(n, outputs, -1, width), flat), None)


def _features(
    layer: Any, path: Path, chosen: dict[Path, Array], a: Float[Array, "n *positions features"]
) -> Float[Array, "n *positions parameters"]:
    """(c a, s) of c W a + s b: (n, features + 1); of the two only what is chosen."""
    c, s = scales(layer)
    weights = [c * a] if (*path, "kernel") in chosen else []
    bias = [jnp.full((*a.shape[:-1], 1), s, a.dtype)] if (*path, "bias") in chosen else []
    return jnp.concatenate(weights + bias, -1)


def _run(
    layer: Any, path: Path, h: Array, pushes: dict[Path, Array], seen: dict[Path, Any]
) -> Array:
    inner = parts(layer)
    if inner is None:
        out = layer(h)
        if is_linear(layer):
            seen[path] = h, out
            out = out + pushes.get(path, 0)
        return out
    name, is_sum, layers = inner
    if is_sum:
        ends = [_run(part, (*path, name, i), h, pushes, seen) for i, part in enumerate(layers)]
        return sum(ends[1:], start=ends[0])
    for number, part in enumerate(layers):
        h = _run(part, (*path, name, number), h, pushes, seen)
    return h


def _is_param(value: Any) -> bool:
    return isinstance(value, nnx.Param)
