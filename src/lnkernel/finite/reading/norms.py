"""Flax's normalisations, and the twins' own, read as layers of an architecture."""

from __future__ import annotations

from typing import Any

import numpy as np
from flax import nnx

from lnkernel.arch import GroupNorm, LayerNorm, Node, RMSNorm
from lnkernel.errors import ArchitectureError
from lnkernel.finite import modules

NORMS = (
    nnx.LayerNorm,
    nnx.RMSNorm,
    nnx.GroupNorm,
    modules.GroupRMSNorm,
    modules.ExactNorm,
)


def read_norm(part: Any, width: int | None, here: str) -> tuple[Node, int | None]:
    """The layer, and the number of features that it takes, if it says so."""
    if isinstance(part, modules.ExactNorm):
        return read_norm(part.norm, width, here)
    kind = type(part).__name__
    scale, bias = part.scale is not None, getattr(part, "bias", None) is not None
    _demand_fresh(part, here)
    if isinstance(part, modules.GroupRMSNorm):
        return GroupNorm(part.group_size, centre=False, scale=scale, bias=bias), None
    _demand_plain(part, here)
    if isinstance(part, nnx.LayerNorm):
        return LayerNorm(part.epsilon, scale=scale, bias=bias), part.num_features
    if isinstance(part, nnx.RMSNorm):
        return RMSNorm(part.epsilon, scale=scale), part.num_features
    if part.num_groups == 1:  # one group, however wide: LayerNorm, which allows any epsilon
        return LayerNorm(part.epsilon, scale=scale, bias=bias), part.group_size
    features = part.num_groups * part.group_size
    try:
        return GroupNorm(part.group_size, part.epsilon, scale=scale, bias=bias), features
    except ArchitectureError as problem:
        raise ArchitectureError(kind, here, problem.reason, problem.remedy) from None


def _demand_plain(part: Any, here: str) -> None:
    """Over the features of one point, on one device."""
    axes = {"reduction_axes": (-1, (-1,), [-1], None), "feature_axes": (-1, (-1,), [-1])}
    fixed = {"axis_name": (None,), "axis_index_groups": (None,)}
    for name, allowed in (axes | fixed).items():
        value = getattr(part, name, None if name != "feature_axes" else -1)
        if value not in allowed:
            raise ArchitectureError(
                type(part).__name__,
                here,
                f"{name}={value!r} is not the normalisation over the features of one point",
                f"Leave {name} at its default",
            )


def _demand_fresh(part: Any, here: str) -> None:
    for name, start in (("scale", 1), ("bias", 0)):
        variable = getattr(part, name, None)
        if variable is not None and (np.asarray(variable[...]) != start).any():
            raise ArchitectureError(
                type(part).__name__,
                here,
                f"its {name} is not {start} everywhere, as it is at the start in an architecture",
                "Read the module before it is trained, with Flax's default initialisers",
            )
