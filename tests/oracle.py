r"""The kernels of one pair of inputs to 50 digits, straight from their definition.

The oracle shares nothing with the library: it reads the fields of the architecture, tells the
layers apart by the names of their classes, and uses the textbook formulas (means, covariances,
the correlation $\rho$) with so many digits that their cancellations do not matter.

    kernels(arch, x, x2)             # (K, Theta), two mpf
    pair(arch, x, x2).Theta_scale    # sqrt(Theta(x,x) Theta(x2,x2)), to measure errors by

Notation: u, v are the values of one feature at x and at x2; phi(u) = a u_+^p + b (-u)_+^p.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import closed_oracle as closed
import conditional_oracle as conditional
import flint
import kinked_oracle as kinked
import long_oracle
import mpmath
import smooth_oracle as smooth
from mpmath import mp, mpf

ACTIVATIONS = frozenset({"Relu", "Abs", "LeakyRelu", "RectifiedPower", "Homogeneous"})
SHORT = 5.0  # lengths up to which activations without a closed form have 40 digits
# functions of one's own that are known here under another name
OWN = {
    "tanh": type("Tanh", (), {})(),
    "erf": type("Erf", (), {})(),
    "gelu": type("Gelu", (), {"approximate": True})(),  # jax.nn.gelu, unless it is told otherwise
}


class Pair(NamedTuple):
    """Both kernels of a pair, and those of its two diagonal entries."""

    K: mpf
    Theta: mpf
    K11: mpf
    K22: mpf
    Theta11: mpf
    Theta22: mpf

    @property
    def K_scale(self) -> mpf:
        """sqrt(K(x,x) K(x2,x2)), the largest |K(x,x2)| that Cauchy and Schwarz allow.

        To the precision of the caller's mp, as is all arithmetic on the numbers returned.
        """
        return mpmath.sqrt(self.K11 * self.K22)

    @property
    def Theta_scale(self) -> mpf:
        """sqrt(Theta(x,x) Theta(x2,x2))."""
        return mpmath.sqrt(self.Theta11 * self.Theta22)


def kernels(arch: Any, x: Any, x2: Any, dps: int = 50) -> tuple[mpf, mpf]:
    """K(x, x2) and Theta(x, x2), right to `dps` digits of sqrt(K(x,x) K(x2,x2)), and so Theta.

    x and x2 are vectors of floats; every float, of the data or of a layer, is taken as the
    exact binary number that it is. Activations without a closed form have 40 digits, and 18 where
    they are analytic and the vectors before them longer than SHORT. Where a function jumps there
    is no Theta, and the second number says nothing.
    """
    moments = Moments.of(x, x2)
    digits, guard = precision(arch, moments, dps)
    with mp.workdps(digits):
        end = flow(arch, raw_input(moments, noise=mpf(10) ** (guard - digits)))
        return end.k, end.mean_theta


def pair(arch: Any, x: Any, x2: Any, dps: int = 50) -> Pair:
    """`kernels` of (x, x2), (x, x) and (x2, x2)."""
    K, Theta = kernels(arch, x, x2, dps)
    K11, Theta11 = kernels(arch, x, x, dps)
    K22, Theta22 = kernels(arch, x2, x2, dps)
    return Pair(K, Theta, K11, K22, Theta11, Theta22)


# ---------------------------------------------------------------- the data, exactly


class Moments(NamedTuple):
    """Means, variances and covariance of the features of two vectors, as exact fractions."""

    mean1: Fraction
    mean2: Fraction
    var1: Fraction
    var2: Fraction
    cov: Fraction

    @staticmethod
    def of(x: Any, x2: Any) -> Moments:
        """Exact, so that a constant vector has variance 0 and not almost 0."""
        (u, unit1), (v, unit2) = as_integers(x), as_integers(x2)
        if len(u) != len(v) or not u:
            raise ValueError(f"expected two vectors of one length, got {len(u)} and {len(v)}")
        d = len(u)

        def covariance(s: list[int], t: list[int], unit: int) -> Fraction:
            products = sum(i * j for i, j in zip(s, t, strict=True))
            return Fraction(d * products - sum(s) * sum(t), d * d * unit)

        return Moments(
            Fraction(sum(u), d * unit1),
            Fraction(sum(v), d * unit2),
            covariance(u, u, unit1 * unit1),
            covariance(v, v, unit2 * unit2),
            covariance(u, v, unit1 * unit2),
        )


def as_integers(x: Any) -> tuple[list[int], int]:
    """Integers n_i and a unit with x_i = n_i / unit."""
    ratios = [float(t).as_integer_ratio() for t in x]
    unit = math.lcm(*(den for _, den in ratios))
    return [num * (unit // den) for num, den in ratios], unit


def exact(number: Any) -> mpf:
    """A float as it is, a fraction to the working precision."""
    if isinstance(number, Fraction):
        return mpf(number.numerator) / number.denominator
    return mpf(float(number))


# ---------------------------------------------------------------- how many digits


def precision(arch: Any, moments: Moments, dps: int) -> tuple[int, int]:
    r"""The working digits, and how many of them rounding may spoil.

    A gap $1 - |\rho|$ that is really 0 comes out as noise. The derivative's moment has a term
    gap^alpha with alpha = p - 1/2 (see `exponent`), so noise^alpha must be below 10^-dps; as
    alpha -> 0 that is out of reach, but it is also enough to resolve the smallest gap that
    floats can produce. Below the noise rho is then +-1 (`State.rho`).
    """
    layers = list(leaves(arch))
    guard = 20 + 0.3 * len(layers) + sum(math.log10(amplification(t)) for t in layers)
    if any(closed.has_form(t) or is_polynomial(t) for t in map(known, layers)):
        guard += 2 * spread(layers, moments)  # of q² beside 1, in a difference
    # groups of directions +-1 turn a gap into its square root, and so the noise of what follows
    alpha = min([1.0, *(exponent(t) for t in layers)]) / 2 ** sum(is_sign(t) for t in layers)
    resolved = min((dps + 10) / alpha, dps + 10 + smallest_gap(layers, moments))
    return int(guard + resolved) + 1, int(guard) + 1


def exponent(layer: Any) -> float:
    """The alpha of `precision`: how smooth a layer's Theta is at identical inputs."""
    if is_activation(layer):
        return float(layer.degree) - 0.5
    if named(layer, "GroupNorm") and not is_sign(layer):
        return degrees_of_freedom(layer) / 2 - 1
    return 1.0


def amplification(layer: Any) -> float:
    """By how much an activation, with the centring that may follow it, stretches errors."""
    if not is_activation(layer):
        return 1.0
    p, a, b = float(layer.degree), float(layer.a), float(layer.b)
    symmetric = math.gamma((p + 1) / 2) ** 2 / (2 * math.sqrt(math.pi) * math.gamma(p + 0.5))
    centred = 1 - (a + b) ** 2 / (a * a + b * b) * symmetric  # var phi / E phi^2
    return max(1, p) * max(1, p * p / (2 * p - 1)) / centred


def smallest_gap(layers: list[Any], moments: Moments) -> float:
    """-log10 of a gap 1 - |rho| that no pair but a collinear one goes below (generous).

    Floats of like size leave 1e-64 or nothing; a bias or an eps that is large or small against
    q makes it smaller, by about their ratio squared; a power p > 1 magnifies the ratios.
    """
    return 100 + 4 * spread(layers, moments)


def spread(layers: list[Any], moments: Moments) -> float:
    """log10 of the largest ratio of lengths, of biases and of an eps (generous)."""
    m1, m2, v1, v2, _ = moments
    data = [v1, v2, v1 + m1**2, v2 + m2**2]
    squares = [float(getattr(t, f, 0)) ** 2 for t in layers for f in ("W_std", "b_std")]
    offsets = [float(getattr(t, "eps", 0)) for t in layers]
    powers = math.prod(max(1.0, degree(t)) for t in layers)
    return powers * (max(map(magnitude, data)) + sum(map(magnitude, squares + offsets)))


def degree(layer: Any) -> float:
    """The power of the length that an activation grows with."""
    return float(getattr(layer, "degree", len(getattr(layer, "coefficients", (0, 0))) - 1))


def magnitude(number: Any) -> float:
    """|log10|, and 0 for 0."""
    return abs(float(mpmath.log10(exact(number)))) if number else 0.0


# ---------------------------------------------------------------- the state of a pair


@dataclass(frozen=True)
class State:
    """What is known of a feature (u, v) and of the NTK, after some layers.

    The NTK of the features is theta + gamma u_i v_i: the second part comes from a trainable
    scale and differs from feature to feature. `gaussian`: (u, v) is Gaussian, hence centred.
    """

    mean1: mpf
    mean2: mpf
    var1: mpf
    var2: mpf
    cov: mpf
    theta: mpf
    gamma: int
    gaussian: bool
    noise: mpf

    @property
    def q1(self) -> mpf:
        """E u^2."""
        return self.var1 + self.mean1**2

    @property
    def q2(self) -> mpf:
        """E v^2."""
        return self.var2 + self.mean2**2

    @property
    def k(self) -> mpf:
        """E u v."""
        return self.cov + self.mean1 * self.mean2

    @property
    def mean_theta(self) -> mpf:
        """The NTK averaged over the features, which is all that a sum over them sees."""
        return self.theta + self.gamma * self.k

    @property
    def rho(self) -> mpf:
        """E uv / sqrt(E u^2 E v^2). Zero inputs: 1 if both are (they are equal), 0 if one is."""
        if not (self.q1 and self.q2):
            return mpf(self.q1 == self.q2)
        rho = self.k / mpmath.sqrt(self.q1 * self.q2)
        return mpmath.sign(rho) if abs(rho) > 1 - self.noise else rho


def raw_input(moments: Moments, noise: mpf) -> State:
    """The features are the entries of the vectors: K = x.x2/d, nothing is trained yet."""
    mean1, mean2, var1, var2, cov = map(exact, moments)
    return State(mean1, mean2, var1, var2, cov, mpf(0), 0, False, noise)


# ---------------------------------------------------------------- one rule per layer


def flow(layer: Any, s: State) -> State:
    """The state after a layer or a composition of layers."""
    name = type(layer).__name__
    if name in ACTIVATIONS or type(known(layer)).__name__ in OTHERS:
        return activation(layer, s)
    if name not in RULES:
        raise TypeError(f"the oracle has no rule for {name}")
    return RULES[name](layer, s)


def identity(_: Any, s: State) -> State:
    """u -> u."""
    return s


def scale(layer: Any, s: State) -> State:
    """u -> factor u."""
    factor = exact(layer.factor)
    return scaled(s, factor, factor)


def shift(layer: Any, s: State) -> State:
    """u -> u + offset, which is not Gaussian with mean 0 any more."""
    c = exact(layer.offset)
    return replace(
        s, mean1=s.mean1 + c, mean2=s.mean2 + c, theta=s.mean_theta, gamma=0, gaussian=False
    )


def serial(layer: Any, s: State) -> State:
    """One layer after the other."""
    for inner in layer.layers:
        s = flow(inner, s)
    return s


def parallel(layer: Any, s: State) -> State:
    """A sum of branches with weights of their own: means, covariances and NTKs add up."""
    if sum(not has_weights(t) for t in layer.branches) > 1:
        raise ValueError("two branches without a Dense are not independent of each other")
    ends = [flow(t, s) for t in layer.branches]

    def total(read: Callable[[State], mpf]) -> mpf:
        return mpmath.fsum(read(t) for t in ends)

    return State(
        mean1=total(lambda t: t.mean1),
        mean2=total(lambda t: t.mean2),
        var1=total(lambda t: t.var1),
        var2=total(lambda t: t.var2),
        cov=total(lambda t: t.cov),
        theta=total(lambda t: t.mean_theta),
        gamma=0,
        # gamma u_i v_i of one branch is not of the form gamma (sum u)_i (sum v)_i: averaged, and
        # barred from an activation, which would see the difference
        gaussian=all(t.gaussian and not t.gamma for t in ends),
        noise=s.noise,
    )


def dense(layer: Any, s: State) -> State:
    """K' = W_std^2 K + b_std^2,  Theta' = K' + W_std^2 Theta."""
    weight, bias = exact(layer.W_std) ** 2, exact(layer.b_std) ** 2
    k = weight * s.k + bias
    theta = k + weight * s.mean_theta
    var1, var2 = weight * s.q1 + bias, weight * s.q2 + bias
    return State(mpf(0), mpf(0), var1, var2, k, theta, 0, True, s.noise)


def activation(layer: Any, s: State) -> State:
    """K' = E phi(u) phi(v),  Theta' = E (Theta + gamma u v) phi'(u) phi'(v).

    By homogeneity u phi'(u) = p phi(u), so the second part is gamma p^2 K'. At u = 0 the
    derivative may be infinite; Theta = 0 there means that nothing before it is trained.
    """
    if not s.gaussian:
        raise ValueError("an activation needs a Gaussian state")
    if not is_activation(layer):
        return other_activation(layer, s)
    p, rho, one = exact(layer.degree), s.rho, mpf(1)
    k = expect_product(layer, s.q1, s.q2, rho)
    slopes = expect_derivatives(layer, s.q1, s.q2, rho) if s.theta else mpf(0)
    mean1, mean2 = expect(layer, s.q1), expect(layer, s.q2)
    return State(
        mean1=mean1,
        mean2=mean2,
        var1=expect_product(layer, s.q1, s.q1, one) - mean1**2,
        var2=expect_product(layer, s.q2, s.q2, one) - mean2**2,
        cov=k - mean1 * mean2,
        theta=s.theta * slopes + s.gamma * p**2 * k,
        gamma=0,
        gaussian=False,
        noise=s.noise,
    )


def other_activation(layer: Any, s: State) -> State:
    """The same, with Theta' = Theta E phi' phi' + gamma E u phi'(u) v phi'(v)."""
    pair = expectations(layer, s.q1, s.q2, s.k, s.rho)
    own1, own2 = (expectations(layer, q, q, q, mpf(1)) for q in (s.q1, s.q2))
    return State(
        mean1=own1.mean,
        mean2=own2.mean,
        var1=own1.product - own1.mean**2,
        var2=own2.product - own2.mean**2,
        cov=pair.product - own1.mean * own2.mean,
        theta=s.theta * pair.slopes + s.gamma * pair.euler,
        gamma=0,
        gaussian=False,
        noise=s.noise,
    )


def expectations(layer: Any, q1: mpf, q2: mpf, k: mpf, rho: mpf) -> smooth.Expectations:
    """By closed forms, with the digits of `mp`; or by integrals, for which two of three ways are short of digits
    or of time at long inputs."""
    layer = known(layer)
    name, is_short = type(layer).__name__, max(q1, q2) <= SHORT**2
    if closed.has_form(layer):
        return closed.expectations(layer, q1, q2, k)
    if is_polynomial(layer):
        return kinked.polynomial(layer, q1, q2, rho)
    if name == "Clip" or (name in kinked.FUNCTIONS and is_short):
        return kinked.expectations(layer, q1, q2, rho)
    if name in kinked.FUNCTIONS:
        return conditional.expectations(layer, q1, q2, rho)
    return (smooth if is_short else long_oracle).expectations(layer, q1, q2, rho)


def jump(layer: Any, s: State) -> State:
    """E sign(u) sign(v) = 2/pi asin(rho); a step is half of it, and 1/2. Theta does not exist."""
    if not s.gaussian:
        raise ValueError("an activation needs a Gaussian state")
    mean = mpf(1) / 2 if named(layer, "Step") else mpf(0)
    size = 1 - 3 * mean / 2
    alive1, alive2 = mpf(s.q1 > 0), mpf(s.q2 > 0)
    k = 2 / mp.pi * mpmath.asin(s.rho) * alive1 * alive2
    ends = (mean * alive1, mean * alive2, size * alive1, size * alive2, size * k)
    return State(*ends, theta=mpf(0), gamma=0, gaussian=False, noise=s.noise)


def layer_norm(layer: Any, s: State) -> State:
    """u -> (u - E u)/sqrt(var u + eps): K' = cov/(s1 s2), Theta' = Theta/(s1 s2), and affine."""
    eps = exact(layer.eps)
    centred = replace(s, mean1=mpf(0), mean2=mpf(0))
    return affine(layer, scaled(centred, inverse_sqrt(s.var1 + eps), inverse_sqrt(s.var2 + eps)))


def rms_norm(layer: Any, s: State) -> State:
    """u -> u/sqrt(E u^2 + eps): as `layer_norm`, but the mean stays."""
    eps = exact(layer.eps)
    return affine(layer, scaled(s, inverse_sqrt(s.q1 + eps), inverse_sqrt(s.q2 + eps)))


def group_norm(layer: Any, s: State) -> State:
    """K' = kappa_nu(rho),  Theta' = Theta kappa_nu'(rho)/sqrt(q1 q2), and affine."""
    nu = degrees_of_freedom(layer)
    if not s.gaussian or s.gamma or layer.eps:
        raise ValueError("GroupNorm needs a Gaussian state without gamma, and eps = 0")
    alive1, alive2 = mpf(s.q1 > 0), mpf(s.q2 > 0)  # a zero input stays zero
    k = kappa(nu, s.rho) * alive1 * alive2
    slope = kappa_slope(nu, s.rho) * inverse_sqrt(s.q1) * inverse_sqrt(s.q2)
    zero = mpf(0)
    return affine(layer, State(zero, zero, alive1, alive2, k, s.theta * slope, 0, False, s.noise))


def affine(layer: Any, s: State) -> State:
    """A trainable offset adds 1 to the NTK of every feature, a trainable scale adds u_i v_i.

    Where no activation may follow only the mean matters, E u v.
    """
    s = replace(s, theta=s.theta + bool(getattr(layer, "bias", False)), gamma=s.gamma + layer.scale)
    return s if s.gaussian else replace(s, theta=s.mean_theta, gamma=0)


def scaled(s: State, by1: mpf, by2: mpf) -> State:
    """u, v -> by1 u, by2 v. `gamma` stays: it multiplies the new u_i v_i."""
    return replace(
        s,
        mean1=s.mean1 * by1,
        mean2=s.mean2 * by2,
        var1=s.var1 * by1 * by1,
        var2=s.var2 * by2 * by2,
        cov=s.cov * by1 * by2,
        theta=s.theta * by1 * by2,
    )


def inverse_sqrt(t: mpf) -> mpf:
    """1/sqrt(t), and 0 at 0: a norm without eps maps 0 to 0."""
    return 1 / mpmath.sqrt(t) if t else mpf(0)


RULES: dict[str, Callable[[Any, State], State]] = {
    "Identity": identity,
    "Scale": scale,
    "Shift": shift,
    "Serial": serial,
    "Parallel": parallel,
    "Dense": dense,
    "LayerNorm": layer_norm,
    "RMSNorm": rms_norm,
    "GroupNorm": group_norm,
    "Sign": jump,
    "Step": jump,
}
OTHERS = {*smooth.FUNCTIONS, *kinked.FUNCTIONS, *kinked.POLYNOMIALS}


# ---------------------------------------------------------------- reading the architecture


def named(layer: Any, name: str) -> bool:
    return type(layer).__name__ == name


def is_activation(layer: Any) -> bool:
    return type(layer).__name__ in ACTIVATIONS


def is_polynomial(layer: Any) -> bool:
    return type(layer).__name__ in kinked.POLYNOMIALS


def known(layer: Any) -> Any:
    """The layer, or the one that does the same as a function of one's own."""
    return OWN[layer.fn.__name__] if named(layer, "Activate") else layer


def leaves(layer: Any) -> Iterator[Any]:
    """The layers of an architecture, without the compositions."""
    inner = getattr(layer, "layers", getattr(layer, "branches", None))
    if inner is None:
        yield layer
    else:
        for part in inner:
            yield from leaves(part)


def has_weights(layer: Any) -> bool:
    return any(named(t, "Dense") for t in leaves(layer))


def degrees_of_freedom(layer: Any) -> int:
    """nu: a group's size, less one if its mean is subtracted."""
    nu = layer.group_size - bool(layer.centre)
    if nu == 2:
        raise ValueError("a group with two degrees of freedom has an infinite Theta(x, x)")
    return nu


def is_sign(layer: Any) -> bool:
    """An activation or a GroupNorm with nu = 1 whose features are +-1."""
    if named(layer, "Sign") or named(layer, "Step"):
        return True
    return named(layer, "GroupNorm") and degrees_of_freedom(layer) == 1


# ---------------------------------------------------------------- Gaussian expectations


def expect(act: Any, q: mpf) -> mpf:
    """E phi(u) = (a + b) q^(p/2) 2^(p/2-1) Gamma((p+1)/2)/sqrt(pi),  E u^2 = q."""
    p = exact(act.degree)
    return (exact(act.a) + exact(act.b)) * q ** (p / 2) * half_moment(p, mp.prec)


def expect_product(act: Any, q1: mpf, q2: mpf, rho: mpf) -> mpf:
    """E phi(u) phi(v) = (q1 q2)^(p/2) [(a^2 + b^2) f_p(rho) + 2ab f_p(-rho)]."""
    p, a, b = exact(act.degree), exact(act.a), exact(act.b)
    return (q1 * q2) ** (p / 2) * both_sides(p, rho, a, b)


def expect_derivatives(act: Any, q1: mpf, q2: mpf, rho: mpf) -> mpf:
    """E phi'(u) phi'(v) = p^2 (q1 q2)^((p-1)/2) [(a^2 + b^2) f_(p-1)(rho) - 2ab f_(p-1)(-rho)]."""
    p, a, b = exact(act.degree), exact(act.a), exact(act.b)
    return p**2 * (q1 * q2) ** ((p - 1) / 2) * both_sides(p - 1, rho, a, -b)


def both_sides(p: mpf, rho: mpf, a: mpf, b: mpf) -> mpf:
    """E (a u_+^p + b (-u)_+^p)(a v_+^p + b (-v)_+^p) for unit variances."""
    crossed = 2 * a * b * quadrant(p, -rho) if a * b else 0
    return (a * a + b * b) * quadrant(p, rho) + crossed


def quadrant(p: mpf, rho: mpf) -> mpf:
    """f_p(rho) = E u_+^p v_+^p for unit variances and correlation rho, p > -1/2.

    p = 0, 1, 2, 3: the arc-cosine kernels of Cho and Saul. Otherwise, with z = (1 + rho)/2,
    2^(p-1) Gamma(p+1)^2/(sqrt(pi) Gamma(p+3/2)) z^(p+1/2) 2F1(1/2, 1/2; p + 3/2; z).
    """
    if abs(rho) == 1:
        return full_moment(p, mp.prec) if rho > 0 else mpf(0)
    if p in ARC_COSINE:
        theta = mpmath.acos(rho)
        return ARC_COSINE[int(p)](mp.pi - theta, mpmath.sin(theta), rho) / (2 * mp.pi)
    z = (1 + rho) / 2
    series = hyp2f1(mpf(1) / 2, mpf(1) / 2, p + mpf(3) / 2, z)
    return quadrant_factor(p, mp.prec) * z ** (p + mpf(1) / 2) * series


# 2 pi f_p as a function of t = pi - theta, s = sin(theta), c = cos(theta) = rho
ARC_COSINE: dict[int, Callable[[mpf, mpf, mpf], mpf]] = {
    0: lambda t, s, c: t,
    1: lambda t, s, c: s + t * c,
    2: lambda t, s, c: 3 * s * c + t * (1 + 2 * c**2),
    3: lambda t, s, c: 15 * s - 11 * s**3 + t * (9 * c + 6 * c**3),
}


# The constants below keep the precision in their key: they are as good as the mp of the call.


@cache
def half_moment(p: mpf, prec: int) -> mpf:
    """E u_+^p = 2^(p/2-1) Gamma((p+1)/2)/sqrt(pi) for unit variance."""
    return 2 ** (p / 2 - 1) * gamma((p + 1) / 2) / mpmath.sqrt(mp.pi)


@cache
def full_moment(p: mpf, prec: int) -> mpf:
    """f_p(1) = E u_+^(2p)."""
    return half_moment(2 * p, prec)


@cache
def quadrant_factor(p: mpf, prec: int) -> mpf:
    """2^(p-1) Gamma(p+1)^2/(sqrt(pi) Gamma(p+3/2)), the factor in `quadrant`."""
    return 2 ** (p - 1) * gamma(p + 1) ** 2 / mpmath.sqrt(mp.pi) / gamma(p + mpf(3) / 2)


# ---------------------------------------------------------------- directions of Gaussian vectors


def kappa(nu: int, rho: mpf) -> mpf:
    """E cos(u, v), u and v in R^nu with iid pairs of coordinates of correlation rho.

    (2/nu) (Gamma((nu+1)/2)/Gamma(nu/2))^2 rho 2F1(1/2, 1/2; nu/2 + 1; rho^2).
    """
    if abs(rho) == 1:
        return rho
    half = mpf(1) / 2
    return kappa_factor(nu, mp.prec) * rho * hyp2f1(half, half, mpf(nu) / 2 + 1, rho**2)


def kappa_slope(nu: int, rho: mpf) -> mpf:
    """kappa_nu'(rho) = E tr(P_u P_v)/(|u||v|), P the projection off the direction, nu > 2.

    The directions in R^1 are +-1: their derivative is 0, though kappa_1 has a slope.
    """
    if nu == 1:
        return mpf(0)
    if abs(rho) == 1:
        return mpf(nu - 1) / (nu - 2)
    half = mpf(1) / 2
    return kappa_factor(nu, mp.prec) * hyp2f1(half, 3 * half, mpf(nu) / 2 + 1, rho**2)


@cache
def kappa_factor(nu: int, prec: int) -> mpf:
    """kappa_nu'(0) = (2/nu) (Gamma((nu+1)/2)/Gamma(nu/2))^2."""
    return 2 * (gamma(mpf(nu + 1) / 2) / gamma(mpf(nu) / 2)) ** 2 / nu


# ---------------------------------------------------------------- special functions


def gamma(t: mpf) -> mpf:
    return from_balls(lambda a: a.gamma(), t)


def hyp2f1(a: mpf, b: mpf, c: mpf, z: mpf) -> mpf:
    """Gauss's 2F1(a, b; c; z)."""
    return from_balls(lambda a, b, c, z: z.hypgeom_2f1(a, b, c), a, b, c, z)


def from_balls(function: Callable[..., flint.arb], *arguments: mpf) -> mpf:
    """The value at exact arguments, right to mp.prec bits: arb says so, or gets more bits."""
    bits = mp.prec + 32
    while bits < 8 * mp.prec + 1000:
        with flint.ctx.workprec(bits):
            ball = function(*(flint.arb(exactly(t)) for t in arguments))
            if ball.is_finite() and ball.rel_accuracy_bits() >= mp.prec:
                return mpf(tuple(int(i) for i in ball.mid().man_exp()))
        bits *= 2
    raise ArithmeticError(f"no {mp.prec} bits of a special function at {arguments}")


def exactly(t: mpf) -> tuple[int, int]:
    """Mantissa and exponent, t = m 2^e."""
    sign, mantissa, power, _ = t._mpf_
    return (-int(mantissa) if sign else int(mantissa)), int(power)
