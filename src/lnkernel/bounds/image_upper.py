r"""An upper bound of $C = \sup_x \Theta(x, x)$ over all images, layer by layer, where no theorem tells C itself.

Of one image with itself let $q_p = K_{pp}$ be the mean square of the features at position $p$, $m_p$ their mean, so
that $v_p = q_p - m_p^2$ is their variance, and $\Theta_p = \Theta_{pp}$. Between any two layers there are numbers, 0 or
more, maybe infinite, such that for *all* images of all sizes, *all* positions and all weights $\zeta_p \ge 0$

$$L \le q_p \le Q, \quad \Theta_p \le S, \quad \Theta_p \le T q_p, \quad \zeta^T\Theta\zeta \le W\,\zeta^T K\zeta, \quad
l\,q_p \le m_p^2 \le h\,q_p,$$

and no $m_p$ is negative if $l > 0$. They say of one another that $T \le \min(W, S/L)$ and $S \le TQ$ may be taken.
The raw images have $L = 0$, $Q = \infty$ and $\Theta = 0$. Every layer turns such numbers into such numbers:

* **Dense, Conv** $q' = w\langle q\rangle + b$ and $\Theta' = q' + w\langle\Theta\rangle$, with $w = \sigma_w^2$,
  $b = \sigma_b^2$ and means over the filter. So $Q' = wQ + b$, $S' = Q' + wS$, and
  $\Theta' \le q' + Tw\langle q\rangle$ with $w\langle q\rangle/q' \le wQ/Q'$, so that $T' = 1 + T\,wQ/Q'$. Zeros around
  the image leave at least one of the $n$ places of a filter, $L' = wL/n + b$; without them $L' = wL + b$. The mean of
  matrices over shifts keeps the inequality of W for each, and $\zeta^T 11^T\zeta \ge 0$: $W' = 1 + W$. The means are 0.
* **ConvLocal** does the same at every position, and leaves $K'_{pp'} = \Theta'_{pp'} = 0$ between different ones, so
  that $\zeta^T\Theta'\zeta = \sum\zeta_p^2\Theta'_p \le T'\,\zeta^T K'\zeta$: $W' = T'$.
* **ConvTranspose** is a convolution with zeros between the positions, of which a filter that is as large as the strides
  reads at least one, and a smaller one perhaps none: then $L' = b$.
* **Crop, Resize** by the method "nearest" take some of the positions, which keeps all; by "linear" they are a pooling.
* **Activations of degree 1** on Gaussian coordinates, also with a trainable scale before them: $u\phi' = \phi$ and
  $E\,\phi'^2 = E\,\phi^2/q$ on the diagonal, so that q and Θ are both multiplied by $a = E\,\phi(u)^2$ of a unit
  Gaussian. T stays; $l = h = (E\phi)^2/a$, with $l = 0$ if $E\phi < 0$. Because Θ is a kernel and features have a mean,
  $\zeta^T\Theta\zeta \le (\sum\zeta_p\sqrt{\Theta_p})^2 \le T\,(\sum\zeta_p\sqrt{q_p})^2$ and
  $\zeta^T K\zeta \ge (\sum\zeta_p m_p)^2 \ge l\,(\sum\zeta_p\sqrt{q_p})^2$: so $W' = T/l$.
* **GELU and SiLU**, $\phi(u) = u\,s(u)$ with $s(u) + s(-u) = 1$. Because of
  $\phi(u)^2 + \phi(-u)^2 = u^2(s^2 + (1-s)^2)$, q' is between q/4 and q/2. Because of $\phi'(u) + \phi'(-u) = 1$ and
  $1 - M \le \phi' \le M$, Θ is multiplied by at most $D = (M^2 + (M-1)^2)/2$, and so is the part of a trainable scale,
  which becomes $E\,u^2\phi'^2$: $T' = 4DT$. The odd part of φ is $u/2$, so that the variance is at least q/4:
  $h = 1/2$. For GELU the even part $g = u(\Phi(u) - \frac12)$ has the mean $q/\sqrt{2\pi(1+q)}$, and
  $|g'| \le \min(\sqrt{2/\pi}\,|u|, M - \frac12)$. So of $\phi' = \frac12 + g'$ the odd part $g'$ adds
  at most $Tq\min(\frac6\pi q, (M - \frac12)^2)$ to $\Theta'_p$, with a trainable scale or without, which is at most
  $cT\,(E g)^2$ with $c = 2\pi(\frac6\pi + (M - \frac12)^2)$; and $\frac12$ makes $\Theta/4$ beside $K/4$. As for
  degree 1, $W' = \max(W, cT)$.
* **LayerNorm** divides by the variance, which is at least $(1 - h)\,q$, and at most q: $q' = v/(v + \epsilon)$ and
  $\Theta' = \Theta/(v + \epsilon)$, so $T' = T/(1 - h)$, $S' \le S/((1-h)L + \epsilon)$ and
  $S' \le TQ/((1-h)Q + \epsilon)$. W stays where the means are 0. **RMSNorm** does so with $h = 0$. A trainable scale
  adds $K'$ to Θ', a trainable bias adds 1 at every pair of positions. With `axes="all"` all are divided by one
  variance $V$ between $(1-h)L$ and $Q$, and $q'_p(V + \epsilon) = v_p + (m_p - \bar m)^2 \le (1 + 3h)\,Q$.
* **Pooling, attention by a softmax** take sums $\sum_p \zeta_p u_p$ with weights $\zeta_p \ge 0$ of sum 1, or
  less with zeros around the image. By $|K_{pp'}| \le \sqrt{q_p q_{p'}}$, and Θ likewise, Q and S stay; W does, and
  $T' = W$. By $q' \ge m'^2 = (\sum\zeta_p m_p)^2 \ge l\,(\sum\zeta_p\sqrt{q_p})^2$ there are $l' = l$, $L' = lL$. Sums
  over $n$ places are $n^2$ times as large. Attention has two Dense layers behind that, of values and outputs.
* **Scale** multiplies L, Q and S by the square of its factor; a negative one turns the signs of the means, so that
  $l = 0$.
* **Flatten** takes means of $q_p$ and of $\Theta_p$, which keeps all.
* **PositionalEmbedding** adds the same covariance $R$ to K and to Θ.
* **Sums of branches** $q = \sum_i q_i + \sum_{i \ne j} m_i m_j$ and $\Theta = \sum_i\Theta_i$. Where at most one branch
  has a mean, or none is negative, $q \ge \sum q_i$, so $T' = \max T_i$, $W' = \max W_i$, $L' = \sum L_i$; else
  $q \ge \sum (1 - h_i)\,q_i$ takes its place. Branches whose $T_i$ is large may be left out of the maximum, and
  add $\sum S_i/L'$ to T'. From $m^2 \le k\sum h_i q_i$ with k means, $m^2/(q - m^2) \le k\max h_i/(1 - h_i)$.

At the end $C \le S$. Where S is infinite, nothing is proved, and the network is refused.

Every kind of layer says in `through` what it does to the numbers; a layer that says nothing is refused.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import singledispatch
from typing import NoReturn

from lnkernel.arch import (
    Attention,
    AvgPool,
    Conv,
    ConvLocal,
    ConvTranspose,
    Crop,
    Dense,
    Elementwise,
    Flatten,
    Gelu,
    GlobalAvgPool,
    GlobalSumPool,
    Identity,
    LayerNorm,
    Node,
    Parallel,
    PositionalEmbedding,
    PositivelyHomogeneous,
    Resize,
    RMSNorm,
    Scale,
    Serial,
    Silu,
    SumPool,
)
from lnkernel.arch.flow import inside
from lnkernel.errors import ArchitectureError

STEEPEST_GELU = 1.13  # more than the largest derivative: 1.12890, and 1.12900 of the approximation
STEEPEST_SILU = 1.1  # more than 1.09984


@dataclass(frozen=True)
class Limits:
    r"""What holds at all positions of all images between two layers.

    Attributes:
        L: no $q_p$ is smaller.
        Q: no $q_p$ is larger.
        S: no $\Theta_p$ is larger.
        T: no $\Theta_p/q_p$ is larger.
        W: no $\zeta^T\Theta\zeta/\zeta^T K\zeta$ is larger, for weights $\zeta \ge 0$ of the positions.
        low: no $m_p^2/q_p$ is smaller; where it is above 0, no mean $m_p$ is negative.
        high: no $m_p^2/q_p$ is larger.
    """

    L: float = 0.0
    Q: float = math.inf
    S: float = 0.0
    T: float = 0.0
    W: float = 0.0
    low: float = 0.0
    high: float = 1.0

    def tidy(self) -> Limits:
        """The same, each number as small as the others make it."""
        T = min(self.T, self.W, quotient(self.S, self.L))
        return dataclasses.replace(self, T=T, S=min(self.S, product(T, self.Q)))


def upper_bound(arch: Node) -> float:
    """A number that Θ(x, x) of no image exceeds; an error where the rules give none.

    >>> import lnkernel as lnk
    >>> upper_bound(lnk.resnet(blocks=2, norm="all"))
    3.0
    """
    found = passed(arch, Limits(), "")
    if math.isinf(found.S):
        refuse(
            "network",
            "",
            f"Θ(x, x) is at most {found.T:.6g} times K(x, x), but no norm bounds K(x, x) for images of all sizes and "
            "contrasts",
            "Put a norm over the channels before the last layer",
        )
    return found.S


def quotient(above: float, below: float) -> float:
    """above/below, where 0 bounds whatever 0/0 stands for, and infinity is no bound."""
    if above == 0 or math.isinf(above):
        return above
    return math.inf if below == 0 else above / below


def product(T: float, Q: float) -> float:
    """The bound TQ of T q: 0 where T is, whatever Q is, and none where T is none."""
    return T if T == 0 or math.isinf(T) else T * Q


def share(part: float, other: float) -> float:
    """part/(part + other), which increases in part; 1 at infinity."""
    return 1.0 if other == 0 or math.isinf(part) else part / (part + other)


@singledispatch
def through(layer: Node, before: Limits, here: str) -> Limits:
    """The limits behind this layer; each kind of layer registers its own."""
    refuse(
        type(layer).__name__,
        here,
        "what this type of layer does to bounds of K and Θ is not known",
        "Register it in lnkernel.bounds.image_upper, as a function `through`",
    )


def passed(layer: Node, before: Limits, here: str) -> Limits:
    """The tidy limits behind a layer; an error where none is left: no later layer brings one back."""
    after = through(layer, before, here).tidy()
    if math.isinf(after.S) and math.isinf(after.T):
        refuse(
            type(layer).__name__,
            here,
            "behind it Θ(x, x) may be large where K(x, x) was small, and no rule bounds it",
            "Put a norm before it, or biases b_std > 0 where K(x, x) may be 0",
        )
    return after


@through.register
def _(layer: Serial, before: Limits, here: str) -> Limits:
    for number, part in enumerate(layer.layers):
        before = passed(part, before, inside(here, f"layer {number}"))
    return before


@through.register(Identity)
@through.register(Flatten)
def _(layer: Identity | Flatten, before: Limits, here: str) -> Limits:
    return before


@through.register
def _(layer: Scale, before: Limits, here: str) -> Limits:
    square = layer.factor**2
    return dataclasses.replace(
        before,
        L=square * before.L,
        Q=square * before.Q,
        S=square * before.S,
        low=before.low if layer.factor > 0 else 0.0,
    )


# ---------------------------------------------------------------- weights


def weighed(before: Limits, w: float, b: float, kept: float = 1.0) -> Limits:
    r"""Behind weights and biases of the variances w and b, where a patch keeps at least the part `kept` of L."""
    Q = w * before.Q + b
    return Limits(
        L=w * before.L * kept + b,
        Q=Q,
        S=Q + w * before.S,
        T=1 + product(before.T, share(w * before.Q, b)),
        W=1 + before.W,
        high=0.0,
    )


@through.register
def _(layer: Dense, before: Limits, here: str) -> Limits:
    return weighed(before, layer.W_std**2, layer.b_std**2)


@through.register
def _(layer: Conv, before: Limits, here: str) -> Limits:
    return patched(layer, before)


@through.register
def _(layer: ConvLocal, before: Limits, here: str) -> Limits:
    made = patched(layer, before)
    return dataclasses.replace(made, W=made.T)


@through.register
def _(layer: ConvTranspose, before: Limits, here: str) -> Limits:
    reads_some = all(k >= s for k, s in zip(layer.filter, layer.strides, strict=True))
    kept = 1 / math.prod(layer.filter) if reads_some else 0.0
    return weighed(before, layer.W_std**2, layer.b_std**2, kept)


@through.register
def _(layer: Crop, before: Limits, here: str) -> Limits:
    return before


@through.register
def _(layer: Resize, before: Limits, here: str) -> Limits:
    if not layer.mixes:
        return before
    if layer.method != "linear":
        refuse(
            "Resize",
            here,
            f'the method "{layer.method}" has negative weights, whose sums may be small where Θ is not',
            'Use "linear" or "nearest"',
        )
    return mixed(before)


def patched(layer: Conv | ConvLocal, before: Limits) -> Limits:
    """Behind the weights of a filter, at every position by itself."""
    kept = 1 / math.prod(layer.filter) if layer.padding == "SAME" else 1.0
    return weighed(before, layer.W_std**2, layer.b_std**2, kept)


@through.register
def _(layer: PositionalEmbedding, before: Limits, here: str) -> Limits:
    size = layer.std**2 * float(layer.covariance((1,))[0, 0])
    if size == 0:
        return before
    return Limits(
        before.L + size,
        before.Q + size,
        before.S + size,
        max(before.T, 1.0),
        max(before.W, 1.0),
        high=before.high,
    )


# ---------------------------------------------------------------- sums over positions


def mixed(before: Limits, factor: float = 1.0, kept: float = 1.0) -> Limits:
    """Behind sums with weights of at most `factor` together, and of at least that times the root of `kept`."""
    square = factor * factor
    return Limits(
        L=square * before.low * before.L * kept,
        Q=square * before.Q,
        S=square * before.S,
        T=before.W,
        W=before.W,
        low=before.low,
        high=1.0 if before.high else 0.0,
    )


@through.register(AvgPool)
@through.register(SumPool)
def _(layer: AvgPool | SumPool, before: Limits, here: str) -> Limits:
    size = math.prod(layer.window)
    return mixed(before, layer.factor * size, 1 / size**2 if layer.padding == "SAME" else 1.0)


@through.register
def _(layer: GlobalAvgPool, before: Limits, here: str) -> Limits:
    return mixed(before)


@through.register
def _(layer: GlobalSumPool, before: Limits, here: str) -> Limits:
    refuse(
        "GlobalSumPool",
        here,
        "it adds up all positions, so that Θ(x, x) grows with the size of the image",
        "Use GlobalAvgPool",
    )


@through.register
def _(layer: Attention, before: Limits, here: str) -> Limits:
    if layer.weights != "softmax":
        refuse(
            "Attention",
            here,
            "its weights have no bounded sum, so that Θ(x, x) grows with the number of positions",
            'Use weights="softmax"',
        )
    values = weighed(mixed(before).tidy(), 1.0, 0.0).tidy()
    return weighed(values, layer.OV_std**2, layer.b_std**2)


# ---------------------------------------------------------------- activations


@through.register
def _(layer: Elementwise, before: Limits, here: str) -> Limits:
    refuse(
        type(layer).__name__,
        here,
        "the proof is for activations of degree 1, such as Relu, and for Gelu and Silu",
        "Use one of these",
    )


@through.register
def _(layer: PositivelyHomogeneous, before: Limits, here: str) -> Limits:
    if layer.degree != 1:
        refuse(
            type(layer).__name__,
            here,
            "the proof is for activations of degree 1, such as Relu, and for Gelu and Silu",
            "Use one of these",
        )
    squares = layer.a**2 + layer.b**2
    area, high = squares / 2, (layer.a + layer.b) ** 2 / (math.pi * squares)
    low = high if layer.a + layer.b > 0 else 0.0
    W = quotient(before.T, low)
    return Limits(area * before.L, area * before.Q, area * before.S, before.T, W, low, high)


@through.register
def _(layer: Gelu, before: Limits, here: str) -> Limits:
    made = gated(before, STEEPEST_GELU)
    if layer.approximate:
        return made
    most = 2 * math.pi * (6 / math.pi + (STEEPEST_GELU - 0.5) ** 2)
    return dataclasses.replace(made, W=max(before.W, most * before.T))


@through.register
def _(layer: Silu, before: Limits, here: str) -> Limits:
    return gated(before, STEEPEST_SILU)


def gated(before: Limits, steepest: float) -> Limits:
    """Behind u s(u) with s(u) + s(-u) = 1, whose derivative is at most `steepest`."""
    D = (steepest**2 + (steepest - 1) ** 2) / 2
    return Limits(before.L / 4, before.Q / 2, D * before.S, 4 * D * before.T, math.inf, high=0.5)


# ---------------------------------------------------------------- norms


@through.register
def _(layer: LayerNorm, before: Limits, here: str) -> Limits:
    made = (over_all if layer.axes == "all" else centred)(before, layer.eps)
    return trained(made.tidy(), layer.scale, layer.bias)


@through.register
def _(layer: RMSNorm, before: Limits, here: str) -> Limits:
    made = divided(before, before.L, 1.0, layer.eps)
    return trained(made.tidy(), layer.scale, layer.bias)


def centred(before: Limits, eps: float) -> Limits:
    """Behind a LayerNorm over the channels, which takes the means away."""
    left = 1 - before.high
    made = divided(before, left * before.L, left, eps)
    return dataclasses.replace(made, W=ratio_without_means(before), low=0.0, high=0.0)


def divided(before: Limits, least: float, left: float, eps: float) -> Limits:
    """Divided by v + eps at every position, where v is at least `least`, at least `left` q, and at most q."""
    T = quotient(before.T, left)
    most = share(left * before.Q, eps) if left else 1.0
    return dataclasses.replace(
        before,
        L=share(least, eps) if least else 0.0,
        Q=share(before.Q, eps),
        S=min(quotient(before.S, least + eps), product(T, most)),
        T=T,
    )


def over_all(before: Limits, eps: float) -> Limits:
    """Behind a LayerNorm of all positions together, which divides by one number."""
    left = 1 - before.high
    least = left * before.L
    return Limits(
        L=0.0 if math.isinf(before.Q) else quotient(least, before.Q + eps),
        Q=quotient((1 + 3 * before.high) * before.Q, least + eps),
        S=quotient(before.S, least + eps),
        T=quotient(before.T, left),
        W=ratio_without_means(before),
        high=1.0 if before.high else 0.0,
    )


def ratio_without_means(before: Limits) -> float:
    """W behind a layer that takes the means away: it stays where there are none, or Θ is 0."""
    return before.W if before.high == 0 or before.W == 0 else math.inf


def trained(made: Limits, scale: bool, bias: bool) -> Limits:
    """With the parameters of a norm: a scale adds K to Θ, a bias adds 1."""
    if scale:
        made = dataclasses.replace(made, S=made.S + made.Q, T=made.T + 1, W=made.W + 1)
    if bias:
        T = made.T + quotient(1.0, made.L)
        made = dataclasses.replace(made, S=made.S + 1, T=T, W=math.inf)
    return made


# ---------------------------------------------------------------- sums of branches


@through.register
def _(layer: Parallel, before: Limits, here: str) -> Limits:
    ends = [
        passed(branch, before, inside(here, f"branch {number}"))
        for number, branch in enumerate(layer.branches)
    ]
    return summed(ends)


def summed(ends: list[Limits]) -> Limits:
    """The sum of branches."""
    means = [end for end in ends if end.high > 0]
    cross = len(means) > 1
    signed = cross and not all(end.low > 0 for end in means)
    left = [1 - end.high if signed else 1.0 for end in ends]
    L = sum(part * end.L for part, end in zip(left, ends, strict=True))
    ratios = [quotient(end.T, part) for part, end in zip(left, ends, strict=True)]
    return Limits(
        L=L,
        Q=sum(end.Q for end in ends) + (cross_terms(means) if cross else 0.0),
        S=sum(end.S for end in ends),
        T=ratio_of_sum(ratios, [end.S for end in ends], L),
        W=math.inf if signed else max(end.W for end in ends),
        low=min(end.low for end in ends),
        high=high_of_sum(means),
    )


def ratio_of_sum(ratios: list[float], sizes: list[float], L: float) -> float:
    """The least T of a sum: Θ of some branches, those with the largest T, by their S, that of the others by their T."""
    rows = sorted(zip(ratios, sizes, strict=True), reverse=True)
    choices = (
        quotient(math.fsum(S for _, S in rows[:count]), L)
        + max((T for T, _ in rows[count:]), default=0.0)
        for count in range(len(rows) + 1)
    )
    return min(choices)


def cross_terms(means: list[Limits]) -> float:
    r"""At most $\sum_{i \ne j} m_i m_j$."""
    squares = [end.high * end.Q for end in means]
    roots = [math.sqrt(square) for square in squares]
    return sum(roots[i] * roots[j] for i in range(len(roots)) for j in range(len(roots)) if i != j)


def high_of_sum(means: list[Limits]) -> float:
    """At most the share of the mean of a sum in its mean square."""
    most = max((end.high for end in means), default=0.0)
    if most in (0.0, 1.0):
        return most
    ratio = len(means) * most / (1 - most)
    return ratio / (1 + ratio)


def refuse(name: str, here: str, reason: str, remedy: str) -> NoReturn:
    """Say where the rules end, and why."""
    raise ArchitectureError(
        name,
        here,
        f"no bound of Θ(x, x) over all images is proved for it here: {reason}",
        f"{remedy}, or ask lnkernel.ntk(arch).diagonal(x) for the images that you have",
    )
