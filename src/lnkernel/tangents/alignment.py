r"""Measures of a tangent kernel $K$ on a set of inputs against a task. Pure functions of matrices, for
use inside of jit and vmap too; rows and columns are inputs, or pairs of an input and an output.

>>> import jax.numpy as jnp
>>> from lnkernel.tangents import alignment
>>> y = jnp.array([1.0, -1.0, 2.0])
>>> K = 3 * jnp.outer(y, y)
>>> float(alignment.cka(K, jnp.outer(y, y)).round(4)), float(alignment.roc_auc(y, y > 0))
(1.0, 1.0)
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float


def cosines(K: Float[Array, "n n"]) -> Float[Array, "n n"]:
    r"""$K_{ij}/\sqrt{K_{ii} K_{jj}}$, the cosines of the gradients."""
    lengths = jnp.sqrt(jnp.diagonal(K))
    return K / lengths[:, None] / lengths


def centre(K: Float[Array, "n n"]) -> Float[Array, "n n"]:
    r"""$(1 - \tfrac1n 1 1^T)\,K\,(1 - \tfrac1n 1 1^T)$."""
    return K - K.mean(0) - K.mean(1)[:, None] + K.mean()


def cka(K: Float[Array, "n n"], L: Float[Array, "n n"]) -> Float[Array, ""]:
    r"""$\langle K_c, L_c\rangle_F/(\|K_c\|_F \|L_c\|_F)$ of the centred matrices: the centred kernel
    alignment, 1 of kernels that differ by a factor."""
    one, other = centre(K), centre(L)
    return jnp.vdot(one, other) / (jnp.linalg.norm(one) * jnp.linalg.norm(other))


def gaussian(values: Float[Array, "n k"], bandwidth: float) -> Float[Array, "n n"]:
    r"""$\exp(-|v_i - v_j|^2/2 b^2)$: a target kernel of targets or of inputs."""
    square = jnp.sum((values[:, None, :] - values[None, :, :]) ** 2, -1)
    return jnp.exp(-square / (2 * bandwidth**2))


def gradient_variance(
    K: Float[Array, "rows rows"], residuals: Float[Array, " n"] | Float[Array, "n k"]
) -> Float[Array, ""]:
    r"""$\sigma_\theta^2 = \frac1n \sum_i r_i^T K_{ii} r_i - \frac1{n^2} r^T K r$: the trace of the covariance,
    over the examples, of the gradients of $\frac12 |r_i|^2$. K has a row for every example and output."""
    n = len(residuals)
    each, rows = residuals.reshape(n, -1), residuals.ravel()
    k = each.shape[1]
    own = K.reshape(n, k, n, k)[jnp.arange(n), :, jnp.arange(n)]  # the block of every example
    return jnp.einsum("ia,iab,ib->", each, own, each) / n - rows @ K @ rows / n**2


def roc_auc(scores: Float[Array, " n"], positive: Bool[Array, " n"]) -> Float[Array, ""]:
    """The area under the curve of true against false positives: how often a positive example has a
    larger score than a negative one; equal scores count one half. NaN without one of the two classes.
    """
    order = jnp.sort(scores)
    below = jnp.searchsorted(order, scores, side="left")
    upto = jnp.searchsorted(order, scores, side="right")
    ranks = (below + upto + 1) / 2  # the mean rank of equal scores, from 1 on
    hits = jnp.sum(positive)
    misses = scores.size - hits
    total = jnp.sum(jnp.where(positive, ranks, 0.0))
    return (total - hits * (hits + 1) / 2) / (hits * misses)
