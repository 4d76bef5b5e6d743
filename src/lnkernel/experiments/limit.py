"""What theory says of infinitely wide networks trained on given data, as far as it says something."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from lnkernel.arch import Node
from lnkernel.bounds import FORMS, Bound, bound
from lnkernel.errors import (
    ActivationRangeError,
    GrowthError,
    KernelOverflowError,
    SingularGramError,
    UnresolvedEigenvalueError,
)
from lnkernel.gp.posterior import Posterior, posterior

NOISE = 1e-4  # where the data alone are too much for float64: a deviation of 0.01
UNRESOLVED = (SingularGramError, UnresolvedEigenvalueError)
REFUSED = (ActivationRangeError, GrowthError, KernelOverflowError)


@dataclass(frozen=True, eq=False)
class Limit:
    """The mean of infinitely wide networks at some points, and the bound on it; NaN is not known.

    Attributes:
        mean: at the points, (m,).
        bounds: by the names of their forms; infinite where C is.
        C, lambda_min: what they are made of.
        noise: 0, or the variance that was added because Θ(X, X) is singular to float64.
        no_bound: why there is none, or the empty text.
        posterior: of the data; None where the kernel is not computed at them.
    """

    mean: np.ndarray
    bounds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(FORMS, math.nan))
    C: float = math.nan
    lambda_min: float = math.nan
    noise: float = 0.0
    no_bound: str = ""
    posterior: Posterior | None = None


def limit_of(arch: Node, X: np.ndarray, y: np.ndarray, x: np.ndarray) -> Limit:
    """The limit of the networks of `arch` trained on (X, y), at the points x.

    The kernel of an analytic activation is so smooth that many points on a line make its Gram matrix
    singular to float64. Then the networks are those that are trained with noise.

    >>> import lnkernel as lnk
    >>> X, y = np.linspace(-1, 1, 3)[:, None], np.array([1.0, 0.0, 1.0])
    >>> limit_of(lnk.mlp(hidden=1), X, y, X).no_bound
    'Some way through the network passes no normalisation, so Θ(x, x) ~ 4·(|x|/√d)^2 as |x| → ∞.'
    """
    try:
        return _with_noise(arch, X, y, x, 0.0)
    except UNRESOLVED:
        return _with_noise(arch, X, y, x, NOISE)


def _with_noise(arch: Node, X: np.ndarray, y: np.ndarray, x: np.ndarray, noise: float) -> Limit:
    unknown = np.full(len(x), math.nan)
    try:
        post = posterior(arch, X, y, noise=noise)
    except REFUSED as problem:
        return Limit(unknown, no_bound=_first_sentence(problem))
    try:
        mean = np.asarray(post.mean(x))
    except REFUSED:
        mean = unknown
    try:
        made = bound(post)
    except REFUSED as problem:
        return Limit(mean, noise=noise, no_bound=_first_sentence(problem), posterior=post)
    return Limit(
        mean,
        {form: float(getattr(made, form)) for form in FORMS},
        C=made.C,
        lambda_min=made.lambda_min,
        noise=noise,
        no_bound=_why_infinite(made) if math.isinf(made.C) else "",
        posterior=post,
    )


def _why_infinite(made: Bound) -> str:
    """What `str(made.sup)` says below its headline."""
    _, reason = str(made.sup).split("\n", 1)
    return _first_sentence(reason)


def _first_sentence(said: object) -> str:
    """Without the remedies: they are for those who can change the network."""
    return " ".join(str(said).split()).split(". ")[0].rstrip(".") + "."
