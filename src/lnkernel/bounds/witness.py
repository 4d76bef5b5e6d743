r"""An input at which the mean exceeds any given number: what happens without a normalisation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from lnkernel.arch import Node
from lnkernel.arch.facts import acts_on_positions
from lnkernel.arch.text import Architecture, as_architecture
from lnkernel.bounds.inequality import bound
from lnkernel.bounds.interpolant import Interpolant, interpolant
from lnkernel.bounds.mean_bound import mean_bound
from lnkernel.bounds.supremum import SupDiagonal, sup_diagonal
from lnkernel.check.arrays import Data, as_data
from lnkernel.check.numbers import as_number
from lnkernel.errors import (
    ActivationRangeError,
    ArchitectureError,
    BoundedMeanError,
    BoundedNetworkError,
    InputError,
    KernelOverflowError,
)
from lnkernel.evaluate.float64.expansion import has_series
from lnkernel.gp.large_targets import targets_too_large
from lnkernel.gram.kernel import Kernel, ntk
from lnkernel.types import Inputs, Targets

FARTHEST = 150  # power of ten: the squared norm is still in the range of float64
_MOST = 1e290  # of targets and coefficients, beside which Θ(x, X) still has room
TRUST = 10.0  # a mean counts if it is so many times larger than its rounding error may be
SOME = 8  # data points whose directions, sums and differences are tried; as many random ones
SLACK = 1.01  # for the rounding of an inequality
TIE = 1e-9  # relative; symmetric data have equal means both ways, but for rounding
EPS = float(np.finfo(np.float64).eps)
ENTRY = 10 * EPS  # how far an entry of Θ may be off, by the root of Θ(x,x)Θ(x',x')
INTEGRATED = 100 * EPS  # where activations are summed or integrated, at long inputs


@dataclass(frozen=True)
class Witness:
    """An input, a data set, and the mean there, larger than asked. `diverging_witness` makes it.

    Attributes:
        x: the input, (d,), or an image.
        value: the mean at x of the network trained on `X`, `y`; the output farthest out, if
            there are several.
        error: how far rounding may have moved `value`, estimated.
        X, y: the data set, yours or, where yours stays bounded along the rays tried, a small one.
        is_given_data: whether it is yours.
        above: what |value| exceeds.
        explanation: the same in words.

    >>> import lnkernel as lnk
    >>> w = lnk.diverging_witness(lnk.mlp(hidden=1), [[0.0], [1.0]], [0.0, 0.0])
    >>> w.is_given_data, abs(w.value) > w.above      # all targets 0: no witness from these data
    (False, True)
    """

    x: np.ndarray
    value: float
    error: float
    X: np.ndarray
    y: np.ndarray
    is_given_data: bool
    above: float
    explanation: str = field(repr=False)

    def __str__(self) -> str:
        return self.explanation


def diverging_witness(arch: Architecture, X: Inputs, y: Targets, above: float = 1e6) -> Witness:
    r"""An input x at which $|\Theta(x,X)\,\Theta(X,X)^{-1}y|$ exceeds `above`.

    The mean is followed along rays: through the data points, their sums and differences, the
    axes, and random directions, out to norms of 1e150, or to where an activation's inputs are longer
    than its kernel is computed for. A value counts only where it stands out from its rounding error. Data
    that stay bounded along all of them (all targets 0, for example) are replaced by one point with target 1,
    from which $\Theta(rx_1, x_1)/\Theta(x_1, x_1)$ grows without limit in r; the result says so.

    A network with a finite $C = \sup\Theta(x, x)$ has no witness: the error states its bound. Nor has one
    whose activations are bounded, though its $\Theta(x, x)$ may grow (`mean_bound`). Networks on images of which
    `sup_diagonal` knows nothing have one where $\Theta(x, x)$ is seen to grow.

    >>> import lnkernel as lnk
    >>> w = lnk.diverging_witness(lnk.mlp(hidden=2), [[-1.0], [0.5], [2.0]], [1.0, 0.0, 1.0])
    >>> abs(w.value) > 1e6, w.is_given_data
    (True, True)
    """
    above = _checked_above(above)
    network = as_architecture(arch)
    data = as_data(X, y, acts_on_positions(network))
    network, law = _demand_growth(network, data)
    found = _along_rays(network, data, above)
    if found is not None:
        return _witness(law, data, found, above, is_given=True)
    small = _one_point(data)
    found = _along_rays(network, small, above)
    if found is None:
        raise InputError(
            "above",
            "a number that the mean reaches at inputs whose kernels are computed",
            f"{above:g}",
            "Ask for a smaller one: Θ(x, X) ends before the mean gets there, because it overflows, or because the "
            "kernel of an activation is not computed for inputs so long",
        )
    return _witness(law, small, found, above, is_given=False)


def _demand_growth(arch: Node, data: Data) -> tuple[Node, str]:
    """The network and why its mean is not bounded, in words; an error where it is bounded, or nothing is known.

    An image with a large mean needs no proof: where there is none of C, it is enough that Θ(x, x) is seen to grow.
    """
    try:
        sup = sup_diagonal(arch)
    except ArchitectureError:
        if acts_on_positions(arch) and _grows(ntk(arch), _one_point(data).x):
            return arch, "Θ(x, x) grows with the contrast of an image"
        raise
    if math.isfinite(sup.value):
        raise BoundedNetworkError(*_bound_in_words(sup, data))
    _refuse_bounded_activations(sup.arch, data)
    if sup.growth is None:
        return sup.arch, "Θ(x, x) is not bounded near x = 0"
    exponent = f"{sup.growth.exponent:.4g}"
    return sup.arch, f"Θ(x, x) ~ {sup.growth.coefficient:.4g}·(|x|/√d)^{exponent} as |x| → ∞"


def _grows(theta: Kernel, image: np.ndarray) -> bool:
    """Whether Θ(x, x) is more than twice as large at a contrast that is a thousand times as large."""
    near, far = theta.diagonal(np.concatenate([1e3 * image, 1e6 * image]))
    return bool(far > 2 * near)


@dataclass(frozen=True)
class _Found:
    x: np.ndarray
    value: float
    error: float


@dataclass(frozen=True)
class _Mean:
    """The mean as a function, with an estimate of its rounding error."""

    theta: Kernel
    data: Data
    fit: Interpolant

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The largest of the outputs, (m,), and its error.

        An entry of Θ(x, X) is known to so much of √(Θ(x,x)Θ(X,X)), and the coefficients solve a matrix that
        is so far from the right one.
        """
        row = np.asarray(self.theta(x, self.data.x))
        ends = np.sqrt(np.asarray(self.theta.diagonal(x)))
        own = np.sqrt(np.asarray(self.theta.diagonal(self.data.x)))
        a = self.fit.largest * self.fit.coefficients
        means = row @ a
        best = np.argmax(np.abs(means), axis=1)
        n = len(own)
        a_best = np.abs(a[:, best])  # (n, m)
        # |δmean| ≤ |δrow·a| + |row·Θ⁻¹δΘ a|, and |row·Θ⁻¹v| ≤ √(Θ(x,x))·|v|/√λ_min
        shaken = (own[:, None] * a_best).sum(axis=0)
        through = np.linalg.norm(own) / math.sqrt(self.fit.lambda_min.value)
        entry = n * EPS + (INTEGRATED if has_series(self.theta.arch) else ENTRY)
        error = entry * ends * shaken * (1 + through)
        return means[np.arange(len(x)), best], error

    def most(self, x: np.ndarray) -> float:
        """No output is larger at these inputs: |mean(x)|² ≤ Θ(x, x)·aᵀΘa, which is cheap at every length."""
        native = self.fit.largest * float(self.fit.norms.max())
        ends = float(np.asarray(self.theta.diagonal(x)).max())
        return SLACK * math.sqrt(ends) * native


def _along_rays(arch: Node, data: Data, above: float) -> _Found | None:
    """The nearest of the inputs tried whose mean certainly exceeds `above`."""
    fit = interpolant(arch, data, noise=0.0)
    if fit.largest == 0:
        return None
    with np.errstate(over="ignore"):
        if not fit.largest * np.abs(fit.coefficients).max() < _MOST:
            raise targets_too_large(data.y, "the outputs far from the data")
    mean, rays = _Mean(ntk(arch), data, fit), _directions(data.x)
    size = max(1.0, float(np.abs(data.x).max()))
    steps = [*range(1, 20), *range(20, FARTHEST, 5)]
    for power in [*steps, *(-step for step in steps)]:
        x = rays * (size * 10.0**power)
        try:
            hit = _first_hit(mean, x, above) if mean.most(x) > above else None
        except (ActivationRangeError, InputError, KernelOverflowError):
            continue  # Θ, or an image, has left the range of float64, or of integrals; the other way it may not have
        if hit is not None:
            return hit
    return None


def _first_hit(mean: _Mean, x: np.ndarray, above: float) -> _Found | None:
    values, errors = mean(x)
    good = (np.abs(values) - errors > above) & (np.abs(values) > TRUST * errors)
    if not good.any():
        return None
    sizes = np.where(good, np.abs(values), 0.0)
    best = int(
        np.argmax(sizes > (1 - TIE) * sizes.max())
    )  # the first of those that are the largest
    return _Found(x[best], float(values[best]), float(errors[best]))


def _directions(x: np.ndarray) -> np.ndarray:
    """Unit vectors both ways: of data points, sums and differences, axes, random ones."""
    flat = x.reshape(len(x), -1)
    some, d = flat[:SOME], flat.shape[1]
    pairs = [(i, j) for i in range(len(some)) for j in range(i)]
    rows = [*some, *(some[i] + some[j] for i, j in pairs), *(some[i] - some[j] for i, j in pairs)]
    rows += [*np.eye(d)[:SOME], *np.random.default_rng(0).normal(size=(SOME, d)), np.ones(d)]
    table = np.array(rows)
    largest = np.abs(table).max(axis=1, keepdims=True)
    table = table[largest[:, 0] > 0] / largest[largest[:, 0] > 0]
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    rays = np.unique(np.concatenate([table, -table]), axis=0)
    return rays.reshape(-1, *x.shape[1:])


def _one_point(data: Data) -> Data:
    """The first point that is not zero, with target 1."""
    alive = np.flatnonzero((data.x != 0).reshape(len(data.x), -1).any(axis=1))
    point = data.x[alive[0]] if alive.size else np.ones(data.x.shape[1:])
    return as_data(point[None], np.ones(1), data.x.ndim > 2)


def _witness(law: str, data: Data, found: _Found, above: float, is_given: bool) -> Witness:
    whose = (
        "Trained on your data, the network's mean"
        if is_given
        else "Along the rays tried, the mean of the network trained on your data does not exceed "
        f"{above:g}; but trained on the single point X with target 1 it"
    )
    text = (
        f"{whose} is {found.value:.6g} (± {found.error:.1g}) at an input of norm "
        f"{np.linalg.norm(found.x):.6g}, beyond {above:g}. The reason: {law}."
    )
    y = data.y[:, 0] if data.one_output else data.y
    return Witness(found.x, found.value, found.error, data.x, y, is_given, above, text)


def _refuse_bounded_activations(arch: Node, data: Data) -> None:
    """Θ(x, x) grows, but the mean does not where that is proved."""
    try:
        proved = mean_bound(arch, data.x, data.y)
    except ArchitectureError:
        return
    raise BoundedMeanError(proved.value)


def _bound_in_words(sup: SupDiagonal, data: Data) -> tuple[float, float]:
    """C, and the tightest bound for these data."""
    return sup.value, bound(sup.arch, data.x, data.y).rkhs


def _checked_above(above: object) -> float:
    number = as_number(above)
    if number is None or not 0 < number < math.inf:
        raise InputError("above", "a positive, finite number", repr(above), "Write e.g. above=1e6")
    return number
