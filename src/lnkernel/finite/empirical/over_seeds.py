"""The empirical kernels of the networks that an architecture describes: means over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.typing import DTypeLike

from lnkernel.arch.facts import acts_on_positions, position_axes
from lnkernel.arch.text import Architecture, as_architecture
from lnkernel.check.arrays import as_images, as_points, check_dimensions
from lnkernel.check.numbers import as_seeds
from lnkernel.finite.build import Network, demand_memory_of_features, network
from lnkernel.finite.empirical.estimate import MATRICES, Estimate, estimate
from lnkernel.finite.empirical.tangent import empirical_ntk
from lnkernel.finite.training.arguments import precision_of
from lnkernel.gram.memory import demand_memory
from lnkernel.progress import show_progress
from lnkernel.types import Inputs, MorePoints, Points


def empirical_ntk_over_seeds(
    arch: Architecture,
    x: Points,
    x2: MorePoints | None = None,
    *,
    width: int | None = None,
    seeds: int | Iterable[int] = 10,
    dtype: DTypeLike = jnp.float32,
    progress: bool | None = None,
) -> Estimate:
    r"""The mean of the empirical NTK over random networks, $E\,\hat\Theta(x, x')$, with its standard
    error.

    The networks are those of `network(arch, ..., rngs=seed)` in NTK parametrisation. Their mean
    differs from `lnkernel.ntk(arch)` by about 1/width, a single one by about
    $1/\sqrt{\mathrm{width}}$.

    Args:
        arch: the architecture.
        x, x2: inputs, (n, d) and (m, d), or images; without x2 the matrix is symmetric.
        width: the width of the hidden layers, by default their own.
        seeds: their number (0, 1, ...), at least 2, or the seeds themselves.
        dtype: float32 or float64: that of the networks. The mean over them is taken in float64.
        progress: whether to show a bar; None shows it after 2 seconds.

    >>> import lnkernel as lnk
    >>> arch, x = lnk.mlp(hidden=1), [[1.0, 2.0], [3.0, -1.0]]
    >>> found = lnk.finite.empirical_ntk_over_seeds(arch, x, width=256, seeds=20)
    >>> bool((abs(found.mean - lnk.ntk(arch)(x)) < 4 * found.standard_error).all())
    True
    """
    return over_networks(
        arch, x, x2, lambda f: empirical_ntk(f, x, x2), width, seeds, dtype, progress
    )


def sides(x: Inputs, x2: Inputs | None) -> list[Inputs]:
    """The sets of inputs that are given."""
    return [x] if x2 is None else [x, x2]


def over_networks(
    arch: Architecture,
    x: Points,
    x2: MorePoints | None,
    matrix: Callable[[Network], np.ndarray],
    width: int | None,
    seeds: int | Iterable[int],
    dtype: DTypeLike,
    progress: bool | None,
) -> Estimate:
    """The mean of a matrix over the networks of an architecture, one after the other."""
    arch = as_architecture(arch)
    axes, of_positions = position_axes(arch), acts_on_positions(arch)
    points = [
        as_images(name, side, axes) if of_positions else as_points(name, side)
        for name, side in zip(("x", "x2"), sides(x, x2), strict=False)
    ]
    in_dim = points[0].shape[1:] if of_positions else points[0].shape[1]
    check_dimensions(points[0], points[-1])
    chosen = as_seeds(seeds, at_least=2)
    other = None if x2 is None else len(points[1])
    demand_memory(len(points[0]), MATRICES, "The mean", other)

    positions = math.prod(in_dim[:-1]) if isinstance(in_dim, tuple) else 1

    def abstract() -> Network:
        return network(arch, in_dim, width, rngs=0, dtype=dtype)

    def samples() -> Iterator[np.ndarray]:
        for seed in show_progress(chosen, progress, "networks"):
            yield matrix(network(arch, in_dim, width, rngs=seed, dtype=dtype))

    with jax.enable_x64(precision_of(dtype) == np.float64):
        demand_memory_of_features(nnx.eval_shape(abstract), sum(map(len, points)), positions)
        return estimate(samples())
