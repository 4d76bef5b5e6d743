"""Convolutions as products with all patches.

Inside a loop of a compiled program, as training is, XLA's own convolution is ten to twenty times as slow on a CPU, and
slower still with an axis of networks or of derivatives. It stays what a GPU takes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float


def convolve(
    x: Float[Array, "n *positions inputs"],
    kernel: Float[Array, "*filter inputs outputs"],
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    *,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    **options: Any,
) -> Float[Array, "n *places outputs"]:
    """`jax.lax.conv_general_dilated` with channels last, as `flax.nnx.Conv` calls it.

    >>> x, kernel = jnp.arange(5.0)[None, :, None], jnp.ones((3, 1, 1))
    >>> convolve(x, kernel, (2,), "SAME").ravel().tolist()
    [1.0, 6.0, 7.0]
    """
    dilated = any(set(each or (1,)) != {1} for each in (lhs_dilation, rhs_dilation))
    if dilated or feature_group_count != 1 or jax.default_backend() != "cpu":
        axes = "HWD"[: x.ndim - 2]
        return lax.conv_general_dilated(
            x,
            kernel,
            strides,
            padding,
            lhs_dilation=lhs_dilation,
            rhs_dilation=rhs_dilation,
            dimension_numbers=dimension_numbers or (f"N{axes}C", f"{axes}IO", f"N{axes}C"),
            feature_group_count=feature_group_count,
            **options,
        )
    shape, window = x.shape[1:-1], kernel.shape[:-2]
    around = (
        lax.padtype_to_pads(shape, window, strides, padding)
        if isinstance(padding, str)
        else padding
    )
    patches = patches_of(x, window, strides, around)
    return jnp.matmul(
        patches, kernel.reshape(-1, kernel.shape[-1]), precision=options.get("precision")
    )


def patches_of(
    x: Float[Array, "n *positions inputs"],
    window: Sequence[int],
    strides: Sequence[int],
    around: Sequence[tuple[int, int]],
) -> Float[Array, "n *places patch"]:
    """What the window reads at each of its steps, side by side, with so many zeros around the positions.

    >>> patches_of(jnp.arange(4.0)[None, :, None], (2,), (2,), [(0, 0)])[0].tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    """
    wide = jnp.pad(x, ((0, 0), *around, (0, 0)))
    steps = [
        (length - size) // stride + 1
        for length, size, stride in zip(wide.shape[1:-1], window, strides, strict=True)
    ]
    places = [
        wide[(slice(None), *_starts(place, steps, strides))]
        for place in itertools.product(*map(range, window))
    ]
    return jnp.concatenate(places, axis=-1) if len(places) > 1 else places[0]


def _starts(place: Sequence[int], steps: Sequence[int], strides: Sequence[int]) -> list[slice]:
    """Where the filter's place meets the image, along each axis."""
    return [
        slice(at, at + (count - 1) * stride + 1, stride)
        for at, count, stride in zip(place, steps, strides, strict=True)
    ]
