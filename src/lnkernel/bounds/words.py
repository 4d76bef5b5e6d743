"""What a bound says, in plain words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lnkernel.bounds.digits import at_least, at_most

if TYPE_CHECKING:
    from lnkernel.bounds.inequality import Bound


def in_words(b: Bound) -> str:
    """The statement, then each ingredient on a line of its own."""
    return "\n".join([_statement(b), *(f"  {name:9} {text}" for name, text in _ingredients(b))])


def _statement(b: Bound) -> str:
    mean = "the expected output of the trained, infinitely wide network"
    if b.max_abs_y == 0:
        return f"Every target is 0, so {mean} is 0 everywhere: the bound is 0."
    if math.isinf(b.value):
        return (
            f"No finite number bounds {mean} for every x, because C = sup Θ(x, x) is infinite. "
            "`at(x)` bounds it at a point."
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
    from lnkernel.bounds.inequality import FORMULAS

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
