r"""The log marginal likelihood of data as a function of the hyperparameters, with its derivatives.

$$\log p(y \mid X) = -\tfrac12 y^T A^{-1} y - \tfrac12\log\det A - \tfrac n2\log 2\pi, \qquad
\partial_\theta = \mathrm{tr}(W\,\partial_\theta A), \quad W = \tfrac12(A^{-1}y\,y^T A^{-1} - A^{-1}).$$

The value and W come from the Gram matrix of plain numbers, for which new hyperparameters compile nothing. Only
$\sum W \circ \partial_\theta A$ is a program: of one tile of the matrix, for a few sizes of tiles, whatever n is. So it
is compiled once for all steps, all starts and all data.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
import scipy

from lnkernel.arch import Node
from lnkernel.check.arrays import Data
from lnkernel.errors import ActivationRangeError, KernelOverflowError
from lnkernel.gp.cholesky import cholesky_in_place
from lnkernel.gp.diagnosis import is_resolved
from lnkernel.gp.noise import Variance
from lnkernel.gram import traced
from lnkernel.gram.kernel import Kernel
from lnkernel.gram.structure import Structure, assemble, dissect
from lnkernel.types import Array

TILES = (16, 64, 256)  # rows of a tile: the first that holds all points, or the last


class Evidence(NamedTuple):
    """log p(y | X), and its derivatives by every leaf of the architecture and by the noise."""

    value: float
    by_leaves: np.ndarray
    by_noise: float


def evidence(arch: Node, which: str, data: Data, noise: Variance) -> Evidence | None:
    """The evidence; None where float64 cannot tell the matrix from a singular one, or the kernel leaves its range."""
    try:
        gram = np.asarray(Kernel(arch, (which,))(data.x))
    except (ActivationRangeError, KernelOverflowError):
        return None
    gram.flat[:: len(gram) + 1] += noise
    factor = cholesky_in_place(gram) if (np.diagonal(gram) > 0).all() else None
    if factor is None or not is_resolved(factor):
        return None
    n, k = data.y.shape
    a = factor.solve(data.y)
    volume = factor.log_determinant() + n * math.log(2 * math.pi)
    value = -0.5 * (float((data.y * a).sum()) + k * volume)
    inverse, _ = scipy.linalg.lapack.dpotri(factor.both, lower=1, overwrite_c=1)
    # right in the lower triangle, which is all that is read
    weights = 0.5 * (a @ a.T - k * inverse)
    slopes = _contract(arch, which, data.x, weights)
    if not np.isfinite(slopes).all():
        return None
    return Evidence(value, slopes, float(np.trace(weights)))


def _contract(arch: Node, which: str, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Σ W ∘ ∂A for every leaf; 0 for those that are structure."""
    structure, varying = dissect(arch)
    numbers = np.array([float(v) for v in varying])
    n = len(x)
    size = next((tile for tile in TILES if tile >= n), TILES[-1])
    starts = range(0, n, size)
    total = np.zeros(len(numbers))
    with jax.enable_x64(True):
        for i in starts:
            for j in starts[: i // size + 1]:
                part = np.tril(weights[i : i + size, j : j + size], 0 if i == j else size)
                part = 2 * part if i != j else part + np.tril(part, -1)
                rows, columns = _fill_up(x[i : i + size], size), _fill_up(x[j : j + size], size)
                inside = np.pad(part, [(0, size - length) for length in part.shape])
                total += np.asarray(_slopes(structure, which, numbers, rows, columns, inside))
    out = np.zeros(len(structure.zeros))
    out[~np.array(structure.zeros)] = total
    return out


def _fill_up(x: np.ndarray, size: int) -> np.ndarray:
    """x with as many rows as a tile has; the rows that are added count with weight 0."""
    return np.concatenate([x, np.broadcast_to(x[:1], (size - len(x), x.shape[1]))])


@partial(jax.jit, static_argnums=(0, 1))
def _slopes(
    structure: Structure, which: str, numbers: Array, rows: Array, columns: Array, weights: Array
) -> Array:
    def total(values: Array) -> Array:
        (kernel,) = traced.matrix(assemble(structure, list(values)), rows, columns, (which,))
        made: Array = (weights * kernel).sum()
        return made

    return jax.grad(total)(numbers)
