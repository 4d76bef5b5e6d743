"""`bound` and `sup_diagonal` with certify=True: the same numbers, proved, on the safe side."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.bounds.digits import at_least, at_most
from lnkernel.errors import DuplicateInputsError, NotATheoremWarning

ARCH = lnk.mlp(hidden=2, norm="first")
X = np.linspace(-5, 5, 100)[:, None]
Y = np.sin(X[:, 0])


@pytest.fixture(scope="module")
def plain() -> lnk.Bound:
    return lnk.bound(ARCH, X, Y)


@pytest.fixture(scope="module")
def certified() -> lnk.Bound:
    return lnk.bound(ARCH, X, Y, certify=True)


def test_says_so(certified: lnk.Bound) -> None:
    assert certified.certified and certified.is_theorem
    assert certified.certificate.verify()
    assert "Proved, rounding errors included" in str(certified)
    assert "at least 0.000159643" in str(certified)


def test_close_to_float64_and_on_the_safe_side(plain: lnk.Bound, certified: lnk.Bound) -> None:
    """The float64 numbers themselves are off by n ε λ_max/λ_min, about 1e-8."""
    for name in ("value", "rkhs", "sharp", "paper", "norms", "C"):
        assert getattr(certified, name) == pytest.approx(getattr(plain, name), rel=1e-6)
    assert certified.lambda_min <= plain.lambda_min + plain.lambda_error
    assert certified.value >= certified.certificate.sharp_upper
    assert certified.rkhs == certified.certificate.rkhs_upper


@pytest.mark.parametrize("s", ["paper", "norms", 20.0])
def test_every_form(s: str | float, plain: lnk.Bound) -> None:
    b = lnk.bound(ARCH, X, Y, s=s, certify=True)
    assert b.certified
    assert b.value == pytest.approx(lnk.bound(ARCH, X, Y, s=s).value, rel=1e-6)


def test_what_is_no_theorem_is_not_certified() -> None:
    with pytest.warns(NotATheoremWarning):
        b = lnk.bound(ARCH, X, Y, s=1.0, certify=True)
    assert not b.certified and not b.is_theorem


def test_duplicates() -> None:
    with pytest.raises(DuplicateInputsError):
        lnk.bound(ARCH, [[1.0], [1.0]], [0.0, 1.0], certify=True)


@pytest.mark.parametrize("norm", ["first", "last", None])
def test_sup_diagonal(norm: str | None) -> None:
    arch = lnk.mlp(hidden=2, norm=norm)
    plain, proved = lnk.sup_diagonal(arch), lnk.sup_diagonal(arch, certify=True)
    assert proved.certified and proved.enclosure is not None
    lower, upper = proved.enclosure
    assert proved.value == upper
    if norm is None:
        assert lower == upper == math.inf
    else:
        assert lower * (1 - 1e-14) <= plain.value <= upper * (1 + 1e-14)
        assert "proved" in str(proved)


@pytest.mark.parametrize("x", [1377.6526, 3.03, 0.1, 1e-300, 1e300, 123456.0, 0.0])
def test_digits_are_on_the_safe_side(x: float) -> None:
    assert float(at_least(x)) <= x <= float(at_most(x))
    assert float(at_most(x)) <= x * (1 + 1.1e-5)
