r"""The largest eigenvalues of a symmetric matrix inside a compiled program, by Lanczos' method.

A dense eigensolver takes many times as long as a step of training. Lanczos' method with full
reorthogonalization needs a few dozen products with the matrix, and tells its errors. An
eigenvalue that occurs twice may be found once; where the products leave no new direction, the next one is
drawn at random, so that all of the identity's eigenvalues are found.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

MORE = 30  # products beyond two for each pair


class Leading(NamedTuple):
    """The largest eigenvalues in descending order, their vectors, and |K u - λ u| of each."""

    values: Float[Array, " k"]
    vectors: Float[Array, "rows k"]
    residuals: Float[Array, " k"]


def leading_pairs(K: Float[Array, "rows rows"], k: int) -> Leading:
    """The k largest eigenvalues of a positive semi-definite matrix, with their vectors.

    >>> found = leading_pairs(jnp.diag(jnp.array([1.0, 5.0, 3.0])), 2)
    >>> [round(float(value), 4) for value in found.values]
    [5.0, 3.0]
    """
    rows = len(K)
    count = min(rows, 2 * k + MORE)
    noise = jax.random.normal(jax.random.key(0), (count + 1, rows), K.dtype)
    rounding = jnp.finfo(K.dtype).eps * jnp.linalg.norm(K)

    def orthogonal(w: Array, basis: Array) -> Array:
        for _ in range(2):  # once leaves what rounding left
            w = w - basis.T @ (basis @ w)
        return w

    def extend(j: Array, carry: Any) -> Any:
        basis, diagonal, beside = carry
        image = K @ basis[j]
        rest = orthogonal(image, basis)
        size = jnp.linalg.norm(rest)
        drawn = orthogonal(noise[j + 1], basis)
        drawn = drawn / jnp.maximum(jnp.linalg.norm(drawn), jnp.finfo(K.dtype).tiny)
        ends = size <= rounding
        following = jnp.where(ends, drawn, rest / jnp.where(ends, 1.0, size))
        basis = basis.at[j + 1].set(following, mode="drop")  # the last one has no place
        return (
            basis,
            diagonal.at[j].set(basis[j] @ image),
            beside.at[j].set(jnp.where(ends, 0.0, size)),
        )

    first = jnp.zeros((count, rows), K.dtype).at[0].set(noise[0] / jnp.linalg.norm(noise[0]))
    empty = jnp.zeros(count, K.dtype)
    basis, diagonal, beside = jax.lax.fori_loop(0, count, extend, (first, empty, empty))
    inner = beside[:-1]
    values, within = jnp.linalg.eigh(
        jnp.diag(diagonal) + jnp.diag(inner, 1) + jnp.diag(inner, -1), symmetrize_input=False
    )
    chosen = slice(None, -min(k, count) - 1, -1)
    found, vectors = values[chosen], basis.T @ within[:, chosen]
    return Leading(found, vectors, jnp.linalg.norm(K @ vectors - found * vectors, axis=0))
