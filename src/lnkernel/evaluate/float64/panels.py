r"""Integrals over a unit Gaussian, panel by panel, with the panels graded towards where a function bends.

On panels whose length is in proportion to the distance from the nearest singularity, Gauss-Legendre rules
converge as fast as if there were none. A function $\phi(ru)$ of a long input has its singularities at
distances of $1/r$ from the real line; no fixed rule would resolve them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from lnkernel.calculus.quadrature import Grading
from lnkernel.check.plain import known, known_zero
from lnkernel.evaluate.float64.functions import Function, density

REACH = 10.0  # beyond it the Gaussian density is 8e-23
# With neighbours in the ratio 4 a singularity above the centre is 5/3 half-lengths away from the middle of each
# panel, so that n nodes leave 3^-2n: 5e-16.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
COARSE = np.array(
    [-REACH, -5.0, -2.5, 0.0, 2.5, 5.0, REACH]
)  # such panels resolve the Gaussian itself


class Marks(NamedTuple):
    """Where integrals over u are split: at the centres, and at these distances on either side of each.
    Those over a unit Gaussian are also split at the `coarse` places."""

    centres: Array
    distances: Array
    coarse: np.ndarray = COARSE
    straight_beyond: bool = False  # the function, beyond the largest distance

    @property
    def all(self) -> Array:
        """From the least to the largest."""
        spread = jnp.concatenate([-self.distances, jnp.zeros(1), self.distances])
        return jnp.sort(jnp.ravel(self.centres[:, None] + spread))


def marks_of(phi: Function, grading: Grading) -> Marks:
    """The centres are the kinks, and 0, unless phi is a polynomial but for its kinks."""
    plain = is_polynomial(phi)
    at_zero = plain or any(known_zero(kink) for kink in phi.kinks)
    centres = phi.kinks if at_zero else (*phi.kinks, 0.0)
    levels, parts, straight_beyond = grading[:3]
    # the panel next to a centre is divided as well
    powers = [] if plain else [k / parts for k in range(1 - parts, levels * parts)]
    coarse = np.interp(np.arange(parts * (len(COARSE) - 1) + 1) / parts, range(len(COARSE)), COARSE)
    distances = _array([phi.scale * phi.ratio**k for k in powers])
    return Marks(_array(centres), distances, coarse, straight_beyond)


def grading_for(phi: Function, length: float, reach: float | None) -> Grading:
    """The grading for inputs of up to this length, of a function that is straight beyond `reach`, or nowhere."""
    levels = levels_for(phi, length)
    if reach is None or is_polynomial(phi):
        return Grading(levels)
    enough = max(1, 1 + math.ceil(math.log(reach / float(phi.scale), phi.ratio)))
    return Grading(enough, straight_beyond=True) if enough < levels else Grading(levels)


def levels_for(phi: Function, length: float) -> int:
    """How many distances it takes to go from `scale` to the end of inputs of this length."""
    if is_polynomial(phi) or length == 0:
        return 0
    return max(0, math.ceil(math.log(REACH * length / float(phi.scale), phi.ratio)))


def longest_for(phi: Function, levels: int) -> Any:
    """The length of the inputs that end where so many distances do."""
    return math.inf if is_polynomial(phi) else phi.scale * (phi.ratio**levels / REACH)


def is_polynomial(phi: Function) -> bool:
    """Whether it is one between its kinks."""
    return isinstance(phi.scale, float) and math.isinf(phi.scale)


def _array(numbers: Any) -> Array:
    if all(map(known, numbers)):
        plain: Any = np.asarray(numbers, np.float64)  # nothing to compile
        return plain
    return jnp.stack([jnp.asarray(x, jnp.float64) for x in numbers])


def gaussian_rule(splits: Array, coarse: np.ndarray = COARSE) -> tuple[Array, Array]:
    """Nodes and weights (..., nodes) of E f(x) for a unit Gaussian x, with panels that end at `splits` (..., s)."""
    always = jnp.broadcast_to(coarse, (*splits.shape[:-1], len(coarse)))
    ends = jnp.sort(jnp.concatenate([always, jnp.clip(splits, -REACH, REACH)], axis=-1))
    half = 0.5 * (ends[..., 1:] - ends[..., :-1])
    x = ends[..., :-1, None] + half[..., None] * (1 + NODES)
    weights = half[..., None] * WEIGHTS * density(x)
    flat = (*splits.shape[:-1], -1)
    return x.reshape(flat), weights.reshape(flat)
