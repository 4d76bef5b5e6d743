"""`fit`: hyperparameters by the log marginal likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy

from lnkernel.arch import Node
from lnkernel.arch.text import Architecture, as_architecture
from lnkernel.check.arrays import Data, as_data
from lnkernel.check.numbers import positive_integer
from lnkernel.errors import InputError
from lnkernel.gp.duplicates import refuse_duplicates
from lnkernel.gp.evidence import evidence
from lnkernel.gp.fit import fit as factorise
from lnkernel.gp.hyperparameters import NOISE, Parameter, parameters_of, with_values
from lnkernel.gp.large_targets import targets_too_large
from lnkernel.gp.noise import Variance, as_variance, noise_in_words
from lnkernel.gp.posterior import Posterior, known_kernel, posterior
from lnkernel.precision import demand_plain_numbers
from lnkernel.progress import Bar
from lnkernel.types import Diagonal, Noise, Points, Targets, Values

RANGE = 1e4  # a hyperparameter is searched for within this factor of its start,
SPREAD = 10.0  # and other starts are within this factor of the first
PRECISION = 1e-13  # relative change of the likelihood in a step at which the search ends
FLAT = 1e-3  # largest slope of log p by the logarithm of a parameter where a search has converged


@dataclass(frozen=True, eq=False)
class Start:
    """One search: from where, to where.

    Attributes:
        start, end: the values of the hyperparameters, by name.
        value: log p(y | X) at the end.
        trace: log p(y | X) at the start and after every step.
        converged: whether the search ended by itself, where log p is flat: its slope by the logarithm of a
            parameter that is not at the edge of its range is below 0.001.
        message: why it ended.
    """

    start: dict[str, float]
    end: dict[str, float]
    value: float
    trace: Values = field(repr=False)
    converged: bool
    message: str = field(repr=False)


@dataclass(frozen=True, eq=False)
class HyperparameterFit:
    """The hyperparameters that make the data most likely. `fit` makes it.

    Attributes:
        arch: the network with these hyperparameters.
        noise: the variance of the noise, found or as given.
        value: log p(y | X), the largest of all starts.
        parameters: what was searched for, by name.
        kernel: "ntk" or "nngp".
        trace: log p(y | X) at the start and after every step, of the best search.
        converged: whether the best search has converged.
        at_edge: names of those that ended at the edge of their range, where the likelihood still rises.
        starts: all searches, in the order of their starts.

    >>> import lnkernel as lnk
    >>> linear = lnk.serial(lnk.Dense(1, b_std=1.0))
    >>> found = lnk.fit(linear, [[-1.0], [0.0], [1.0]], [1.0, 0.1, -1.2], over="noise")
    >>> found.converged, bool(found.trace[-1] == found.value), list(found.parameters)
    (True, True, ['noise'])
    """

    arch: Node
    noise: float | Diagonal
    value: float
    parameters: dict[str, float]
    kernel: str
    trace: Values = field(repr=False)
    converged: bool
    at_edge: tuple[str, ...]
    starts: tuple[Start, ...] = field(repr=False)
    _data: Data = field(repr=False)

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior of the data with these hyperparameters."""
        y = self._data.y[:, 0] if self._data.one_output else self._data.y
        return posterior(self.arch, self._data.x, y, self.kernel, self.noise)

    def __str__(self) -> str:
        shown = {name: f"{value:.6g}" for name, value in self.parameters.items()}
        shown = {NOISE: noise_in_words(self.noise)} | shown
        values = ", ".join(f"{name} = {text}" for name, text in shown.items())
        edge = f" At the edge of their range: {', '.join(self.at_edge)}." if self.at_edge else ""
        end = (
            ""
            if self.converged
            else " The search did not converge: allow more steps, or start elsewhere."
        )
        best = f"the best of {len(self.starts)} starts" if len(self.starts) > 1 else "one start"
        return (
            f"log p(y | X) = {self.value:.6g} with {values} "
            f"({best}, {len(self.trace) - 1} steps).{edge}{end}"
        )


def fit(
    arch: Architecture,
    X: Points,
    y: Targets,
    over: str | Sequence[str] = ("W_std", "b_std", "noise"),
    kernel: str = "ntk",
    noise: Noise = 0.0,
    starts: int = 1,
    steps: int = 100,
    seed: int = 0,
    progress: bool | None = None,
) -> HyperparameterFit:
    r"""The hyperparameters that maximise
    $\log p(y \mid X) = -\frac12 y^T A^{-1}y - \frac12\log\det A - \frac n2\log 2\pi$, by L-BFGS with exact gradients.

    Args:
        arch: the network, or its text; its own hyperparameters are the first start.
        X: inputs, (n, d).
        y: targets, (n,) or (n, k); several outputs share the hyperparameters.
        over: what to search over. A name, "W_std", is one number for all layers that have it; a path,
            "layers[0].W_std", is that of one layer; "layers[*].W_std" is one for each. "noise" is the
            variance of the targets' noise.
        kernel: "ntk" or "nngp", as of `posterior`.
        noise: the variance, or where the search for it starts (by default at 1% of the mean square of y). If it
            is not searched for, it may be a variance for each point.
        starts: the number of searches; all but the first start at random, within a factor of 10.
        steps: of each search, at most.
        seed: of the random starts. The same seed gives the same result.
        progress: whether to show a bar; by default if it takes long.

    A number keeps its sign, is searched for by its logarithm, and within a factor of 10,000 of its start; a number that
    is 0 is refused, because it is structure.

    >>> import numpy as np, lnkernel as lnk
    >>> X = np.linspace(-2, 2, 12)[:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.cos(37 * X[:, 0])
    >>> found = lnk.fit(lnk.mlp(hidden=1), X, y, over=("W_std", "noise"))
    >>> before = lnk.posterior(lnk.mlp(hidden=1), X, y, noise=0.01).log_marginal_likelihood()
    >>> found.converged, found.value > before, found.posterior.mean([[0.5]]).shape
    (True, True, (1,))
    """
    demand_plain_numbers("fit", arch, X, y, noise)
    network, which = as_architecture(arch), known_kernel(kernel)
    data = as_data(X, y)
    variance = as_variance(noise, len(data.x))
    parameters = parameters_of(network, over, variance, data)
    count, most = positive_integer("starts", starts), positive_integer("steps", steps)
    objective = _Objective(network, which, data, variance, parameters)
    objective.demand_a_start()
    firsts = _starts(parameters, count, seed)
    with Bar(progress, count * most, "steps", "fitting hyperparameters") as bar:
        searches = tuple(_search(objective, first, most, bar) for first in firsts)
    best = max(searches, key=lambda search: search.value)
    values = np.array(list(best.end.values()))
    found, found_noise = with_values(network, variance, parameters, values)
    edges = [
        abs(np.log(values[i] / one.start)) > np.log(RANGE) * (1 - 1e-9)
        for i, one in enumerate(parameters)
    ]
    return HyperparameterFit(
        found,
        found_noise,
        best.value,
        best.end,
        which,
        best.trace,
        best.converged,
        tuple(one.name for one, edge in zip(parameters, edges, strict=True) if edge),
        searches,
        data,
    )


@dataclass
class _Objective:
    """-log p(y | X) as a function of the logarithms of the parameters' sizes."""

    arch: Node
    which: str
    data: Data
    noise: Variance
    parameters: list[Parameter]
    _last: tuple[np.ndarray, float] | None = None  # where there was a likelihood, and minus it

    def values(self, logarithms: np.ndarray) -> np.ndarray:
        return np.sign([one.start for one in self.parameters]) * np.exp(logarithms)

    def __call__(self, logarithms: np.ndarray) -> tuple[float, np.ndarray]:
        """Where there is no likelihood in float64, a hill that leads back to where there was one.

        Infinity, with no slope, would be taken for the end of the search.
        """
        values = self.values(logarithms)
        arch, noise = with_values(self.arch, self.noise, self.parameters, values)
        found = evidence(arch, self.which, self.data, noise)
        if found is None:
            place, height = self._last or (logarithms, 0.0)
            way, steep = logarithms - place, 1 + abs(height)
            return height + steep * (1 + float(way @ way)), 2 * steep * way
        self._last = logarithms.copy(), -found.value
        slopes = np.array(
            [
                found.by_leaves[list(one.leaves)].sum() if one.leaves else found.by_noise
                for one in self.parameters
            ]
        )
        return -found.value, -slopes * values

    def demand_a_start(self) -> None:
        """The error that explains it, if the first start has no likelihood."""
        values = np.array([one.start for one in self.parameters])
        arch, noise = with_values(self.arch, self.noise, self.parameters, values)
        refuse_duplicates(self.data, noise)
        y = self.data.y
        made = factorise(arch, self.which, self.data.x, y, noise)
        with np.errstate(over="ignore"):
            squares = made.misfit() + np.square(made.coefficients).sum()
        if not np.isfinite(squares):
            raise targets_too_large(y, "the likelihood")


def _starts(parameters: list[Parameter], count: int, seed: int) -> list[np.ndarray]:
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError("seed", "an integer, at least 0", repr(seed), "Write e.g. seed=0")
    first = np.log(np.abs([one.start for one in parameters]))
    rng = np.random.default_rng(seed)
    others = rng.uniform(-np.log(SPREAD), np.log(SPREAD), (count - 1, len(first)))
    return [first, *(first + shift for shift in others)]


def _search(objective: _Objective, first: np.ndarray, steps: int, bar: Bar) -> Start:
    names = [one.name for one in objective.parameters]
    centre = np.log(np.abs([one.start for one in objective.parameters]))
    value, slopes = objective(first)
    trace, size = [-value], max(1.0, float(np.linalg.norm(slopes)))

    def scaled(x: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective with a slope of 1 at the start, so that the first step is no leap."""
        value, slopes = objective(x)
        return value / size, slopes / size

    def note(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        trace.append(-size * float(intermediate_result.fun))
        bar.update(1, f"log p = {trace[-1]:.6g}")

    edges = [(c - np.log(RANGE), c + np.log(RANGE)) for c in centre]
    found = scipy.optimize.minimize(
        scaled,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=edges,
        callback=note,
        options={"maxiter": steps, "ftol": PRECISION, "gtol": FLAT / (10 * size)},
    )
    inside = np.array([low < x < high for x, (low, high) in zip(found.x, edges, strict=True)])
    steepest = size * float(np.abs(found.jac[inside]).max(initial=0.0))
    bar.update(max(0, steps - (len(trace) - 1)))
    start, end = (
        dict(zip(names, map(float, objective.values(x)), strict=True)) for x in (first, found.x)
    )
    return Start(
        start,
        end,
        -size * float(found.fun),
        np.array(trace),
        bool(found.success) and steepest < FLAT,
        f"{found.message}; largest slope {steepest:.2g}",
    )
