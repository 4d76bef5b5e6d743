"""The law of the loss: exact spectra, exact kernels of ours on a line, tables of exponents, fits."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.asymptotics import asymptote, constant, exponents, fit, loss
from lnkernel.errors import InputError, NoLawError

RELU = lnk.serial(lnk.Dense(8, b_std=1.0), lnk.Relu(), lnk.Dense(1, b_std=1.0))
NORM = lnk.serial(lnk.Dense(8, b_std=1.0), lnk.LayerNorm(), lnk.Relu(), lnk.Dense(1, b_std=1.0))
LATE = lnk.serial(lnk.Dense(8, b_std=1.0), lnk.Relu(), lnk.LayerNorm(), lnk.Dense(1, b_std=1.0))
N = 800


@cache
def spectrum(arch: lnk.Serial) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues of the kernel's operator on [-1, 1] with the uniform density, the largest first."""
    x = (np.arange(N) + 0.5) * 2 / N - 1
    values, vectors = np.linalg.eigh(lnk.ntk(arch)(x[:, None]) / N)
    return x, values[::-1], vectors[:, ::-1]


def test_table() -> None:
    for d in (1, 2, 3):
        law = exponents(RELU, d, "indicator")
        assert (law.nu, law.kappa, law.xi) == pytest.approx((1 + 1 / d, 1 / d, 1 / (d + 1)))
        assert exponents(RELU, d, "start").xi == pytest.approx(3 / (d + 1))
        assert exponents(RELU, d, 2.5).xi == pytest.approx(2.5 / (d + 1))
    square = lnk.mlp(activation=lnk.RectifiedPower(2), b_std=1.0)
    assert [exponents(square, d, "start").nu for d in (1, 2)] == [4.0, 2.5]
    assert exponents(square, 1, "start").kappa == 5.0


@pytest.mark.parametrize("arch", [RELU, NORM, LATE], ids=["plain", "norm before", "norm behind"])
def test_eigenvalues_on_a_line(arch: lnk.Serial) -> None:
    """ν and Λ of the exact kernel, with LayerNorm and without: ν does not change."""
    _, values, _ = spectrum(arch)
    n = np.arange(1, N + 1)
    some = slice(20, 60)
    nu = -np.polyfit(np.log(n[some]), np.log(values[some]), 1)[0]
    assert nu == pytest.approx(exponents(arch, 1, "start").nu, abs=0.06)
    measured = values[40] * (n[40] - 1.0) ** 2  # the first eigenvalues shift the count by about one
    assert measured == pytest.approx(constant(arch), rel=0.06)


def test_constant_in_closed_form() -> None:
    assert constant(RELU) == pytest.approx(2 / math.pi**3, rel=1e-9)  # c = 1/2π
    # a LayerNorm changes the constant, if not the exponent
    assert constant(NORM) != pytest.approx(constant(RELU), rel=0.05)


def test_indicator_on_a_line() -> None:
    x, values, vectors = spectrum(RELU)
    curve = loss(values, vectors.T @ (x > 0.2).astype(float) / math.sqrt(N))
    t = np.geomspace(1 / values[3], 1 / values[80], 100)
    assert fit(t, curve(t)).xi == pytest.approx(0.5, abs=0.06)


def test_power_law_spectra() -> None:
    n = np.arange(1, 200_001.0)
    nu, kappa = 2.0, 1.5
    curve = loss(n**-nu, np.sqrt(n**-kappa - (n + 1) ** -kappa))
    t = np.geomspace(1e3, 1e6, 60)
    np.testing.assert_allclose(curve(t), asymptote(t, nu, kappa, 1.0, 1.0), rtol=0.03)
    found = fit(t, curve(t))
    assert found.xi == pytest.approx(kappa / nu, abs=0.01) and found.chosen
    assert found.interval[0] < found.xi < found.interval[1]


def test_the_window_leaves_out_what_bends() -> None:
    t = np.geomspace(1, 1e6, 200)
    found = fit(t, t**-0.5 * np.exp(-t / 1e5) + 0.0)
    assert found.window[1] < 1e5 and found.slope_change < 0.05
    assert found.xi == pytest.approx(0.5, abs=0.02)
    with pytest.raises(InputError, match="at least 12 times inside, got 2"):
        fit(t, t**-0.5, window=(1.0, 1.1))


@pytest.mark.parametrize(
    ("arch", "target", "said"),
    [
        (lnk.mlp(activation=lnk.Tanh()), "start", "analytic"),
        (lnk.mlp(activation=lnk.Homogeneous(2, 1.0, 1.0)), "start", "no activation"),
        (lnk.serial(lnk.Dense(8), lnk.Sign(), lnk.Dense(1)), "indicator", "jumps"),
        (
            lnk.serial(lnk.Dense(8), lnk.Relu(), lnk.Dense(8), lnk.Tanh(), lnk.Dense(1)),
            "start",
            "different smoothness",
        ),
        (lnk.serial(lnk.Dense(8), lnk.GroupNorm(2), lnk.Dense(1)), "start", "jumps"),
        (RELU, 5.0, "smoother than the network's own start"),
    ],
)
def test_no_law(arch: lnk.Serial, target: str | float, said: str) -> None:
    with pytest.raises(NoLawError, match=said):
        exponents(arch, 1, target)


def test_reasons() -> None:
    assert "Norms between layers" in exponents(NORM, 1, "start").reason
    assert "set of directions" in exponents(lnk.mlp(b_std=0.0), 2, "start").reason
    assert "Norms" not in exponents(RELU, 1, "start").reason
    with pytest.raises(NoLawError, match="sign of x alone"):
        constant(lnk.serial(lnk.Dense(8), lnk.Relu(), lnk.Dense(1)))
    with pytest.raises(InputError, match="target"):
        exponents(RELU, 1, "smooth")


@pytest.mark.parametrize(("size", "nu"), [(4, 2.0), (6, 4.0)])
def test_norms_in_groups_bend_by_themselves(size: int, nu: float) -> None:
    """Without an activation: the exact kernel on a line has the exponent 1 + (g - 3)/d."""
    groups = lnk.serial(lnk.Dense(8, b_std=1.0), lnk.GroupNorm(size), lnk.Dense(1, b_std=1.0))
    law = exponents(groups, 1, "start")
    assert law.nu == nu and "groups is what bends" in law.reason
    _, values, _ = spectrum(groups)
    n = np.arange(1, N + 1)
    some = slice(30, 80)
    assert -np.polyfit(np.log(n[some]), np.log(values[some]), 1)[0] == pytest.approx(nu, rel=0.04)
    if nu == 2:
        assert values[40] * (n[40] - 1.0) ** 2 == pytest.approx(constant(groups), rel=0.06)


def test_a_bias_behind_the_first_layer_shows_the_length() -> None:
    """A kink behind a bias lies at some length, whatever the first layer is like."""
    late = lnk.serial(lnk.Dense(8), lnk.Relu(), lnk.Dense(8, b_std=1.0), lnk.Relu(), lnk.Dense(1))
    assert "directions" not in exponents(late, 1, "start").reason
    normed = lnk.serial(
        lnk.Dense(8), lnk.LayerNorm(), lnk.Dense(8, b_std=1.0), lnk.Relu(), lnk.Dense(1)
    )
    assert "directions" in exponents(normed, 2, "start").reason
    x = 0.1 + (np.arange(N) + 0.5) * 0.9 / N
    values = np.linalg.eigvalsh(lnk.ntk(late)(x[:, None]) / N)[::-1]
    measured = values[40] * 40.0**2
    assert measured == pytest.approx(constant(late, (0.1, 1.0)), rel=0.06)
    with pytest.raises(InputError, match="without 0"):
        constant(late)


def test_even_degrees_have_a_logarithm() -> None:
    assert "log|x - x'| has b = 2" in exponents(RELU, 1, 2.0).reason
    assert "log" not in exponents(RELU, 1, 1.0).reason


def test_what_is_refused() -> None:
    t = np.geomspace(1, 100, 50)
    with pytest.raises(InputError, match="float64 resolves"):
        constant(RELU, (1e6, 1e6 + 1))
    for ends in ((1.0,), None, (2.0, 1.0), "ab"):
        with pytest.raises(InputError, match="the lower first"):
            constant(RELU, ends)  # type: ignore[arg-type]
    for window in ((1.0,), (1.0, 2.0, 3.0), "ab"):
        with pytest.raises(InputError, match="the lower first"):
            fit(t, 1 / t, window)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="real numbers"):
        fit(t, 1j / t)
    with pytest.raises(InputError, match="eigenvalues, 0 or more"):
        loss([-1.0, 1.0], [1.0, 1.0])
    assert loss([-1e-17, 1.0], [1.0, 1.0])(1e20) == 0.5  # rounding of a 0, which stays
    with pytest.raises(InputError, match="at least one"):
        loss([], [])
    with pytest.raises(InputError, match="kappa"):
        asymptote(t, 2.0, -1.0, 1.0, 1.0)
    with pytest.raises(InputError, match="target"):
        exponents(RELU, 1, np.ones(2))  # type: ignore[arg-type]
