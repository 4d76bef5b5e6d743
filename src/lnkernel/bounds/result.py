"""What `bound` returns, in numbers and in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import jax
import numpy as np

from lnkernel.bounds.digits import at_least, at_most
from lnkernel.bounds.forms import FORMULAS, formula
from lnkernel.bounds.supremum import SupDiagonal
from lnkernel.check import as_inputs
from lnkernel.gram.kernel import ntk
from lnkernel.precision import handed_out, x64_is_on
from lnkernel.types import MorePoints, Values

if TYPE_CHECKING:
    from lnkernel.bounds.certified.certificate import Certificate


@dataclass(frozen=True)
class Bound:
    r"""A bound on $|E f(x)|$ for every x, with all that it is made of. `bound` makes it.

    Attributes:
        value: $B = s\,C \max|y|/(\lambda_{\min} n)$.
        C: sup Θ(x, x).
        lambda_min: the smallest eigenvalue of Θ(X, X) + noise·I.
        lambda_error: how far the exact one may be from it; 0 where it is a certified lower bound.
        n: the number of points.
        max_abs_y: the largest target, over all points and outputs.
        s: the scaling factor, as a number.
        form: "sharp", "paper", "norms", or "given" if s was a number.
        rkhs: $\sqrt{C\,a^T\Theta a}$ with $a = (\Theta + \mathrm{noise}\,I)^{-1}y$, the tightest; of
            several outputs the largest. Without noise it is $\sqrt{C\,y^T\Theta^{-1}y}$.
        is_theorem: whether $|E f(x)| \le$ value is proved.
        certified: whether rounding errors are accounted for rigorously as well.
        noise: the variance that was added to the diagonal.
        certificate: a `Certificate`, which can be saved and verified, or None.

    >>> import lnkernel as lnk
    >>> b = lnk.bound(lnk.mlp(hidden=2, norm="first"), [[-1.0], [0.0], [1.0]], [1.0, 0.0, 1.0])
    >>> b.rkhs <= b.sharp <= b.paper <= b.norms
    True
    """

    value: float
    C: float
    lambda_min: float
    lambda_error: float
    n: int
    max_abs_y: float
    s: float
    form: str
    rkhs: float
    is_theorem: bool
    certified: bool
    noise: float
    certificate: Certificate | None = field(repr=False)
    sup: SupDiagonal = field(repr=False)
    dimension: int = field(repr=False)
    native_norm: float = field(repr=False)  # √(aᵀΘa), the norm of the mean in the space of Θ

    def __float__(self) -> float:
        return self.value

    @property
    def sharp(self) -> float:
        """max|y|·√(C·n/λ_min), the least B of the form s·C·max|y|/(λ_min·n) for all targets."""
        return formula("sharp", self.C, self.lambda_min, self.n, self.max_abs_y)

    @property
    def paper(self) -> float:
        """n·max|y|·√(C/λ_min)."""
        return formula("paper", self.C, self.lambda_min, self.n, self.max_abs_y)

    @property
    def norms(self) -> float:
        """n·max|y|·C/λ_min, the product of the norms of Θ(x, X), of the inverse, and of y."""
        return formula("norms", self.C, self.lambda_min, self.n, self.max_abs_y)

    def at(self, x: MorePoints) -> Values:
        r"""The bound at points x (m, d): $\sqrt{\Theta(x,x)\;a^T\Theta a}$, (m,), float64.

        It is in float64, also where the bound for all x is certified.

        >>> import lnkernel as lnk
        >>> b = lnk.bound(lnk.mlp(), [[1.0]], [2.0])      # one point, no LayerNorm
        >>> b.value, b.at([[1.0], [-3.0]]).round(3).tolist()
        (inf, [2.0, ...])
        """
        was_on = x64_is_on()
        points = as_inputs(x, self.dimension)
        spread = np.sqrt(np.asarray(ntk(self.sup.arch).diagonal(points)))
        with jax.enable_x64(True):
            return handed_out(spread * self.native_norm, was_on)

    def __str__(self) -> str:
        return _in_words(self)


def _in_words(b: Bound) -> str:
    """The statement, then each ingredient on a line of its own."""
    return "\n".join([_statement(b), *(f"  {name:9} {text}" for name, text in _ingredients(b))])


def _statement(b: Bound) -> str:
    mean = "the expected output of the trained, infinitely wide network"
    if b.max_abs_y == 0:
        return f"Every target is 0, so {mean} is 0 everywhere: the bound is 0."
    if math.isinf(b.value):
        other = (
            ""
            if b.sup.cause is None
            else "; for bounded activations `mean_bound` does so everywhere"
        )
        return (
            f"The theorem bounds {mean} by no finite number for every x, because C = sup Θ(x, x) is "
            f"infinite. `at(x)` bounds it at a point{other}."
        )
    if not b.is_theorem:
        return (
            f"NOT A THEOREM: the formula gives {b.value:.6g} with s = {b.s:.6g}, but nothing proves "
            f"that {mean} stays below it."
        )
    proof = (
        "Proved, rounding errors included."
        if b.certified
        else "A theorem, evaluated in float64: rounding errors are not accounted for."
    )
    return (
        f"{mean[0].upper()}{mean[1:]} is at most {at_most(b.value)} in absolute value for every x, "
        f"however far from the data. {proof}"
    )


def _ingredients(b: Bound) -> list[tuple[str, str]]:
    literal = f"s·C·max|y|/(λ_min·n) with s = {b.s:.6g}"
    formula = f"{FORMULAS[b.form]}, that is {literal}" if b.form in FORMULAS else literal
    matrix = "Θ(X, X)" if b.noise == 0 else f"Θ(X, X) + {b.noise:.6g}·I"
    lam = f"at least {at_least(b.lambda_min)}" if b.certified else f"{b.lambda_min:.6g}"
    error = "" if b.lambda_error == 0 else f" ± {b.lambda_error:.1g}"
    native = "yᵀΘ⁻¹y)" if b.noise == 0 else "aᵀΘa) with a = (Θ + noise·I)⁻¹y"
    rows = [
        ("B", f"{at_most(b.value)} = {formula}" if math.isfinite(b.C) else at_most(b.value)),
        ("C", " ".join(str(b.sup).removeprefix("C = ").split())),
        ("λ_min", f"{lam}{error}, the smallest eigenvalue of {matrix}"),
        ("n", f"{b.n} point{'' if b.n == 1 else 's'}"),
        ("max|y|", f"{b.max_abs_y:.6g}"),
    ]
    if 0 < b.rkhs < math.inf:
        rows.append(
            ("rkhs", f"{at_most(b.rkhs)} = √(C·{native}, the tightest bound; use it where you can")
        )
    return rows
