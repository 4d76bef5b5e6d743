"""Flax's normalisations, and the twins' own, read as layers of an architecture."""

from __future__ import annotations

from typing import Any

import numpy as np
from flax import nnx

from lnkernel.arch import GroupNorm, LayerNorm, RMSNorm
from lnkernel.errors import ArchitectureError
from lnkernel.finite.modules import ExactNorm, GroupRMSNorm
from lnkernel.finite.reading.registry import Found, Reading, read, read_module
from lnkernel.finite.reading.shapes import axes_told


@read_module.register
def _(part: nnx.LayerNorm, reading: Reading) -> Found:
    over = part.reduction_axes
    if (
        isinstance(over, tuple | list)
        and sorted(over) == [*range(1, len(over) + 1)]
        and len(over) > 1
    ):
        _demand_fresh(part, reading.here)
        reading.check_width(part, part.num_features)
        axes_told.get([]).append(len(over) - 1)  # of the positions: the last one is of the channels
        return LayerNorm(part.epsilon, **_trained_parts(part), axes="all"), part.num_features
    _check(part, reading, part.num_features)
    return LayerNorm(part.epsilon, **_trained_parts(part)), part.num_features


@read_module.register
def _(part: nnx.RMSNorm, reading: Reading) -> Found:
    _check(part, reading, part.num_features)
    return RMSNorm(part.epsilon, scale=part.scale is not None), part.num_features


@read_module.register
def _(part: nnx.GroupNorm, reading: Reading) -> Found:
    features = part.num_groups * part.group_size
    _check(part, reading, features)
    if part.num_groups == 1:  # one group, however wide: LayerNorm, which allows any epsilon
        return LayerNorm(part.epsilon, **_trained_parts(part)), features
    try:
        return GroupNorm(part.group_size, part.epsilon, **_trained_parts(part)), features
    except ArchitectureError as problem:
        name = type(part).__name__
        raise ArchitectureError(name, reading.here, problem.reason, problem.remedy) from None


@read_module.register
def _(part: GroupRMSNorm, reading: Reading) -> Found:
    _demand_fresh(part, reading.here)
    return GroupNorm(part.group_size, centre=False, **_trained_parts(part)), reading.width


@read_module.register
def _(part: ExactNorm, reading: Reading) -> Found:
    return read(part.norm, reading)


def _trained_parts(part: Any) -> dict[str, Any]:
    """Whether the norm has a scale and a bias."""
    return {"scale": part.scale is not None, "bias": part.bias is not None}


def _check(part: Any, reading: Reading, features: int) -> None:
    _demand_fresh(part, reading.here)
    _demand_plain(part, reading.here)
    reading.check_width(part, features)


def _demand_plain(part: Any, here: str) -> None:
    """Refuse a norm that is not over the features of one point, on one device."""
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
