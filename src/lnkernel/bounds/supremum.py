r"""$C = \sup_x \Theta(x, x)$ over all inputs, not over a sample of them."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from lnkernel.arch import Node
from lnkernel.arch.facts import (
    acts_on_positions,
    demand_ntk,
    demand_one_length,
    is_monotone,
    steepness,
)
from lnkernel.arch.flow import check_network
from lnkernel.arch.text import Architecture, as_architecture
from lnkernel.bounds.cause import Cause, cause_of_growth
from lnkernel.bounds.digits import at_most
from lnkernel.bounds.image_upper import upper_bound
from lnkernel.bounds.images import Counterpart, demand_monotone, dense_counterpart
from lnkernel.bounds.search import Peak, highest
from lnkernel.check.arrays import as_array
from lnkernel.check.numbers import as_flag
from lnkernel.errors import ArchitectureError, InputError
from lnkernel.evaluate.leading import growth as asymptotics
from lnkernel.evaluate.leading.growth import Growth
from lnkernel.gp.everywhere import register_supremum
from lnkernel.gram.kernel import Kernel, ntk
from lnkernel.types import Diagonal, Norms

# A square wave has mean 0, so that its mean square is its variance too: one profile
# serves for LayerNorm on the raw input and for everything else.
SQUARE_WAVE = np.asarray([1.0, -1.0, 1.0, -1.0])


@dataclass(frozen=True)
class SupDiagonal:
    r"""The supremum $C$ of $\Theta(x, x)$, and where it is. `sup_diagonal` makes it.

    $\Theta(x, x)$ is a function of one number, the norm $|x|/\sqrt d$, the root of the mean square
    of the coordinates. (Where a LayerNorm acts on the raw input it is their standard deviation.)

    Attributes:
        value: C; infinite where Θ(x, x) is not bounded.
        attained_at: the norm |x|/√d at which it is attained or approached: 0, a number, or
            infinity. At 0 it means the limit as x → 0. 1 where Θ(x, x) is the same for every x.
        limit_at_infinity: the limit of Θ(x, x) as |x| → ∞.
        limit_at_zero: the limit of Θ(x, x) as x → 0.
        is_constant: whether Θ(x, x) is one and the same number for every x but 0.
        growth: where Θ(x, x) → ∞ as |x| → ∞, its power law in |x|/√d; None else.
        cause: the activation that makes it grow, where a LayerNorm before it would not let it.
        method: "constant", "monotone" (a theorem: C is the limit at infinity), "search" (over
            all norms, in float64), "limit" (infinite at one end), "balls" (certified), or "layers" (an upper bound
            over all images, from layer to layer; where it is attained, and the limits, are not known then, and nan).
        certified: whether `enclosure` is rigorous; else the value is right but for rounding, and
            for the search, which could miss a peak narrower than its grid.
        enclosure: rigorous (lower, upper), where certified; `value` is then the upper end.
        is_upper_bound: whether `value` is proved to be at least C, and C may be less: of networks on images with
            zeros around them, or that pool behind a ConvLocal, or of which C itself is not known (method "layers").
            Norms are those of the pixels of an image that is the same everywhere.

    >>> import lnkernel as lnk
    >>> c = lnk.sup_diagonal(lnk.mlp(hidden=2, norm="last"))
    >>> round(float(c), 12), c.attained_at, round(c.limit_at_zero, 12), c.method
    (3.01, inf, 2.51, 'monotone')
    """

    value: float
    attained_at: float
    limit_at_infinity: float
    limit_at_zero: float
    is_constant: bool
    growth: Growth | None
    method: str
    certified: bool
    arch: Node = field(repr=False)
    enclosure: tuple[float, float] | None = None
    cause: Cause | None = None
    is_upper_bound: bool = False

    def __float__(self) -> float:
        return self.value

    def profile(self, norms: Norms) -> Diagonal:
        """Θ(x, x) at inputs of these norms |x|/√d, (n,), float64; infinity is a norm too.

        >>> import lnkernel as lnk
        >>> lnk.sup_diagonal(lnk.mlp(norm="last")).profile([0.0, 1.0, float("inf")]).round(6).tolist()
        [2.51, 3.00505, 3.01]
        """
        self._demand_dense("profile")
        given = np.asarray(as_array("norms", norms), dtype=float)
        if given.ndim != 1 or not (given >= 0).all():
            raise InputError(
                "norms",
                "a list of numbers, 0 or more",
                f"shape {given.shape}" if given.ndim != 1 else f"{given.min()}",
                "A norm is |x|/sqrt(d); write e.g. np.geomspace(1e-3, 1e3, 200)",
            )
        far = np.isinf(given)
        values = np.full(given.shape, self.limit_at_infinity)
        if not far.all():
            dense = dense_counterpart(self.arch).arch if acts_on_positions(self.arch) else self.arch
            values[~far] = along(ntk(dense), given[~far])
        return values

    def _demand_dense(self, name: str) -> None:
        """Refuse what is known of the dense network with the same layers alone, where there is none."""
        if self.method == "layers":
            raise InputError(
                name,
                "a network on images whose C is that of a dense network",
                "one of which an upper bound alone is known, not where Θ(x, x) is largest",
                "Ask lnkernel.ntk(arch).diagonal(x) for the images that you have",
            )

    def __str__(self) -> str:
        return f"{self._headline()}\n  {self._reason()}"

    def _headline(self) -> str:
        if math.isinf(self.value):
            return "C = sup Θ(x, x) = ∞."
        images = " over all images" if acts_on_positions(self.arch) else ""
        if self.certified:
            return f"C = sup Θ(x, x) ≤ {at_most(self.value, 10)}{images}, proved."
        if self.is_upper_bound:
            return f"C = sup Θ(x, x) ≤ {self.value:.10g}{images}, in float64."
        return f"C = sup Θ(x, x) = {self.value:.10g}{images}, in float64."

    def _reason(self) -> str:
        if self.growth is not None:
            law = (
                f"Θ(x, x) ~ {self.growth.coefficient:.6g}·(|x|/√d)^{self.growth.exponent:.6g} as "
                "|x| → ∞"
            )
            if self.cause is not None:
                return (
                    f"{self.cause} meets inputs of every length q, and its kernel saturates: the share "
                    f"R = q·E φ'²/E φ² of its derivative grows without limit, so {law}. A normalisation "
                    "behind it does not help; a LayerNorm without eps before the first such layer does."
                )
            return (
                f"Some way through the network passes no normalisation, so {law}. A normalisation "
                "before the last layer makes it bounded."
            )
        if math.isinf(self.value):
            return (
                "Θ(x, x) is infinite at x = 0 or on the way there: a trainable bias keeps Θ positive "
                "where a later layer divides by a vanishing length. A bias b_std > 0 in the Dense "
                "layers makes it bounded."
            )
        if self.is_constant:
            return "Θ(x, x) is the same for every x."
        if acts_on_positions(self.arch):
            return self._reason_of_images()
        where = {0.0: "as x → 0", math.inf: "as |x| → ∞"}
        place = where.get(self.attained_at, f"at |x|/√d = {self.attained_at:.6g}")
        by = " It was found by a search, which is no proof." if self.method == "search" else ""
        return (
            f"It is reached {place}; the limits are {self.limit_at_zero:.10g} at zero and "
            f"{self.limit_at_infinity:.10g} at infinity.{by}"
        )

    def _reason_of_images(self) -> str:
        if self.method == "layers":
            return "It is proved from layer to layer: C may be less, and no image is known to attain it."
        dense = "It is that of the dense network with the same layers"
        if self.is_upper_bound:
            why = "zeros come in around the images, or positions have filters of their own"
            return f"{dense}; {why}, so that C may be less."
        large = ", as they grow" if math.isinf(self.attained_at) else ""
        return f"{dense}, attained by images that are the same at all positions{large}."

    def attaining_input(
        self, shape: int | tuple[int, ...], far: float = 1e6
    ) -> Float64[np.ndarray, ...]:
        r"""An input at which $\Theta(x, x)$ is C: of a network on images one that is the same at all positions.

        Where C is approached as $|x| \to \infty$, an input of the norm `far`; as $x \to 0$, of the norm 1/`far`. Where
        `is_upper_bound`, the input of the dense network that attains it, which such images do not; an
        upper bound from layer to layer has none.

        Args:
            shape: of one input: d, or (height, width, channels).
            far: the norm |x|/√d of an input that stands for infinity.

        >>> import lnkernel as lnk
        >>> arch = lnk.cnn(hidden=2, norm="last", padding="CIRCULAR")
        >>> C = lnk.sup_diagonal(arch)
        >>> x = C.attaining_input((4, 4, 3))
        >>> x.shape, bool(abs(lnk.ntk(arch).diagonal(x[None])[0] / C.value - 1) < 1e-10)
        ((4, 4, 3), True)
        """
        if math.isinf(self.value):
            raise InputError(
                "shape",
                "a network with a finite C",
                "one whose Θ(x, x) is not bounded",
                "Ask lnkernel.diverging_witness for an input with a large output",
            )
        self._demand_dense("attaining_input")
        sizes = shape if isinstance(shape, tuple) else (shape,)
        if not sizes or not all(type(size) is int and size > 0 for size in sizes):
            raise InputError(
                "shape",
                "positive integers, one for each axis of an input",
                repr(shape),
                "Write e.g. 3, or (32, 32, 3)",
            )
        norm = min(max(self.attained_at, 1 / far), far)
        channels = np.zeros(sizes[-1])
        channels[: sizes[-1] // 2 * 2] = np.resize([1.0, -1.0], sizes[-1] // 2 * 2)
        if sizes[-1] == 1:
            channels[:] = 1.0
        channels *= norm / np.sqrt(np.mean(channels**2))
        return np.broadcast_to(channels, sizes).copy()


def sup_diagonal(arch: Architecture, certify: bool = False) -> SupDiagonal:
    r"""$C = \sup_x \Theta(x, x)$, the constant that makes the output of a trained network bounded.

    The limit at infinity comes from the leading terms of the rules, in closed form. For layers one
    after another without trainable biases, Θ(x, x) never decreases in |x| (docs/bound.md), so C is
    that limit. With sums, trainable biases or analytic activations the maximum may be at zero or in
    between: then every norm from 1e-150 to 1e150 is searched, and both limits.

    Args:
        arch: any architecture of this library, or its text. Of networks on images the supremum is over all images:
            it is that of the dense network with the same layers, attained by images that are the same everywhere,
            or with zeros around the images, or a pooling behind a ConvLocal, at most that (`is_upper_bound`).
            Where that is not proved it is an upper bound, from layer to layer (`bounds/image_upper.py`), and
            where there is none it is refused.
        certify: whether to enclose C rigorously, in ball arithmetic.

    >>> import lnkernel as lnk
    >>> c = lnk.sup_diagonal(lnk.mlp(hidden=2, norm="first"))
    >>> round(c.value, 12), c.is_constant
    (3.03, True)
    >>> print(lnk.sup_diagonal(lnk.mlp(hidden=2)))
    C = sup Θ(x, x) = ∞.
      Some way through the network passes no normalisation, so Θ(x, x) ~ 6·(|x|/√d)^2 as
      |x| → ∞. A normalisation before the last layer makes it bounded.
    >>> c = lnk.sup_diagonal(lnk.mlp(hidden=2, norm="last", activation=lnk.Tanh()))
    >>> c.value, c.growth.exponent, str(c.cause)          # here the LayerNorm comes too late
    (inf, 1.0, 'Tanh at layer 1')
    """
    proved = as_flag("certify", certify)
    given = as_architecture(arch)
    demand_ntk(given)
    if acts_on_positions(given):
        return _of_images(given, proved)
    plain = asymptotics.concrete(given)
    demand_one_length(plain)
    found = _in_float64(plain)
    return _certify(found) if proved else found


def _of_images(arch: Node, certify: bool) -> SupDiagonal:
    """The supremum of a network on images: that of the dense network with the same layers, or an upper bound."""
    dense = _theorem(check_network(arch), certify)
    if dense is None:
        return _layer_by_layer(arch)
    found = sup_diagonal(dense.arch, certify)
    enclosure = found.enclosure
    if enclosure is not None and not dense.attained:
        enclosure = 0.0, enclosure[1]
    return dataclasses.replace(
        found,
        arch=arch,
        is_constant=False,  # an image may have patches of zeros, and what is pooled depends on all of it
        is_upper_bound=not dense.attained,
        enclosure=enclosure,
    )


def _theorem(arch: Node, certify: bool) -> Counterpart | None:
    """The dense network whose C bounds that of `arch`, if that is proved; else None, or an error for a certificate."""
    try:
        dense = dense_counterpart(arch)
        demand_monotone(dense.arch)
    except ArchitectureError:
        if certify:
            raise
        return None
    return dense


def _layer_by_layer(arch: Node) -> SupDiagonal:
    """An upper bound of the supremum of a network on images."""
    return SupDiagonal(
        value=upper_bound(asymptotics.concrete(arch)),
        attained_at=math.nan,
        limit_at_infinity=math.nan,
        limit_at_zero=math.nan,
        is_constant=False,
        growth=None,
        method="layers",
        certified=False,
        arch=arch,
        is_upper_bound=True,
    )


def along(theta: Kernel, norms: np.ndarray) -> np.ndarray:
    """Θ(x, x) at inputs of these norms |x|/√d."""
    return np.array(theta.diagonal(norms[:, None] * SQUARE_WAVE))


def _in_float64(arch: Node) -> SupDiagonal:
    far, near = asymptotics.far(arch), asymptotics.near(arch)
    constant = far.whole and far.power == 0
    growing = Growth(2 * far.power, far.coefficient) if far.power > 0 else None
    if growing is not None:
        peak, method = Peak(math.inf, math.inf), "limit"
    elif math.isinf(near.limit) or math.isinf(asymptotics.at_zero(arch)):
        peak, method = Peak(0.0, math.inf), "limit"
    elif constant:
        peak, method = Peak(1.0, far.limit), "constant"
    elif is_monotone(arch):
        peak, method = Peak(math.inf, far.limit), "monotone"
    else:
        theta = ntk(arch)
        ends = Peak(0.0, near.limit), Peak(math.inf, far.limit)
        peak, method = highest(lambda norms: along(theta, norms), ends, steepness(arch)), "search"
    return SupDiagonal(
        value=peak.height,
        attained_at=peak.place,
        limit_at_infinity=far.limit,
        limit_at_zero=near.limit,
        is_constant=constant,
        growth=growing,
        method=method,
        certified=False,
        arch=arch,
        cause=cause_of_growth(arch) if growing is not None else None,
    )


def _certify(found: SupDiagonal) -> SupDiagonal:
    from lnkernel.bounds.certified.enclosures import sup_diagonal_enclosure

    enclosure = sup_diagonal_enclosure(found.arch)[0]
    lower, upper = float(enclosure[0]), float(enclosure[1])
    return dataclasses.replace(
        found, value=upper, method="balls", certified=True, enclosure=(lower, upper)
    )


@register_supremum
def _value(arch: Node) -> float:
    return sup_diagonal(arch).value
