"""`kernel_fn`: that of the architecture, asked for in neural-tangents' ways.

The ideas are those of neural-tangents' own tests (tests/stax/ of its repository: composition,
`diagonal_batch`, `get`, equal and different inputs, the family of ABRelu), written anew. Where theirs
compare to a few digits, these compare to nearly all. Zero inputs and derivatives, which theirs have
too, are in tests/gram/test_laws.py and test_derivatives.py.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel import stax

RNG = np.random.default_rng(0)
X1, X2 = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 3))
BLOCK = stax.serial(stax.Dense(8, 1.5, 0.1), stax.LayerNorm(), stax.Relu())
NET = stax.serial(BLOCK, stax.Dense(2, 1.2, 0.1))


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("x2", [X2, None], ids=["x1, x2", "x1"])
def test_it_is_the_kernel_of_the_architecture(x2: Any) -> None:
    for get, kernel in (("ntk", lnk.ntk), ("NNGP", lnk.nngp)):
        found = NET.kernel_fn(X1, x2, get)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, kernel(NET.arch)(X1, x2))


@pytest.mark.parametrize("get", [("ntk", "nngp"), ("nngp", "ntk"), ("ntk",), ("cov1", "ntk")])
def test_fields_come_in_the_order_asked_for(get: tuple[str, ...]) -> None:
    found = NET.kernel_fn(X1, X2, get)
    assert type(found).__name__ == "AnalyticKernel" and found._fields == get
    for name in get:
        close(getattr(found, name), NET.kernel_fn(X1, X2, name))


def test_without_get_there_is_everything() -> None:
    kernel = NET.kernel_fn(X1, X2)
    both = lnk.kernels(NET.arch)(X1, X2)
    close(kernel.nngp, both.nngp)
    close(kernel.ntk, both.ntk)
    assert kernel.ntk is kernel.ntk  # computed once
    assert NET.kernel_fn(X1).cov2 is None


def test_covariances_are_diagonals_unless_they_are_matrices() -> None:
    nngp = lnk.nngp(NET.arch)
    short, full = NET.kernel_fn(X1, X2), NET.kernel_fn(X1, X2, diagonal_batch=False)
    close(short.cov1, nngp.diagonal(X1))
    close(short.cov2, nngp.diagonal(X2))
    close(full.cov1, nngp(X1))
    close(full.cov2, nngp(X2))
    close(NET.kernel_fn(X1, None, "nngp", diagonal_batch=False), nngp(X1))


def test_kernels_compose() -> None:
    twice = stax.serial(BLOCK, BLOCK)
    kernel = BLOCK.kernel_fn(BLOCK.kernel_fn(X1, X2))
    assert kernel.stack.arch == twice.arch and kernel.x1 is X1 and kernel.x2 is X2
    last = stax.Dense(2, 1.2, 0.1)
    found = last.kernel_fn(BLOCK.kernel_fn(X1, X2), get="ntk")
    np.testing.assert_array_equal(found, NET.kernel_fn(X1, X2, "ntk"))


def test_an_activation_has_no_kernel_of_points_but_of_kernels() -> None:
    on_top = stax.serial(stax.Relu(), stax.Dense(2, 1.2, 0.1)).kernel_fn(
        stax.serial(stax.Dense(8, 1.5, 0.1), stax.LayerNorm()).kernel_fn(X1, X2)
    )
    np.testing.assert_array_equal(on_top.ntk, NET.kernel_fn(X1, X2, "ntk"))
    with pytest.raises(lnk.errors.ArchitectureError, match="acts on the raw input"):
        stax.Relu().kernel_fn(X1, X2, "nngp")


def test_equal_inputs_and_their_order() -> None:
    order = np.array([2, 0, 3, 1])
    gram = NET.kernel_fn(X1, None, "ntk")
    close(NET.kernel_fn(X1, X1.copy(), "ntk"), gram)
    close(NET.kernel_fn(X1[order], None, "ntk"), gram[np.ix_(order, order)])
    close(NET.kernel_fn(X1[order], X2, "ntk"), NET.kernel_fn(X1, X2, "ntk")[order])
    close(NET.kernel_fn(X2, X1, "ntk"), NET.kernel_fn(X1, X2, "ntk").T)


def test_it_can_be_compiled() -> None:
    with jax.enable_x64(True):
        both = jax.jit(NET.kernel_fn, static_argnums=2)(X1, X2, ("ntk", "nngp"))
    assert both._fields == ("ntk", "nngp")
    assert [(field.shape, field.dtype.name) for field in both] == 2 * [((4, 3), "float64")]
    for name in both._fields:
        close(getattr(both, name), NET.kernel_fn(X1, X2, name))


@pytest.mark.parametrize(
    ("general", "special", "factor"),
    [
        (stax.ABRelu(0, 1), stax.Relu(), 1.0),
        (stax.ABRelu(0.2, 1), stax.LeakyRelu(0.2), 1.0),
        (stax.ABRelu(-1, 1, do_stabilize=True), stax.Abs(), 1.0),
        (stax.ABRelu(-0.5, -0.5), stax.Identity(), -0.5),
        (stax.RectifiedMonomial(1), stax.Relu(), 1.0),
        (stax.Monomial(1), stax.Identity(), 1.0),
    ],
    ids=["relu", "leaky", "abs", "identity", "rectified", "monomial"],
)
def test_one_family(general: stax.Layer, special: stax.Layer, factor: float) -> None:
    """Of the same parameters the same outputs. Of kernels, tests/gram/test_laws.py shows it."""
    one, other = (stax.serial(stax.Dense(8, 1.3, 0.2), layer) for layer in (general, special))
    _, params = one.init_fn(jax.random.key(0), X1.shape)
    found, expected = one.apply_fn(params, X1), other.apply_fn(params, X1)
    np.testing.assert_allclose(found, factor * expected, rtol=1e-6)
    assert (np.asarray(found) != 0).any()


def test_standard_parametrisation_has_the_same_nngp_kernel_and_no_ntk() -> None:
    options: dict[str, Any] = {"b_std": 0.1, "parameterization": "standard"}
    ends = stax.Dense(8, 1.5, **options), stax.Dense(2, 1.2, **options)
    net = stax.serial(ends[0], stax.LayerNorm(), stax.Relu(), ends[1])
    np.testing.assert_array_equal(net.kernel_fn(X1, X2).nngp, NET.kernel_fn(X1, X2, "nngp"))
    for get in ("ntk", ("nngp", "ntk")):
        with pytest.raises(lnk.errors.ArchitectureError, match="grows with the width n"):
            net.kernel_fn(X1, X2, get)
    with pytest.raises(lnk.errors.ArchitectureError, match='parameterization="ntk"'):
        _ = net.kernel_fn(X1, X2).ntk


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((X1, X2, "cov3"), {}, "get: expected one or several different names of nngp, ntk, cov1"),
        ((X1, X2, ()), {}, "get: expected"),
        ((X1, X2, ("ntk", "NTK")), {}, "get: expected"),
        ((X1, X2), {"mask_constant": 0.0}, "mask_constant: expected None, because"),
        ((X1, X2), {"pattern": (X1, X2)}, "pattern: expected None, because"),
        ((NET.kernel_fn(X1), X2), {}, "x2: expected None behind a Kernel"),
        ((X1[0], None, "ntk"), {}, "x: expected a 2-D array"),
    ],
    ids=["field", "none", "twice", "mask", "pattern", "two sets", "shape"],
)
def test_refused(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(lnk.errors.InputError, match=message):
        NET.kernel_fn(*arguments, **options)
