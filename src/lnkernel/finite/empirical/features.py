r"""The kernel of random networks at their initialisation, $E[f(x) f(x')]$, from the networks."""

from __future__ import annotations

from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.typing import DTypeLike
from jaxtyping import Float

from lnkernel.arch.text import Architecture
from lnkernel.errors import InputError
from lnkernel.finite.build import Network
from lnkernel.finite.empirical.estimate import MATRICES, Estimate, estimate
from lnkernel.finite.empirical.over_seeds import over_networks, sides
from lnkernel.finite.empirical.tangent import tangent_of
from lnkernel.finite.modules import NTKLinear
from lnkernel.finite.twins import Layer
from lnkernel.gram.memory import demand_memory
from lnkernel.tangents import products
from lnkernel.types import Inputs, MoreInputs, MorePoints, Points


def empirical_nngp(network: nnx.Module, x: Inputs, x2: MoreInputs | None = None) -> Estimate:
    r"""The kernel of a random network's outputs, $\frac1k\sum_{o=1}^k f_o(x) f_o(x')$, (n, m), with its
    standard error over the k outputs.

    At the initialisation the outputs of a last Dense are independent draws given the features
    before it, so this estimates $E[f(x) f(x')]$, `lnkernel.nngp(arch)` at large width, from one
    network with many outputs; the error is that of the last layer, for the features as they are.
    `empirical_nngp_over_seeds` averages over whole networks, with much less noise.

    The arguments are those of `empirical_ntk`; k must be at least 2.

    >>> import lnkernel as lnk
    >>> arch, x = lnk.mlp(hidden=1, outputs=500), [[1.0, 2.0], [3.0, -1.0]]
    >>> f = lnk.finite.network(arch, in_dim=2, width=2048, rngs=0)
    >>> found = lnk.finite.empirical_nngp(f, x)
    >>> bool((abs(found.mean - lnk.nngp(arch)(x)) < 4 * found.standard_error).all())
    True
    """
    tangent, given = tangent_of(network), zip(("x", "x2"), sides(x, x2), strict=False)
    with tangent.open(*given) as (function, inputs):
        if function.outputs < 2:
            raise InputError(
                "network",
                "at least 2 outputs, to average over",
                f"{function.outputs}",
                "Build it with more, e.g. lnkernel.mlp(outputs=500), or average over networks by "
                "empirical_nngp_over_seeds",
            )
        other = None if len(inputs) == 1 else len(inputs[1])
        demand_memory(len(inputs[0]), MATRICES, "The mean", other)
        values = [
            products.values(function, points, tangent.batch_size).astype(np.float64)
            for points in inputs
        ]
        return estimate(np.outer(a, b) for a, b in zip(values[0].T, values[-1].T, strict=True))


def empirical_nngp_over_seeds(
    arch: Architecture,
    x: Points,
    x2: MorePoints | None = None,
    *,
    width: int | None = None,
    seeds: int | Iterable[int] = 10,
    dtype: DTypeLike = jnp.float32,
    progress: bool | None = None,
) -> Estimate:
    r"""$E[f(x) f(x')]$ of random networks at their initialisation, with its standard error.

    If the last layer is a Dense, its mean is taken exactly: given the n features $a$ before it,

        E[f(x) f(x') | a] = W_std²/n · a(x)·a(x') + b_std²,

    whose noise falls like $1/\sqrt{\mathrm{width}}$, where a product of two outputs has a noise of
    order 1 at any width. Otherwise it is the mean of $f_o(x) f_o(x')$ over the outputs o. The
    standard error is over the networks. The arguments are those of `empirical_ntk_over_seeds`.

    >>> import lnkernel as lnk
    >>> arch, x = lnk.mlp(hidden=1), [[1.0, 2.0], [3.0, -1.0]]
    >>> found = lnk.finite.empirical_nngp_over_seeds(arch, x, width=256, seeds=20)
    >>> bool((abs(found.mean - lnk.nngp(arch)(x)) < 4 * found.standard_error).all())
    True
    """

    def matrix(f: Network) -> Float[np.ndarray, "n m"]:
        *hidden, last = f.layers
        readout = last if isinstance(last, NTKLinear) else None
        layers = f.layers if readout is None else hidden
        both = [_features(layers, jnp.asarray(side, f.dtype)) for side in sides(x, x2)]
        mean = both[0] @ both[-1].T / both[0].shape[1]
        return mean if readout is None else _read_out(readout, mean)

    return over_networks(arch, x, x2, matrix, width, seeds, dtype, progress)


def _read_out(readout: NTKLinear, mean: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
    """The mean over the weights and biases of the last layer, given that of the features."""
    return np.asarray(float(readout.W_std) ** 2 * mean + float(readout.b_std) ** 2)


def _features(
    layers: Iterable[Layer], h: Float[jax.Array, "n d"]
) -> Float[np.ndarray, "n features"]:
    for layer in layers:
        h = layer(h)
    return np.asarray(h)
