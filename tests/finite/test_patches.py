"""Convolutions as products with patches are JAX's own."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import lax

from lnkernel.finite.patches import convolve


@pytest.mark.parametrize("padding", ["SAME", "VALID", "explicit"])
@pytest.mark.parametrize(
    "shape, window, strides",
    [((7,), (3,), (2,)), ((5, 6), (3, 2), (1, 2)), ((3, 4, 3), (2, 1, 3), (1, 1, 2))],
)
def test_products_with_patches_are_convolutions(
    shape: tuple[int, ...], window: tuple[int, ...], strides: tuple[int, ...], padding: str
) -> None:
    draw, axes = np.random.default_rng(0), "HWD"[: len(shape)]
    x, kernel = draw.normal(size=(2, *shape, 3)), draw.normal(size=(*window, 3, 4))
    around = [(1, 2)] * len(shape) if padding == "explicit" else padding
    layout = f"N{axes}C", f"{axes}IO", f"N{axes}C"
    with jax.enable_x64(True):
        expected = lax.conv_general_dilated(x, kernel, strides, around, dimension_numbers=layout)
        made = convolve(x, kernel, strides, around)
    assert made.shape == expected.shape
    np.testing.assert_allclose(made, expected, rtol=1e-12, atol=1e-12)


def test_what_is_no_plain_convolution_is_jax_s() -> None:
    draw = np.random.default_rng(0)
    x, kernel = draw.normal(size=(1, 9, 2)), draw.normal(size=(3, 2, 4))
    layout = "NHC", "HIO", "NHC"
    with jax.enable_x64(True):
        expected = lax.conv_general_dilated(
            x, kernel, (1,), "SAME", rhs_dilation=(2,), dimension_numbers=layout
        )
        np.testing.assert_array_equal(
            convolve(x, kernel, (1,), "SAME", rhs_dilation=(2,)), expected
        )
