r"""Any network through its tangent: $f(\theta_0) + J\,(\theta - \theta_0)$ and all that follows from it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.typing import DTypeLike

from lnkernel.check import positive_integer
from lnkernel.errors import InputError
from lnkernel.tangents.differential import Differential
from lnkernel.tangents.model import Tree
from lnkernel.tangents.read import read_model
from lnkernel.tangents.selection import Wrt

BATCH = 256  # inputs at a time, in products


class Tangent(Differential):
    """A network to first order in its chosen parameters, as `tangent` makes it."""

    def __repr__(self) -> str:
        return f"Tangent(parameters={self.size}, blocks={len(self.paths)}, dtype={self.dtype})"


def tangent(
    model: Any,
    params: Tree | None = None,
    wrt: Wrt = None,
    *,
    dtype: DTypeLike | None = None,
    batch_size: int = BATCH,
) -> Tangent:
    r"""Any network through its derivative $J = \partial f/\partial\theta$ at the parameters that it has.

    Args:
        model: a `flax.nnx.Module`, a `flax.linen.Module`, or a function f(params, x). It maps inputs
            (n, ...) to outputs (n, k) or (n,), each input on its own: BatchNorm and Dropout in
            training mode are refused; call `model.eval()` first.
        params: the parameters of a function, the variables of a Linen module (what `model.init`
            made). Not needed for a module of NNX, whose own they are; another state of it is taken
            instead.
        wrt: which parameters. A filter of NNX, such as `nnx.LoRAParam`; a predicate on the path,
            such as `lambda path: path[-1] == "kernel"`; a path, such as "layers/0" or
            ("layers", 0), with all beneath it; or a list of paths. By default every `nnx.Param`,
            all of "params", or all floating-point arrays.
        dtype: jnp.float64 converts the parameters first, and all is computed in float64. By default
            all is computed in the precision of the parameters, whatever JAX's setting: the result is
            the kernel of the network as it is. Linear algebra behind it is always in float64. A
            module that was told its own `dtype` computes in that one.
        batch_size: inputs at a time in products; their activations are what needs memory.

    >>> import jax.numpy as jnp, lnkernel as lnk
    >>> t = lnk.tangent(lambda w, x: x @ w, jnp.array([1.0, 2.0]))
    >>> t.gram([[1.0, 0.0], [1.0, 1.0]])                     # x·x' of a linear model
    array([[1., 1.],
           [1., 2.]], dtype=float32)
    """
    return make_tangent(model, params, wrt, dtype, batch_size, "model")


def make_tangent(
    model: Any, params: Any, wrt: Wrt, dtype: DTypeLike | None, batch_size: int, name: str
) -> Tangent:
    """`tangent`, with the name that messages have for the model."""
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise InputError("dtype", "float32 or float64", repr(dtype), "Write dtype=jnp.float64")
    wide = dtype is not None and np.dtype(dtype) == np.float64
    leaves = jax.tree.leaves(params)
    with jax.enable_x64(wide or any(getattr(leaf, "dtype", None) == np.float64 for leaf in leaves)):
        read = read_model(model, params, wrt, dtype, name)
    return Tangent(read, positive_integer("batch_size", batch_size), name)
