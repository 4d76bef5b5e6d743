"""Gram matrices inside a user's own jit, grad or vmap.

Every pair is compared with all care: that form is differentiable as often as the kernel
is, and has no loop whose length depends on the data. It costs more than the quick form,
and memory is a few matrices of the size of the result.
"""

from __future__ import annotations

import jax.numpy as jnp

from lnkernel.arch import Node
from lnkernel.arch.facts import starts_with_bias
from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.state import Kernels
from lnkernel.evaluate.float64 import geometry
from lnkernel.gram import pairs
from lnkernel.gram.compiled import compiled
from lnkernel.gram.network import Network, network
from lnkernel.gram.structure import Structure, assemble, dissect
from lnkernel.types import Array

SHORT = 1e-100


def matrix(arch: Node, x: Array, x2: Array) -> Kernels:
    """All pairs of x and x2, (n, m)."""
    structure, varying = dissect(arch)
    compute = compiled(_matrix, structure, inside=True)
    made: Kernels = compute([jnp.asarray(v, jnp.float64) for v in varying], x, x2)
    return made


def diagonal(arch: Node, x: Array) -> Kernels:
    """Every point with itself, (n,)."""
    structure, varying = dissect(arch)
    compute = compiled(_diagonal, structure, inside=True)
    made: Kernels = compute([jnp.asarray(v, jnp.float64) for v in varying], x)
    return made


# Compiled as a whole: under jax.grad alone JAX would compile every single operation.
def _matrix(structure: Structure, varying: list[Array], x: Array, x2: Array) -> Kernels:
    net = network(assemble(structure, varying))
    if starts_with_bias(net.arch):
        x, x2 = _off_zero(x), _off_zero(x2)
    total = _covariance(net, x, x2, False)
    centred = _covariance(net, x, x2, True) if net.needs.centred_input else None
    kernels = pairs.through(net, total, centred)
    return Kernels(*(jnp.broadcast_to(k, (len(x), len(x2))) for k in kernels))


def _diagonal(structure: Structure, varying: list[Array], x: Array) -> Kernels:
    net = network(assemble(structure, varying))
    x = _off_zero(x) if starts_with_bias(net.arch) else x
    kernels = pairs.diagonal(net, pairs.prepare(net, x), all_live=False)
    return Kernels(*(jnp.broadcast_to(k, len(x)) for k in kernels))


def _covariance(net: Network, x: Array, x2: Array, centre: bool) -> Covariance:
    one, two = (geometry.prepare(points, centre, net.needs.range) for points in (x, x2))
    return geometry.careful_matrix(one, two, centre)


def _off_zero(x: Array) -> Array:
    """A zero vector has no direction, but behind a bias the kernel has a derivative there: it is
    that of a vector so short that no digit of the kernel tells it from zero."""
    dead = jnp.all(x == 0, axis=1, keepdims=True)
    return x + jnp.where(dead, SHORT, 0.0)
