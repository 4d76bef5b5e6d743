"""Activation functions read as layers of an architecture."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from lnkernel.arch import Abs, Homogeneous, Identity, LeakyRelu, Node, RectifiedPower, Relu
from lnkernel.errors import ArchitectureError
from lnkernel.finite import modules

FUNCTIONS: tuple[tuple[Any, Node], ...] = (
    (jax.nn.relu, Relu()),
    (jnp.abs, Abs()),
    (jnp.absolute, Abs()),
    (jax.lax.abs, Abs()),
    (abs, Abs()),
    (jnp.square, Homogeneous(2, 1.0, 1.0)),
    (jax.nn.identity, Identity()),
    (jax.nn.leaky_relu, LeakyRelu(0.01)),
)
KNOWN = "nnx.relu, nnx.leaky_relu, jnp.abs, jnp.square and nnx.identity"


def read_activation(part: Any, here: str) -> Node:
    """The layer that `part` is, or an error that says why there is none."""
    for function, node in FUNCTIONS:
        if part is function:
            return node
    if isinstance(part, functools.partial) and part.func is jax.nn.leaky_relu:
        slope = part.keywords.get("negative_slope", 0.01)
        if not part.args and set(part.keywords) <= {"negative_slope"}:
            return LeakyRelu(float(slope))
    if type(part) is modules.LeakyRelu:
        return LeakyRelu(part.slope)
    if type(part) is modules.HomogeneousActivation:
        if part.a == 1 and part.b == 0:
            return RectifiedPower(part.degree)
        return Homogeneous(part.degree, part.a, part.b)
    name, reason, remedy = _why_not(part)
    raise ArchitectureError(name, here, reason, remedy)


def _why_not(part: Any) -> tuple[str, str, str]:
    """Name, reason, remedy."""
    if isinstance(part, nnx.PReLU):
        return "PReLU", "its slope is trained, which has no closed form", "Use nnx.leaky_relu"
    if isinstance(part, nnx.BatchNorm):
        why = "it normalises over a batch, so one point's output depends on the other points"
        return "BatchNorm", why, "Use nnx.LayerNorm"
    if isinstance(part, nnx.Dropout):
        return "Dropout", "it is random at every call", "Leave it out"
    if isinstance(part, nnx.Module):
        return (
            type(part).__name__,
            "this type of module is not known",
            "Build the network from nnx.Sequential, Linear, LayerNorm, RMSNorm, GroupNorm and the "
            f"activations {KNOWN}; a subclass of these may compute something else",
        )
    name = getattr(part, "__name__", repr(part))
    return (
        name,
        "this function is not known to be positively homogeneous, and only such activations have "
        "closed forms here",
        f"Known are {KNOWN} as such, leaky_relu also in a functools.partial",
    )
