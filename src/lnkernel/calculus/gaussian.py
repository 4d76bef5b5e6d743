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

from lnkernel.arch.activations import Activation
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.covariance import Covariance
from lnkernel.check import known, known_zero


class Image(NamedTuple):
    """The angle behind an activation as (w, z, c), and the factor of the NTK."""

    w: Number
    z: Number
    c: Number
    slope: Number
    never_obtuse: bool


def moment(degree: float) -> float:
    r"""$c_p = E[u_+^{2p}] = 2^{p-1}\,\Gamma(p + 1/2)/\sqrt{\pi}$ in float64; exact for integers."""
    if float(degree).is_integer() and degree >= 0:
        return math.prod(range(1, 2 * int(degree), 2)) / 2
    return 2 ** (degree - 1) * math.gamma(degree + 0.5) / math.sqrt(math.pi)


def growth(num: Arithmetic, degree: float) -> Number:
    r"""$p^2 c_{p-1}/c_p = p^2/(2p-1)$: what one activation makes of Θ/K on the diagonal."""
    p = num.real(degree)
    return p * p / (2 * p - 1)


def size(num: Arithmetic, layer: Activation, degree: float) -> Number:
    r"""$(a^2+b^2)\,c_p$, as a squared length."""
    sides = [num.squared(side) for side in (layer.a, layer.b) if not known_zero(side)]
    return num.moment(degree) * sum(sides[1:], sides[0])


def mean_share(num: Arithmetic, layer: Activation) -> Number:
    r"""$E\phi/\sqrt{E\phi^2}$, the same for every input; squared it is
    $\frac{(a+b)^2}{a^2+b^2}\,\frac{\Gamma((p+1)/2)^2}{2\sqrt\pi\,\Gamma(p+1/2)}$ ($1/\pi$ for ReLU).
    """
    a, b = layer.a, layer.b
    return (a + b) * num.mean_share(layer.degree) / num.sqrt(a * a + b * b)


def image(num: Arithmetic, layer: Activation, cov: Covariance) -> Image:
    r"""The angle behind the activation: $\rho' = F_p(\rho) + k F_p(-\rho)$.

    Each of $w' = (1-\rho')/2$, $z' = (1+\rho')/2$ and $\rho'$ is written, for acute and for
    obtuse angles, in the form in which nothing cancels.
    """
    a, b, acute = layer.a, layer.b, cov.acute
    far, gap, far_slope, near_slope = num.tails(layer.degree, num.where(acute, cov.w, cov.z))
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
