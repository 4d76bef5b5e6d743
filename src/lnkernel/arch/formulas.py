r"""What the recursion of a kernel says of each layer; docs/layers.md has the formulas with their sources."""

from __future__ import annotations

import math
from functools import singledispatch
from itertools import permutations

from lnkernel.arch.affine import Scale, Shift
from lnkernel.arch.compose import Parallel, Serial
from lnkernel.arch.dense import Dense
from lnkernel.arch.elementwise import Elementwise, Identity
from lnkernel.arch.homogeneous import PositivelyHomogeneous
from lnkernel.arch.jumps import Sign
from lnkernel.arch.jumps import Step as Jump
from lnkernel.arch.node import Node
from lnkernel.arch.norms import GroupNorm, LayerNorm, RMSNorm
from lnkernel.arch.piecewise import Clip, Elu
from lnkernel.arch.polynomial import Polynomial
from lnkernel.arch.recursion import (
    ALL,
    Line,
    State,
    Step,
    add,
    brackets,
    number_text,
    recursion,
    times,
    write,
)
from lnkernel.arch.smooth import Cos, Erf, Gaussian, Gelu, Sigmoid, Silu, Sin, Softplus, Tanh
from lnkernel.arch.traits import traits


@write.register
def _(part: Identity, before: State, lines: list[Line]) -> State:
    return before


@write.register
def _(part: Serial, before: State, lines: list[Line]) -> State:
    for layer in part.layers:
        before = write(layer, before, lines)
    return before


@write.register
def _(part: Parallel, before: State, lines: list[Line]) -> State:
    r"""$K = \sum_i K_i + \sum_{i \ne j} m_i m_j'$, $\Theta = \sum_i \Theta_i$."""
    ends = [write(branch, before, lines) for branch in part.branches]
    means = [end.means for end in ends if end.means is not None]
    crossed = [rf"{one[0]}\,{two[1]}" for one, two in permutations(means, 2)]
    line = Line(
        len(lines),
        r"\text{sum}",
        add(*(end.K for end in ends), *crossed),
        add(*(end.with_scales() for end in ends)) or "0",
        add(*(mean for mean, _ in means)) or None,
    )
    lines.append(line)
    return State(line, gaussian=all(end.gaussian for end in ends))


@recursion.register
def _(layer: Dense, before: State, number: int) -> Step:
    r"""$K' = \sigma_w^2 K + \sigma_b^2$ and $\Theta' = K' + \sigma_w^2\,(\Theta + g K)$."""
    weight, bias = float(layer.W_std) ** 2, float(layer.b_std) ** 2
    inner = before.with_scales()
    return Step(
        K=add(times(weight, before.K), number_text(bias) if bias else None),
        theta=add(f"K_{{{number}}}", times(weight, brackets(inner)) if inner else None),
    )


@recursion.register
def _(layer: Scale, before: State, number: int) -> Step:
    factor = float(layer.factor)
    return Step(
        times(factor * factor, before.K),
        times(factor * factor, before.theta) if before.theta else "0",
        times(factor, before.named("m")) if before.means else None,
        before.scales,
        before.gaussian,
    )


@recursion.register
def _(layer: Shift, before: State, number: int) -> Step:
    c = float(layer.offset)
    both = times(c, brackets(add(*before.means))) if before.means and c else None
    return Step(
        add(before.K, both, number_text(c * c) if c else None),
        before.with_scales() or "0",
        add(before.named("m") if before.means else None, number_text(c)),
        gaussian=False,
    )


# ---------------------------------------------------------------- normalisations


@recursion.register
def _(layer: LayerNorm, before: State, number: int) -> Step:
    if layer.axes == "all":
        return _over_all_positions(layer, before, number)
    means = before.means
    one, two = before.lengths
    covariance = before.K
    if means is not None:
        one, two = (f"{q} - {m}^2" for q, m in zip((one, two), means, strict=True))
        covariance = rf"{covariance} - {means[0]}\,{means[1]}"
    root = _root(layer.eps, one, two)
    return _normalise(layer, before, number, covariance, root, mean=None)


def _over_all_positions(layer: LayerNorm, before: State, number: int) -> Step:
    r"""One mean $\bar m$ and one variance $\bar q - \bar m^2$ of an image; the means of its positions stay apart."""
    means, bars = before.means, [rf"\overline{{{q}}}" for q in before.lengths]
    if means is None:
        root = _root(layer.eps, *bars)
        return _normalise(layer, before, number, before.K, root, mean=None, says=ALL)
    middle, middle2 = (rf"\overline{{{m}}}" for m in means)
    one, two = (f"{q} - {m}^2" for q, m in zip(bars, (middle, middle2), strict=True))
    covariance = rf"{before.K} - {means[0]}\,{middle2} - {middle}\,{means[1]} + {middle}\,{middle2}"
    mean = rf"\frac{{{means[0]} - {middle}}}{{\sqrt{{{_plus(one, layer.eps)}}}}}"
    root = _root(layer.eps, one, two)
    return _normalise(layer, before, number, covariance, root, mean, says=ALL)


@recursion.register
def _(layer: RMSNorm, before: State, number: int) -> Step:
    root = _root(layer.eps, *before.lengths)
    mean = None
    if before.line.mean is not None:
        mean = rf"\frac{{{before.named('m')}}}{{\sqrt{{{_plus(before.lengths[0], layer.eps)}}}}}"
    return _normalise(layer, before, number, before.K, root, mean)


@recursion.register
def _(layer: GroupNorm, before: State, number: int) -> Step:
    kappa, cosine = rf"\kappa_{{{layer.degrees_of_freedom}}}", rf"(\cos{before.angle})"
    root = _root(0.0, *before.lengths)
    slope = rf"\frac{{{kappa}'{cosine}}}{{{root}}}"
    theta = rf"{before.theta}\,{slope}" if before.theta else "0"
    affine = [number_text(1) if layer.bias else None, f"K_{{{number}}}" if layer.scale else None]
    return Step(kappa + cosine, add(theta, *affine), gaussian=False)


def _normalise(
    layer: LayerNorm | RMSNorm,
    before: State,
    number: int,
    covariance: str,
    root: str,
    mean: str | None,
    says: str = "",
) -> Step:
    """Θ is divided as K is; a bias adds 1 to it, and on features a scale adds K at once."""
    theta = rf"\frac{{{before.theta}}}{{{root}}}" if before.theta else None
    at_once = layer.scale and not before.gaussian
    return Step(
        rf"\frac{{{covariance}}}{{{root}}}",
        add(theta, "1" if layer.bias else None, f"K_{{{number}}}" if at_once else None) or "0",
        mean,
        scales=before.scales + (layer.scale and before.gaussian),
        gaussian=before.gaussian,
        says=says,
    )


def _root(eps: float, one: str, two: str) -> str:
    first, second = (brackets(_plus(each, eps)) for each in (one, two))
    return rf"\sqrt{{{first}\,{second}}}"


def _plus(length: str, eps: float) -> str:
    return add(length, number_text(eps) if float(eps) else None)


# ---------------------------------------------------------------- activations


@recursion.register(Elementwise)
def _(layer: Elementwise, before: State, number: int) -> Step:
    r"""$K' = E\,\phi\phi$ and $\Theta' = \Theta\,E\,\phi'\phi' + g\,E\,[u\phi'\,v\phi']$, whatever the function."""
    expect, phi = before.named(r"\mathbb{E}"), rf"\phi_{{{number}}}"
    slope = rf"{before.theta}\,{expect}[{phi}'(u)\,{phi}'(v)]"
    scale = times(before.scales, rf"{expect}[u\,{phi}'(u)\,v\,{phi}'(v)]")
    return Step(
        rf"{expect}[{phi}(u)\,{phi}(v)]",
        add(slope, scale) if traits(layer).has_ntk else r"\infty",
        rf"{expect}[{phi}(u)]",
        gaussian=False,
        says=rf",\; {phi}(u) = {function_text(layer)}",
    )


@recursion.register(PositivelyHomogeneous)
def _(layer: PositivelyHomogeneous, before: State, number: int) -> Step:
    a, b, p = (float(value) for value in (layer.a, layer.b, layer.degree))
    same, other = a * a + b * b, 2 * a * b
    (q, q2), angle = before.lengths, before.angle
    scales = times(before.scales * p**2, f"K_{{{number}}}")
    if p == 1:
        near = rf"\sin{angle} + (\pi - {angle})\,\cos{angle}"
        far = rf"(\sin{angle} - {angle}\,\cos{angle})"
        both = add(times(same, brackets(near) if same != 1 or other else near), times(other, far))
        rest = rf"\pi - {angle}"
        slope = add(times(same, rest if same == 1 else f"({rest})"), times(-other, angle))
        return Step(
            rf"\frac{{\sqrt{{{q}\,{q2}}}}}{{2\,\pi}}\,({both})",
            add(rf"{before.theta}\,\frac{{{slope}}}{{2\,\pi}}", scales),
            times(a + b, rf"\sqrt{{\frac{{{q}}}{{2\,\pi}}}}") or None,
            gaussian=False,
        )

    def pair(degree: float, sign: int) -> str:
        f, cosine = f"f_{{{number_text(degree)}}}", rf"\cos{angle}"
        return brackets(add(times(same, f"{f}({cosine})"), times(sign * other, f"{f}(-{cosine})")))

    def lengths(power: float) -> str:
        if power == 1:
            return rf"{q}\,{q2}\,"
        return rf"({q}\,{q2})^{{{number_text(power)}}}\," if power else ""

    first_moment = (a + b) * 2 ** (p / 2 - 1) * math.gamma((p + 1) / 2) / math.sqrt(math.pi)
    slope = times(p * p, rf"{before.theta}\,{lengths((p - 1) / 2)}{pair(p - 1, -1)}")
    return Step(
        lengths(p / 2) + pair(p, 1),
        add(slope, scales),
        times(first_moment, rf"{q}^{{{number_text(p / 2)}}}") or None,
        gaussian=False,
    )


@recursion.register
def _(layer: Erf, before: State, number: int) -> Step:
    general = recursion.dispatch(Elementwise)(layer, before, number)
    if before.scales:
        return general
    (q, q2), K = before.lengths, before.K
    product = rf"(1 + 2\,{q})\,(1 + 2\,{q2})"
    return Step(
        rf"\frac{{2}}{{\pi}}\,\arcsin\frac{{2\,{K}}}{{\sqrt{{{product}}}}}",
        rf"\frac{{4}}{{\pi}}\,\frac{{{before.theta}}}{{\sqrt{{{product} - 4\,{K}^2}}}}",
        gaussian=False,
        says=r",\; \mathrm{erf}\,u",
    )


@singledispatch
def function_text(layer: Node) -> str:
    r"""$\phi(u)$ in LaTeX; that of a function which is not known is its name."""
    return rf"\mathrm{{{type(layer).__name__}}}(u)"


for _type, _text in {
    Tanh: r"\tanh u",
    Sigmoid: r"1/(1 + e^{-u})",
    Gaussian: r"e^{-u^2}",
    Sign: r"\mathrm{sign}\,u",
    Jump: r"1_{u > 0}",
    Erf: r"\mathrm{erf}\,u",
}.items():
    function_text.register(_type)(lambda layer, text=_text: text)


@function_text.register
def _(layer: Gelu) -> str:
    cubic = r"\tfrac{u}{2}\,(1 + \tanh(\sqrt{2/\pi}\,(u + 0.044715\,u^3)))"
    return cubic if layer.approximate else r"u\,\Phi(u)"


@function_text.register
def _(layer: Silu) -> str:
    return rf"u/(1 + e^{{-{times(float(layer.beta), 'u')}}})"


@function_text.register
def _(layer: Softplus) -> str:
    beta = float(layer.beta)
    logarithm = rf"\log(1 + e^{{{times(beta, 'u')}}})"
    return logarithm if beta == 1 else rf"\tfrac{{1}}{{{number_text(beta)}}}\,{logarithm}"


@function_text.register
def _(layer: Sin) -> str:
    phase = number_text(layer.phase) if float(layer.phase) else None
    return rf"\sin({add(times(float(layer.omega), 'u'), phase)})"


@function_text.register
def _(layer: Cos) -> str:
    return rf"\cos({times(float(layer.omega), 'u')})"


@function_text.register
def _(layer: Elu) -> str:
    below = r"(e^{\min(u, 0)} - 1)"
    return add(r"\max(u, 0)", times(float(layer.alpha), below))


@function_text.register
def _(layer: Clip) -> str:
    return rf"\min(\max(u, {number_text(layer.low)}), {number_text(layer.high)})"


@function_text.register
def _(layer: Polynomial) -> str:
    terms = [
        times(float(c), f"u^{{{power}}}") if power else number_text(c)
        for power, c in enumerate(layer.coefficients)
        if float(c)
    ]
    return add(*terms)
