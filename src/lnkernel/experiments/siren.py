r"""Networks of sines (SIREN, Sitzmann et al. 2020): finite ones, and the same at infinite width.

A layer is $h = \sin(\omega_0 (W h' + b))$, the head is linear. $W$ is uniform on ±1/n in the first layer and on
$\pm\sqrt{6/n}/\omega_0$ in the others, n the number of inputs of the layer; $b$ is uniform on $\pm 1/\sqrt n$.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

import lnkernel.arch as layers


class Frequency(nnx.Variable[Array]):
    """ω₀: a number of the network that is not trained."""


class Sine(nnx.Module):
    """h ↦ sin(ω₀ h)."""

    def __init__(self, omega: float):
        self.omega = Frequency(jnp.asarray(omega, jnp.float32))

    def __call__(self, h: Array) -> Array:
        return jnp.sin(self.omega[...] * h)


def reaches(depth: int, width: int, omega: float) -> list[tuple[float, float]]:
    """The ends ± of the uniform weights and of the biases of every layer, from the first on.

    >>> [round(end, 4) for end in reaches(3, 64, 30.0)[1]]
    [0.0102, 0.125]
    """
    sizes = [2] + [width] * (depth - 1)
    weights = [1 / 2] + [math.sqrt(6 / n) / omega for n in sizes[1:]]
    return [(weight, 1 / math.sqrt(n)) for weight, n in zip(weights, sizes, strict=True)]


def siren(depth: int, width: int, omega: float, seed: int) -> nnx.Sequential:
    """A network from the plane to a number with `depth` linear layers, the head among them."""
    rngs = nnx.Rngs(seed)
    inner: list[nnx.Module] = []
    sizes = [2] + [width] * (depth - 1) + [1]
    for number, (weight, bias) in enumerate(reaches(depth, width, omega)):
        inner.append(
            nnx.Linear(
                *sizes[number : number + 2],
                kernel_init=_uniform(weight),
                bias_init=_uniform(bias),
                rngs=rngs,
            )
        )
        if number < depth - 1:
            inner.append(Sine(omega))
    return nnx.Sequential(*inner)


def wide_siren(depth: int, width: int, omega: float) -> layers.Node:
    """The architecture whose weights have the variances of `siren` at this width: its kernels are
    those at infinite width, of weights in the parametrization that has such a limit."""
    made: list[layers.Node] = []
    for number, (weight, bias) in enumerate(reaches(depth, width, omega)):
        size = width if number < depth - 1 else 1
        fan_in = 2 if number == 0 else width
        factor = omega if number < depth - 1 else 1.0
        made.append(
            layers.Dense(
                size,
                W_std=factor * weight * math.sqrt(fan_in / 3),
                b_std=factor * bias / math.sqrt(3),
            )
        )
        if number < depth - 1:
            made.append(layers.Sin())
    return layers.serial(*made)


def _uniform(reach: float) -> nnx.Initializer:
    def draw(key: Array, shape: tuple[int, ...], dtype: jnp.dtype = jnp.float32) -> Array:
        return jax.random.uniform(key, shape, dtype, -reach, reach)

    return draw
