"""Gram matrices inside a user's own jit, grad or vmap.

Every pair is compared with all care: that form is differentiable as often as the kernel
is, and has no loop whose length depends on the data. It costs more than the quick form,
and memory is a few matrices of the size of the result.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from lnkernel.arch import Node
from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.state import Kernels
from lnkernel.evaluate.float64 import geometry
from lnkernel.gram import pairs
from lnkernel.gram.structure import centres_input

Array = Any


def matrix(arch: Node, x: Array, x2: Array) -> Kernels:
    """All pairs of x and x2, (n, m)."""
    total = _covariance(x, x2, False)
    centred = _covariance(x, x2, True) if centres_input(arch) else None
    kernels = pairs.through(arch, total, centred)
    return Kernels(*(jnp.broadcast_to(k, (len(x), len(x2))) for k in kernels))


def diagonal(arch: Node, x: Array) -> Kernels:
    """Every point with itself, (n,)."""
    return pairs.diagonal(arch, pairs.prepare(x, centres_input(arch)), all_live=False)


def _covariance(x: Array, x2: Array, centre: bool) -> Covariance:
    one, two = geometry.prepare(x, centre), geometry.prepare(x2, centre)
    return geometry.careful_matrix(one, two, centre)
