r"""$B(D)$: how large the expected output of a trained, infinitely wide network can ever be."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import TYPE_CHECKING

import numpy as np

from lnkernel.arch import Node
from lnkernel.arch.facts import mixes_positions
from lnkernel.arch.text import Architecture
from lnkernel.bounds.forms import FORMULAS, formula, scaling
from lnkernel.bounds.interpolant import Interpolant, interpolant, interpolant_of
from lnkernel.bounds.problem import Problem, problem
from lnkernel.bounds.result import Bound
from lnkernel.bounds.supremum import SupDiagonal, sup_diagonal
from lnkernel.check.arrays import shape_of_one
from lnkernel.check.numbers import as_flag, as_number
from lnkernel.errors import InputError, NotATheoremWarning
from lnkernel.gp.duplicates import refuse_duplicates
from lnkernel.gp.noise import Variance
from lnkernel.gp.posterior import Posterior
from lnkernel.gram.memory import demand_memory
from lnkernel.precision import demand_plain_numbers
from lnkernel.types import Noise, Points, Targets

if TYPE_CHECKING:
    from lnkernel.bounds.certified.certificate import Certificate

ULPS = 8 * float(np.finfo(np.float64).eps)  # a few roundings; two equal formulas differ by no more


def bound(
    arch: Architecture | Posterior,
    X: Points | None = None,
    y: Targets | None = None,
    s: str | float = "sharp",
    noise: Noise = 0.0,
    certify: bool = False,
) -> Bound:
    r"""$B(D) = s\,C \max|y|/(\lambda_{\min}\,n)$ with $|\Theta(x,X)\,\Theta(X,X)^{-1}y| \le B(D)$ for
    every x: how large the expected output of the trained network can be, anywhere.

    Args:
        arch: the network, or its text; without a normalisation the bound is infinite. It may
            also be a `posterior` with kernel="ntk": then X, y and noise are those of the posterior
            and are left out, and the Gram matrix is not computed again.
        X: inputs, (n, d).
        y: targets, (n,) or (n, k); the bound holds for each output.
        s: "sharp", $n\sqrt{n\lambda_{\min}/C}$, which gives $\max|y|\sqrt{Cn/\lambda_{\min}}$;
            "paper", $n^2\sqrt{\lambda_{\min}/C}$, which gives $n\max|y|\sqrt{C/\lambda_{\min}}$;
            "norms", $n^2$, which gives $n\max|y|\,C/\lambda_{\min}$; or a number, used as it is: a
            warning follows if the formula is then no theorem.
        noise: variance of the targets' noise, added to the diagonal of Θ(X, X), or one for each point, (n,).
        certify: whether to prove every digit, in ball arithmetic.

    The expectation is over random initialisations, for gradient flow on the squared error in the
    NTK parametrisation, at infinite width. docs/bound.md has the proofs.

    >>> import numpy as np, lnkernel as lnk
    >>> X = np.linspace(-5, 5, 100)[:, None]
    >>> b = lnk.bound(lnk.mlp(hidden=2, norm="first"), X, np.sin(X[:, 0]))
    >>> round(float(b), 1), round(b.rkhs, 2), round(b.C, 2), b.is_theorem
    (1377.7, 27.05, 3.03, True)
    >>> post = lnk.posterior(lnk.mlp(hidden=2, norm="first"), X, np.sin(X[:, 0]))
    >>> lnk.bound(post).rkhs == b.rkhs
    True
    """
    demand_plain_numbers("bound", arch, X, y, s, noise)
    form, factor = _checked_s(s)
    proved = as_flag("certify", certify)
    asked = problem(arch, X, y, noise)
    data = asked.data
    sup = sup_diagonal(asked.arch)
    is_floor = False
    if proved:
        refuse_duplicates(data, asked.noise)
        demand_memory(len(data.x), 3, "The enclosed Gram matrix")  # middles, radii, work space
        ingredients, sup, certificate = _certify(sup, data.x, data.y, asked.noise)
    else:
        solved = _solve(sup.arch, asked)
        ingredients, certificate, is_floor = _in_float64(sup, solved), None, solved.is_floor
    C, lam, lam_error, largest, native_norm, rkhs = ingredients
    n = len(data.x)
    value = formula(form, C, lam, n, largest, factor)
    if certificate is None:
        least = min(formula(name, C, lam, n, largest) for name in ("sharp", "norms"))
        is_theorem = value >= least * (1 - ULPS)
    else:
        least = float(certificate.sharp_upper)
        value = value if form == "given" else max(least, 0.0 if form == "sharp" else _up(value))
        is_theorem = value >= least
    if not is_theorem:
        _warn(factor, C, lam, n)
    return Bound(
        value=value,
        C=C,
        lambda_min=lam,
        lambda_error=lam_error,
        n=n,
        max_abs_y=largest,
        s=scaling(form, C, lam, n, factor),
        form=form,
        rkhs=rkhs,
        is_theorem=is_theorem,
        certified=certificate is not None and is_theorem,
        noise=asked.noise,
        certificate=certificate,
        sup=sup,
        dimension=shape_of_one(data.x),
        native_norm=native_norm,
        lambda_is_floor=is_floor,
    )


Ingredients = tuple[float, float, float, float, float, float]


def _solve(arch: Node, asked: Problem) -> Interpolant:
    if asked.fit is not None:
        return interpolant_of(asked.fit)
    return interpolant(arch, asked.data, asked.noise)


def _in_float64(sup: SupDiagonal, fit: Interpolant) -> Ingredients:
    native = fit.largest * float(fit.norms.max())
    rkhs = math.sqrt(sup.value) * native if native else 0.0
    return sup.value, *fit.lambda_min, fit.largest, native, rkhs


def _certify(
    sup: SupDiagonal, x: np.ndarray, y: np.ndarray, noise: Variance
) -> tuple[Ingredients, SupDiagonal, Certificate]:
    if mixes_positions(sup.arch):
        raise InputError(
            "certify",
            "a network that compares equal positions alone: kernels behind a pooling have no ball arithmetic here",
            "one that pools",
            "Leave certify out; sup_diagonal(arch, certify=True) certifies C of such a network, and with it the bound "
            "√(C·aᵀΘa) is proved but for the rounding of the data's part",
        )
    if math.isinf(sup.value):
        raise InputError(
            "certify",
            "a network with a finite C = sup Θ(x, x)",
            "one whose C is infinite",
            "Put a LayerNorm before the last layer, or use certify=False",
        )
    from lnkernel.bounds.certified.certificate import certify_bound

    made = certify_bound(sup.arch, x, y[:, 0] if y.shape[1] == 1 else y, noise=noise)
    lower, C = float(made.C.lower), float(made.C.upper)
    sup = dataclasses.replace(sup, value=C, method="balls", certified=True, enclosure=(lower, C))
    ingredients = (
        C,
        float(made.lambda_min_lower),
        0.0,
        float(made.max_abs_y),
        float(made.norm_upper),
        float(made.rkhs_upper),
    )
    return ingredients, sup, made


def _up(value: float) -> float:
    """At least the exact value of a formula of a few roundings."""
    return value * (1 + ULPS)


def _checked_s(s: object) -> tuple[str, float | None]:
    """The form's name, and the factor if it is a number."""
    if isinstance(s, str) and s in FORMULAS:
        return s, None
    names = 'Use "sharp", "paper" or "norms", or a number above 0'
    factor = as_number(s)
    if factor is None:
        raise InputError("s", "the name of a form or a number", repr(s), names)
    if not 0 < factor < math.inf:
        raise InputError("s", "a positive, finite number", repr(s), names)
    return "given", factor


def _warn(factor: float | None, C: float, lam: float, n: int) -> None:
    least = min(scaling("sharp", C, lam, n, None), scaling("norms", C, lam, n, None))
    warnings.warn(
        f"with s = {factor:.6g} the formula s·C·max|y|/(λ_min·n) is not a theorem: the proof needs "
        f's >= {least:.6g} for these inputs. s="sharp" chooses that; `rkhs` is tighter still.',
        NotATheoremWarning,
        stacklevel=3,
    )
