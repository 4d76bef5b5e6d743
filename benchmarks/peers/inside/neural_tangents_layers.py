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
    if kind == "Attention":
        return attention(given)
    if kind in NUMERICAL:
        return stax.ElementwiseNumerical(*NUMERICAL[kind])
    if kind in ("LayerNorm", "Relu", "Abs", "Identity", "Erf", "Gelu"):
        return getattr(stax, kind)(**given)
    raise ValueError(f"unknown layer {kind!r}")


def attention(given: dict[str, Any], before: dict[str, Any] | None = None) -> Any:
    """Attention, with the embedding for queries and keys, or with one before it, which is for values too."""
    embedding = given["embedding"] or before
    options: dict[str, Any] = {}
    if embedding is not None:
        options = {"pos_emb_type": "SUM", "W_pos_emb_std": embedding["std"]}
        options |= {"pos_emb_p_norm": embedding["norm"], "val_pos_emb": before is not None}
        if embedding["decay"] is not None:
            scale = embedding["decay"] ** embedding["norm"]
            options["pos_emb_decay_fn"] = lambda distance: jax.numpy.exp(-distance / scale)
    channels, heads = given["channels"], given["heads"]
    return stax.GlobalSelfAttention(
        *(channels, channels // heads, channels // heads, heads),
        linear_scaling=given["scaling"] == "linear",
        W_key_std=given["QK_std"],
        W_out_std=given["OV_std"],
        b_std=given["b_std"] if given["b_std"] != 0 else None,
        attention_mechanism=given["weights"].upper(),
        **options,
    )


def serial(layers: Iterable[dict[str, Any]]) -> Any:
    """Layers one after the other."""
    made: list[Any] = []
    embedding = None
    for description in layers:
        if description["layer"] == "PositionalEmbedding":
            embedding = description
        elif embedding is not None:
            made.append(attention(description, embedding))
            embedding = None
        else:
            made.append(layer(description))
    return stax.serial(*made)
