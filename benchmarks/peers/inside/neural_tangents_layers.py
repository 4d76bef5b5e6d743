"""The networks of neural-tangents, from their neutral description (`../description.py`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
from neural_tangents import stax

# By Gauss-Hermite quadrature, of the lowest degree whose Θ is right to 1e-6, two layers deep behind a LayerNorm.
NUMERICAL = {"Tanh": (jax.numpy.tanh, 52), "Silu": (jax.nn.silu, 16)}


def layout(window: list[int]) -> tuple[str, str, str]:
    """Channels come last, in every number of dimensions."""
    axes = "HWD"[: len(window)]
    return f"N{axes}C", f"{axes}IO", f"N{axes}C"


def layer(description: dict[str, Any]) -> Any:
    """One layer."""
    given = dict(description)
    kind = given.pop("layer")
    if kind == "Dense":
        bias = given.get("b_std", 0.0)
        return stax.Dense(given["width"], given.get("W_std", 1.0), bias if bias != 0 else None)
    if kind == "Parallel":
        branches = [serial(branch) for branch in given["branches"]]
        return stax.serial(stax.FanOut(len(branches)), stax.parallel(*branches), stax.FanInSum())
    if kind == "LeakyRelu":
        return stax.LeakyRelu(given["slope"])
    if kind == "RectifiedPower":
        return stax.RectifiedMonomial(given["degree"])
    if kind == "Conv":
        bias = given["b_std"] if given["b_std"] != 0 else None
        shape = given["channels"], tuple(given["filter"]), tuple(given["strides"])
        return stax.Conv(
            *shape,
            given["padding"],
            given["W_std"],
            bias,
            dimension_numbers=layout(given["filter"]),
        )
    if kind in ("AvgPool", "SumPool"):
        return getattr(stax, kind)(
            tuple(given["window"]), tuple(given["strides"]), given["padding"]
        )
    if kind == "LayerNorm" and given.pop("axes", None) == "all":
        return stax.LayerNorm(axis=(1, 2, 3), **given)  # of images
    if kind in ("GlobalAvgPool", "Flatten"):
        return getattr(stax, kind)()
    if kind in NUMERICAL:
        return stax.ElementwiseNumerical(*NUMERICAL[kind])
    if kind in ("LayerNorm", "Relu", "Abs", "Identity", "Erf", "Gelu"):
        return getattr(stax, kind)(**given)
    raise ValueError(f"unknown layer {kind!r}")


def serial(layers: Iterable[dict[str, Any]]) -> Any:
    """Layers one after the other."""
    return stax.serial(*map(layer, layers))
