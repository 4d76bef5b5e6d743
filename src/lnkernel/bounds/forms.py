"""The forms of the bound: their formulas, in words and as numbers."""

from __future__ import annotations

import math

FORMULAS = {
    "sharp": "max|y|·√(C·n/λ_min)",
    "paper": "n·max|y|·√(C/λ_min)",
    "norms": "n·max|y|·C/λ_min",
}
FORMS = ("rkhs", *FORMULAS)  # all bounds of a `Bound`, the tightest first


def formula(
    form: str, C: float, lam: float, n: int, largest: float, factor: float | None = None
) -> float:
    """B, in an order in which nothing overflows before it must."""
    if largest == 0:
        return 0.0  # the mean is 0 everywhere, whatever C is
    if math.isinf(C):
        return math.inf
    if form == "sharp":
        return largest * math.sqrt(C) * math.sqrt(n / lam)
    if form == "paper":
        return largest * math.sqrt(C) * (n / math.sqrt(lam))
    if form == "norms":
        return largest * (n * C / lam)
    return largest * (float(factor or 0.0) * C / lam / n)


def scaling(form: str, C: float, lam: float, n: int, factor: float | None) -> float:
    if form == "sharp":
        return n * math.sqrt(n * lam / C)
    if form == "paper":
        return n * n * math.sqrt(lam / C)
    return float(n * n) if form == "norms" else float(factor or 0.0)
