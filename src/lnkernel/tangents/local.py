r"""The tangent kernel near its diagonal, from the gradient and its first derivative in the input.

With $g(x) = \nabla_\theta f(x)$ and $G = \partial g/\partial x$, of shape (P, d), every input has

$$a = |g|, \qquad D = G^T g, \qquad H = \tfrac12 G^T G,$$

and the cosine $C(x, x+u)$ of the gradients at x and x + u has a closed form in these near u = 0
(Castiglione, Buckley and Simpson 2025). All functions here are pure: they work inside jit, grad, vmap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lnkernel.tangents.function import Piece
from lnkernel.tangents.model import Tree

Output = Callable[[Tree, Array], Array]  # (params, one input) -> one number


class LocalForm(NamedTuple):
    """a, D and H of one input, or of several along leading axes."""

    a: Float[Array, "*n"]
    D: Float[Array, "*n d"]
    H: Float[Array, "*n d d"]


def local_form(f: Output, params: Tree, x: Float[Array, " d"]) -> LocalForm:
    r"""$a = |g|$, $D = G^T g$ and $H = \tfrac12 G^T G$ of one input, by d derivatives along the
    coordinates of the gradient in the parameters."""
    g, push = jax.linearize(lambda at: jax.grad(f)(params, at), x)
    columns = jax.vmap(push)(jnp.eye(x.size, dtype=x.dtype))
    gradient, moved = jax.tree.leaves(g), jax.tree.leaves(columns)  # (...) and (d, ...) of each
    square = sum(jnp.vdot(leaf, leaf) for leaf in gradient)
    drift = sum(
        (jnp.tensordot(move, leaf, leaf.ndim) for move, leaf in zip(moved, gradient, strict=True)),
        start=jnp.zeros_like(x),
    )
    flat = [move.reshape(x.size, -1) for move in moved]
    return LocalForm(jnp.sqrt(square), drift, 0.5 * sum(move @ move.T for move in flat))


def local_forms(
    f: Output, params: Tree, x: Float[Array, "n d"], batch: int | None = None
) -> LocalForm:
    """a (n,), D (n, d) and H (n, d, d) of several inputs, `batch` of them at a time (None: all),
    whose gradients are what needs memory: batch · (d + 1) · P numbers."""

    def one(point: Array) -> LocalForm:
        return local_form(f, params, point)

    return jax.vmap(one)(x) if batch is None else jax.lax.map(one, x, batch_size=batch)


def factored_forms(
    jacobian: Callable[[Array], list[Piece]], x: Float[Array, "n d"], output: int = 0
) -> LocalForm:
    """The same of all inputs from a Jacobian in factors, each input's gradient being outer products
    s ⊗ φ: nothing of the size of the parameters is made.

    With ∂(s ⊗ φ) = ∂s ⊗ φ + s ⊗ ∂φ every inner product of gradients is a product of two small ones.
    """
    pieces, push = jax.linearize(jacobian, x)
    units = jnp.eye(x.shape[1], dtype=x.dtype)
    moved = [push(jnp.broadcast_to(unit, x.shape)) for unit in units]
    square, drift, twice = jnp.zeros(()), jnp.zeros(()), jnp.zeros(())
    for number, piece in enumerate(pieces):
        s, phi = _rows(piece, output)
        ds, dphi = (
            jnp.stack(part, 1)
            for part in zip(*(_rows(m[number], output, 0.0) for m in moved), strict=True)
        )
        ss, pp = jnp.sum(s * s, -1), jnp.sum(phi * phi, -1)
        along_s, along_phi = jnp.einsum("ns,nis->ni", s, ds), jnp.einsum("nf,nif->ni", phi, dphi)
        cross = along_s[:, :, None] * along_phi[:, None, :]
        square = square + ss * pp
        drift = drift + along_s * pp[:, None] + ss[:, None] * along_phi
        twice = twice + jnp.einsum("nis,njs->nij", ds, ds) * pp[:, None, None]
        twice = twice + jnp.einsum("nif,njf->nij", dphi, dphi) * ss[:, None, None]
        twice = twice + cross + jnp.swapaxes(cross, 1, 2)
    return LocalForm(jnp.sqrt(square), drift, 0.5 * twice)


def _rows(piece: Piece, output: int, constant: float = 1.0) -> tuple[Array, Array]:
    """The two factors of one output, (n, s) and (n, f); without features the second is a constant."""
    n = len(piece.slopes)
    slopes = piece.slopes[:, output].reshape(n, -1)
    if piece.features is None:
        return slopes, jnp.full((n, 1), constant, slopes.dtype)
    return slopes, piece.features


def cauchy(form: LocalForm, u: Float[Array, "*n d"]) -> Float[Array, "*n"]:
    r"""$C(x, x+u) \approx (a^2 + D^T u)/(a^2 + D^T u + u^T H u)$.

    It is $2 g \cdot g'/(|g|^2 + |g'|^2)$ with $g' = g + G u$: the arithmetic mean of the squares instead of
    the geometric one. So it is at most the true cosine near u = 0, less by $(D^T u)^2/2a^4$ to second
    order, and exact to that order along directions in which $|g|$ does not change.
    """
    top = form.a**2 + jnp.sum(form.D * u, -1)
    return top / (top + jnp.einsum("...i,...ij,...j->...", u, form.H, u))


def steepness(form: LocalForm) -> Float[Array, "*n"]:
    r"""$\beta = D^T H^{-1} D$, between 0 and $2 a^2$: twice the part of $|g|^2$ in the span of G.

    D is in the range of H; directions in which the gradient does not change count nothing.
    """
    values, vectors = jnp.linalg.eigh(form.H)
    along = jnp.einsum("...ij,...i->...j", vectors, form.D)
    floor = values[..., -1:] * jnp.finfo(values.dtype).eps * values.shape[-1]
    known = values > floor
    beta = jnp.sum(jnp.where(known, along**2 / jnp.where(known, values, 1.0), 0.0), -1)
    return jnp.minimum(beta, 2 * form.a**2)


def level_radius(form: LocalForm, c: Float[Array, ""] | float) -> Float[Array, "*n"]:
    r"""The radius of the ball that has the volume of $\{u : C(x, x+u) \ge c\}$ by `cauchy`:
    $R\,(\det H)^{-1/2d}$ with $R^2 = \frac{1-c}{c} a^2 + (\frac{1-c}{2c})^2 \beta$.

    The set is an ellipsoid around $\frac{1-c}{2c} H^{-1} D$; it is unbounded where H is singular.
    """
    k = (1 - c) / c
    square = k * form.a**2 + (k / 2) ** 2 * steepness(form)
    d = form.D.shape[-1]
    return jnp.sqrt(square) / jnp.maximum(jnp.linalg.det(form.H), 0.0) ** (1 / (2 * d))


def length(form: LocalForm, c_inf: Float[Array, ""] | float) -> Float[Array, "*n"]:
    r"""The correlation length $\xi$: `level_radius` at $c = \frac12 + \frac12 c_\infty$, half of the way
    from 1 down to the floor $c_\infty$ of the cosine."""
    return level_radius(form, 0.5 + c_inf / 2)


def min_cosine(form: LocalForm) -> Float[Array, "*n"]:
    r"""$\min_u$ of `cauchy`: $-\beta/(4 a^2 - \beta)$, at $u = -\frac{2 a^2}{\beta} H^{-1} D$."""
    beta = steepness(form)
    return -beta / (4 * form.a**2 - beta)


def mag_ma(form: LocalForm) -> Float[Array, ""]:
    r"""$|E_x[D/a^2]| = |E_x \nabla_x \log|g||$, the mean over all inputs of one form."""
    slopes = form.D / (form.a**2)[..., None]
    return jnp.linalg.norm(jnp.mean(slopes.reshape(-1, slopes.shape[-1]), 0))


def principal(
    form: LocalForm, c_inf: Float[Array, ""] | float, volume: Float[Array, ""] | float
) -> Float[Array, "*n"]:
    r"""What the first eigenvector is proportional to, $K 1$ with Gaussian cosines in two dimensions:
    $a^2\,[c_\infty + (1 - c_\infty)\,2\pi\xi^2/\mathrm{Vol}]$."""
    area = 2 * jnp.pi * length(form, c_inf) ** 2
    return form.a**2 * (c_inf + (1 - c_inf) * area / volume)
