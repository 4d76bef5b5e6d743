r"""What `watch` can measure: plain functions of (tangent, X, y), which are traced into the training.

`tangent` is a `Snapshot`, X the inputs (n, ...), y the targets (n, k); a measure returns a number or a
vector. $K = J J^T$ has a row for every input and output, and $r = f(X) - y$.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lnkernel.check.numbers import positive_integer
from lnkernel.errors import InputError
from lnkernel.tangents import alignment as matrices
from lnkernel.tangents.snapshot import Snapshot, distance

Measure = Callable[[Snapshot, Array, Array], Array]
Value = Float[Array, ""]
LOSSES = ("sum", "half-mean", "mean")


def factor(loss: str, points: int) -> float:
    r"""c of the loss $c \sum r^2$: $\frac12$ of "sum", $\frac1{2n}$ of "half-mean", $\frac1n$ of "mean".

    >>> factor("half-mean", 100)
    0.005
    """
    if loss not in LOSSES:
        raise InputError(
            "loss",
            " or ".join(f'"{name}"' for name in LOSSES),
            repr(loss),
            'The loss of `train` is half the sum of the squared errors, loss="sum"',
        )
    return {"sum": 0.5, "half-mean": 0.5 / points, "mean": 1.0 / points}[loss]


@dataclass(frozen=True)
class Loss:
    r"""$c\sum r^2$, with the c that the name of the loss says."""

    loss: str = "sum"

    def __call__(self, tangent: Snapshot, X: Array, y: Array) -> Value:
        return factor(self.loss, len(X)) * jnp.sum(jnp.square(tangent.value(X) - y))


def lambda_max(tangent: Snapshot, X: Array, y: Array) -> Value:
    r"""$\lambda_{\max}(K)$."""
    return tangent.leading(X).values[0]


@dataclass(frozen=True)
class Sharpness:
    r"""$2 c\,\lambda_{\max}(K)$: the largest eigenvalue of the loss's Hessian where the residuals are
    small, which gradient descent of rate η keeps below 2/η."""

    loss: str = "sum"

    def __call__(self, tangent: Snapshot, X: Array, y: Array) -> Value:
        return 2 * factor(self.loss, len(X)) * lambda_max(tangent, X, y)


@dataclass(frozen=True)
class Eigenvalues:
    """The k largest eigenvalues of K, in descending order: (k,)."""

    k: int

    def __call__(self, tangent: Snapshot, X: Array, y: Array) -> Float[Array, " k"]:
        return tangent.leading(X, self.k).values


def eigenvalues(k: int = 10) -> Eigenvalues:
    """The k largest eigenvalues of K; one column each."""
    return Eigenvalues(positive_integer("k", k))


def eigenvalue_error(tangent: Snapshot, X: Array, y: Array) -> Value:
    r"""The largest of $|K u - \lambda u|/\lambda_{\max}$ over the pairs that the measures here are made of."""
    found = tangent.leading(X, 10)
    return jnp.max(found.residuals) / found.values[0]


@dataclass(frozen=True)
class Alignment:
    r"""$(u_i^T y)^2/|y|^2$ of the k leading eigenvectors: (k,)."""

    k: int

    def __call__(self, tangent: Snapshot, X: Array, y: Array) -> Float[Array, " k"]:
        rows = y.ravel()
        vectors = tangent.leading(X, self.k).vectors
        return jnp.square(rows @ vectors) / jnp.sum(jnp.square(rows))


def alignment(k: int = 10) -> Alignment:
    r"""$(u_i^T y)^2/|y|^2$, what part of the targets lies along each of the k leading eigenvectors."""
    return Alignment(positive_integer("k", k))


def kernel_target_alignment(K: Float[Array, "rows rows"], y: Float[Array, " rows"]) -> Value:
    r"""$y^T K y/(\|K\|_F\,|y|^2)$, without centring.

    >>> y = jnp.array([1.0, -2.0])
    >>> float(kernel_target_alignment(3 * jnp.outer(y, y), y))
    1.0
    """
    return y @ K @ y / (jnp.linalg.norm(K) * jnp.sum(jnp.square(y)))


def kta(tangent: Snapshot, X: Array, y: Array) -> Value:
    r"""$y^T K y/(\|K\|_F\,|y|^2)$, the kernel-target alignment, between 0 and 1."""
    return kernel_target_alignment(tangent.matrix(X), y.ravel())


def drift(tangent: Snapshot, X: Array, y: Array) -> Value:
    r"""$|\theta - \theta_0|$."""
    return distance(tangent.params, tangent.before().params)


def kernel_drift(tangent: Snapshot, X: Array, y: Array) -> Value:
    r"""$\|K - K_0\|_F/\|K_0\|_F$."""
    first = tangent.before().matrix(X)
    return jnp.linalg.norm(tangent.matrix(X) - first) / jnp.linalg.norm(first)


def gradient_variance(tangent: Snapshot, X: Array, y: Array) -> Value:
    r"""$\frac1n\sum_i r_i^T K_{ii} r_i - \frac1{n^2} r^T K r$, the trace of the covariance over the points of
    the gradients of $\frac12 |r_i|^2$."""
    return matrices.gradient_variance(tangent.matrix(X), tangent.value(X) - y)


@dataclass(frozen=True, eq=False)
class CKA:
    """The centred alignment of K with another kernel on the same points."""

    target: Float[Array, "n n"] | None = None
    precision: float = 50.0

    def __call__(self, tangent: Snapshot, X: Array, y: Array) -> Value:
        made = tangent.gram(X)
        if made.ndim == 4:
            made = jnp.einsum("iaja->ij", made)
        if self.target is None:
            return matrices.cka(made, matrices.gaussian(y, (2 * self.precision) ** -0.5))
        return matrices.cka(made, jnp.asarray(self.target, made.dtype))


def cka(target: Float[Array, "n n"] | None = None, precision: float = 50.0) -> CKA:
    r"""Centred kernel alignment of K (of several outputs, of the sum over them) with a matrix (n, n); without
    one with $\exp(-p\,|y_i - y_j|^2)$ of the targets, p the `precision`."""
    return CKA(target, precision)
