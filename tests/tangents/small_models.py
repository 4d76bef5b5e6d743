"""Small models in float64 for the tests of tangents, and their Jacobians written out."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

RNG = np.random.default_rng(0)
X, X2 = RNG.normal(size=(9, 3)), RNG.normal(size=(5, 3))


def mlp(params: Any, x: Any) -> Any:
    """Two layers of tanh; a plain function of a dict of parameters."""
    h = jnp.tanh(x @ params["first"]["w"] + params["first"]["b"])
    return jnp.tanh(h @ params["second"]) @ params["head"]["w"] + params["head"]["b"]


def parameters(outputs: int = 2, width: int = 6, scale: float = 0.6, seed: int = 1) -> Any:
    """In NumPy's float64, whatever JAX's setting."""
    draw = np.random.default_rng(seed).normal
    return {
        "first": {"w": scale * draw(size=(3, width)), "b": scale * draw(size=width)},
        "second": scale * draw(size=(width, width)),
        "head": {"w": scale * draw(size=(width, outputs)), "b": scale * draw(size=outputs)},
    }


def jacobian(f: Any, params: Any, x: Any) -> np.ndarray:
    """(n, k, parameters) of the whole batch, forwards: not the way of the library."""
    with jax.enable_x64(True):
        made = jax.jit(jax.jacfwd(f))(jax.tree.map(jnp.asarray, params), jnp.asarray(x))
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(made)]
    k = leaves[-1].shape[1] if leaves[-1].ndim > 1 else 1
    return np.concatenate([leaf.reshape(len(x), k, -1) for leaf in leaves], 2)


def flat(tree: Any) -> np.ndarray:
    """All numbers of a tree in one vector, in the order of the Jacobian above."""
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])
