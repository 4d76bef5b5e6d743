r"""Gaussian expectations of $\phi(u) = a\,u_+^p + b\,(-u)_+^p$.

With $f_p(\rho) = E[u_+^p v_+^p]$ for unit Gaussians, $c_p = f_p(1) = 2^{p-1}\Gamma(p+\tfrac12)/\sqrt\pi$,
$F_p = f_p/c_p$ and $k = 2ab/(a^2+b^2)$:

    E[phi(u) phi(v)]   = (a^2+b^2) c_p (r1 r2)^p     [F_p(rho)     + k F_p(-rho)]
    E[phi'(u) phi'(v)] = (a^2+b^2) p^2 c_{p-1} (r1 r2)^{p-1} [F_{p-1}(rho) - k F_{p-1}(-rho)]

(Cho and Saul 2009 for integer p; the second line is Price's theorem.) In elementary
terms, $2\pi f_p$ is, with $t = \pi - \theta$: $t$ for $p=0$; $\sin\theta + t\cos\theta$ for $p=1$;
$3\sin\theta\cos\theta + t(1 + 2\cos^2\theta)$ for $p=2$.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from lnkernel.arch.homogeneous import PositivelyHomogeneous
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual, dual
from lnkernel.calculus.special import special
from lnkernel.calculus.state import Mean
from lnkernel.check.plain import known, known_zero


class Tails(NamedTuple):
    r"""The normalised expectation $F_p$ on both sides of the circle, $m = (1 - |\rho|)/2$.

    $F_p(\rho) = E[u_+^p v_+^p]/E[u_+^{2p}]$ for unit Gaussians of correlation $\rho$.
    """

    far: Number  # F_p(-|rho|), small as m -> 0
    gap: Number  # 1 - F_p(|rho|), small as m -> 0
    far_slope: Number  # F_{p-1}(-|rho|)
    near_slope: Number  # F_{p-1}(|rho|)


class Image(NamedTuple):
    """The angle behind an activation as (w, z, c), and the factor of the NTK, 1 at equal inputs."""

    w: Number
    z: Number
    c: Number
    slope: Number
    never_obtuse: bool


@special
def tails(num: Arithmetic, degree: float, m: Number) -> Tails:
    """the normalised expectations F_p and F_{p-1} at m = (1 - |rho|)/2."""
    raise NotImplementedError


@special
def moment(num: Arithmetic, degree: float) -> Number:
    r"""$c_p = E[u_+^{2p}] = 2^{p-1}\,\Gamma(p + 1/2)/\sqrt{\pi}$; $(2p-1)!!/2$ for integers, as a squared length."""
    raise NotImplementedError


@special
def half_share(num: Arithmetic, degree: float) -> Number:
    r"""$E[u_+^p]/\sqrt{E[u_+^{2p}]} = \Gamma(\frac{p+1}{2})/\sqrt{2\sqrt\pi\,\Gamma(p+\frac12)}$."""
    raise NotImplementedError


def integer_moment(degree: int) -> float:
    r"""$c_p = (2p-1)!!/2$ for integers, exactly."""
    return math.prod(range(1, 2 * degree, 2)) / 2


def growth(num: Arithmetic, degree: float) -> Number:
    r"""$p^2 c_{p-1}/c_p = p^2/(2p-1)$: what one activation makes of Θ/K on the diagonal."""
    p = num.real(degree)
    return p * p / (2 * p - 1)


def size(num: Arithmetic, layer: PositivelyHomogeneous, degree: float) -> Number:
    r"""$(a^2+b^2)\,c_p$, as a squared length."""
    sides = [num.squared(side) for side in (layer.a, layer.b) if not known_zero(side)]
    return moment(num, degree) * sum(sides[1:], sides[0])


def mean_share(num: Arithmetic, layer: PositivelyHomogeneous) -> Number:
    r"""$E\phi/\sqrt{E\phi^2}$, the same for every input; squared it is
    $\frac{(a+b)^2}{a^2+b^2}\,\frac{\Gamma((p+1)/2)^2}{2\sqrt\pi\,\Gamma(p+1/2)}$ ($1/\pi$ for ReLU).
    """
    a, b = layer.a, layer.b
    return (a + b) * half_share(num, layer.degree) / num.sqrt(a * a + b * b)


def image(num: Arithmetic, layer: PositivelyHomogeneous, cov: Covariance) -> Image:
    r"""The angle behind the activation: $\rho' = F_p(\rho) + k F_p(-\rho)$.

    Each of $w' = (1-\rho')/2$, $z' = (1+\rho')/2$ and $\rho'$ is written, for acute and for
    obtuse angles, in the form in which nothing cancels.
    """
    a, b, acute = layer.a, layer.b, cov.acute
    far, gap, far_slope, near_slope = tails(num, layer.degree, num.where(acute, cov.w, cov.z))
    if known_zero(a) or known_zero(b):
        w2 = num.where(acute, gap, 1 - far)
        c = num.where(acute, 1 - gap, far)
        return Image(0.5 * w2, 1 - 0.5 * w2, c, num.where(acute, near_slope, far_slope), True)
    k = 2 * a * b / (a * a + b * b)
    w2 = num.where(acute, gap - k * far, (1 - k) + k * gap - far)
    z2 = num.where(acute, 2 - gap + k * far, (1 + k) - k * gap + far)
    c = num.where(acute, 1 - gap + k * far, far + k * (1 - gap))
    slope = num.where(acute, near_slope - k * far_slope, far_slope - k * near_slope)
    return Image(0.5 * w2, 0.5 * z2, c, slope, never_obtuse=known(k) and k >= 0)


@dual.register(PositivelyHomogeneous)
def _(layer: PositivelyHomogeneous, cov: Covariance, num: Arithmetic) -> Dual:
    r"""$u\phi'(u) = p\,\phi(u)$, so that $E[u\phi' v\phi'] = p^2 K'$."""
    p = layer.degree
    angle = image(num, layer, cov)
    area = size(num, layer, p)
    first, second = cov.each(lambda length: Length(area * num.power(length.q, p), length.live))
    e = cov.e
    if not (e is None or known_zero(e)):
        e = num.powered_difference(e, p, first.q, second.q)
    square = num.real(p) * num.real(p)
    share = mean_share(num, layer)
    return Dual(
        total=Covariance(first, second, angle.w, angle.z, angle.c, e, angle.never_obtuse),
        mean=Mean(share, share, e),
        slope=angle.slope,
        euler=square * angle.c,
        gain=growth(num, p),
        derivative=lambda: (square, angle.slope, _lengths(num, layer, cov)),
    )


def _lengths(num: Arithmetic, layer: PositivelyHomogeneous, cov: Covariance) -> Number:
    r"""$(a^2+b^2)\,c_{p-1}\,(r_1 r_2)^{p-1}$, what $E\,\phi'\phi'$ owes to the lengths."""
    area = size(num, layer, layer.degree - 1)
    sides = cov.each(lambda length: num.sqrt(area * num.power(length.q, layer.degree - 1)))
    return math.prod(sides)
