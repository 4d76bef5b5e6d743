"""Special functions of closed pairs: Mills' ratio and what comes of it, and corners at small angles, by 30 digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from lnkernel.evaluate.float64.exponential_pairs import (
    first_integral,
    mills_slope,
    third_integral,
)
from lnkernel.evaluate.float64.orthants import Corner, moments_at_all_angles


@pytest.mark.parametrize("c", [0.0, 1e-6, 0.3, 1.0, 4.0, 12.0, 24.0])
def test_integrals_over_the_radius(c: float) -> None:
    """I1 and I3 by quadrature, and D = (m(0) - m(c))/c, of which m is Mills' ratio."""
    with mp.workdps(40):

        def integral(power: int) -> mpf:
            return mpmath.quad(
                lambda r: r**power * mpmath.exp(-r * r / 2 - mpf(c) * r), [0, 1, 3, 15]
            )

        # m(0) - m(c) = ∫ exp(-r²/2)(1 - exp(-cr)) dr
        slope = mpmath.quad(
            lambda r: mpmath.exp(-r * r / 2) * (-mpmath.expm1(-mpf(c) * r) / c if c else r),
            [0, 1, 3, 15],
        )
        assert abs(mills_slope(c) / slope - 1) < 2e-15
        assert abs(first_integral(c) / integral(1) - 1) < 2e-15
        # what THIRD leaves is small beside the largest value, and not beside its own
        assert abs(third_integral(c) - integral(3)) < 1e-15


@pytest.mark.parametrize("m", [1e-8, 1e-3, 0.3])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("h", "k"), [(0.7, 0.7), (0.0, 1.0), (1.0, 0.4)])
def test_corners_at_all_angles(m: float, sign: float, h: float, k: float) -> None:
    """Given x, y is Gaussian: one integral over x for each moment."""
    (found,) = moments_at_all_angles(np.array([m]), np.array([1 - m]), [Corner(h, k, sign)])
    with mp.workdps(30):
        rho = sign * (1 - 2 * mpf(m))
        s = 2 * mpmath.sqrt(mpf(m) * (1 - mpf(m)))
        edge = k / rho  # where y crosses k
        near = [edge + t * s for t in (-12, -4, -1, 0, 1, 4, 12) if edge + t * s > h]
        places = sorted({mpf(h), *near, mpf(h) + 1, mpf(h) + 4, mpf(14)})

        def above(x: mpf) -> tuple[mpf, mpf]:
            """P(y > k) and E y 1(y > k)."""
            t = (k - rho * x) / s
            tail = mpmath.ncdf(-t)
            return tail, rho * x * tail + s * mpmath.npdf(t)

        one = mpmath.quad(lambda x: mpmath.npdf(x) * above(x)[0], places)
        product = mpmath.quad(lambda x: mpmath.npdf(x) * x * above(x)[1], places)
        ramps = mpmath.quad(
            lambda x: mpmath.npdf(x) * (x - h) * (above(x)[1] - k * above(x)[0]), places
        )
    for made, right in ((found.one, one), (found.product, product), (found.ramps, ramps)):
        assert abs(made[0] - right) < 2e-15
