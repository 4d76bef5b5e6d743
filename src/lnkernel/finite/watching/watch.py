r"""Measurements along training: `w = watch(X, y)`, `train(..., watch=w)`, `w.table`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from lnkernel.errors import InputError
from lnkernel.finite.training.fingerprint import digest
from lnkernel.finite.watching import local_measures as near
from lnkernel.finite.watching import measures as built_in
from lnkernel.finite.watching.critical import CriticalTime, critical_time
from lnkernel.finite.watching.measures import Measure, factor
from lnkernel.finite.watching.picture import draw
from lnkernel.finite.watching.steps import At, choose_steps
from lnkernel.finite.watching.table import Table, tidy_rows
from lnkernel.tangents.correlation import DistanceBins, distance_bins
from lnkernel.types import Inputs, Targets

USUAL = ("loss", "loss_rate", "sharpness", "kta", "alignment", "drift")
PLAIN: dict[str, Measure] = {
    "lambda_max": built_in.lambda_max,
    "eigenvalues": built_in.eigenvalues(),
    "eigenvalue_error": built_in.eigenvalue_error,
    "alignment": built_in.alignment(),
    "kta": built_in.kta,
    "cka": built_in.cka(),
    "drift": built_in.drift,
    "kernel_drift": built_in.kernel_drift,
    "gradient_variance": built_in.gradient_variance,
    "mag_ma": near.mag_ma,
    "min_cosine": near.min_cosine,
}
OF_LOSS: dict[str, type[built_in.Loss] | type[built_in.Sharpness]] = {
    "loss": built_in.Loss,
    "sharpness": built_in.Sharpness,
}
OF_DISTANCE: Mapping[str, Callable[[str, DistanceBins], Measure]] = {
    "correlation_floor": near.CorrelationFloor,
    "correlation_length": near.CorrelationLength,
}
RATE = "loss_rate"  # is made from the loss, afterwards
NAMES = (*OF_LOSS, RATE, *PLAIN, *OF_DISTANCE)
Measures = Sequence[str | Measure] | Mapping[str, str | Measure]


class Watch:
    """What to measure while networks train, and what was measured; `watch` makes it.

    Each training that it is given to replaces what the one before has left in it.

    Attributes:
        X, y: what is measured at.
        names: the measures, in their order.
        loss: the normalization of the loss and the sharpness: "sum", "half-mean" or "mean".
        seeds: of the networks that were watched.
        steps: after how many steps it was measured, (m,).
    """

    def __init__(self, X: Inputs, y: Targets, measures: Measures, at: At, loss: str):
        factor(loss, 1)
        self.X, self.y, self.loss, self._at = X, y, loss, at
        choose_steps(at, 1)
        given = _name_measures(measures)
        self.names = list(given)
        self.measured: dict[str, Measure] = {}  # what the program computes
        for name, measure in given.items():
            if measure == RATE:
                self.measured.setdefault("loss", built_in.Loss(loss))
            else:
                self.measured[name] = self._find(measure) if isinstance(measure, str) else measure
        self._rates = {name for name, measure in given.items() if measure == RATE}
        self.seeds: list[int] = []
        self.steps: Int[np.ndarray, " m"] = np.zeros(0, int)
        self._values: dict[str, np.ndarray] = {}

    def __repr__(self) -> str:
        what = f"Watch({', '.join(self.names)}; loss={self.loss!r}"
        return f"{what}; {len(self.seeds)} networks, {len(self.steps)} measurements)"

    def _find(self, name: str) -> Measure:
        if name in OF_LOSS:
            return OF_LOSS[name](self.loss)
        if name in OF_DISTANCE:
            return OF_DISTANCE[name](digest(np.asarray(self.X)), self._bins)
        if name not in PLAIN:
            raise InputError(
                "measures",
                f"functions of (tangent, X, y), or names among {', '.join(NAMES)}",
                repr(name),
                "Functions with arguments are in lnkernel.finite.measures",
            )
        return PLAIN[name]

    @cached_property
    def _bins(self) -> DistanceBins:
        """All pairs of inputs by their distance."""
        return distance_bins(self.X)

    def choose_steps(self, steps: int) -> Int[np.ndarray, " m"]:
        """Where a run of so many steps is measured."""
        return choose_steps(self._at, steps)

    def take(self, seeds: list[int], steps: np.ndarray, values: dict[str, np.ndarray]) -> None:
        """Take over what a run has measured: values (m, networks, ...)."""
        self.seeds, self.steps = list(seeds), np.asarray(steps, int)
        self._values = {name: np.moveaxis(one, 0, 1) for name, one in values.items()}

    def __getitem__(self, name: str) -> Float[np.ndarray, "networks m *k"]:
        """One measure of all networks at all steps, (networks, m), or (networks, m, k) of a vector."""
        self._demand_measurements()
        if name in self._rates:
            return loss_rate(self.steps, self._values["loss"])
        if name not in self._values:
            raise InputError(
                "name", f"one of {', '.join(self.names)}", repr(name), "Others were not measured"
            )
        return self._values[name]

    @property
    def table(self) -> Table:
        """A row for every network and step, with a column for each measure."""
        self._demand_measurements()
        return tidy_rows(self.seeds, self.steps, {name: self[name] for name in self.names})

    def plot(self, names: Sequence[str] | None = None, *, axes: Any = None) -> Any:
        """A panel for every measure against the step; the axes.

        Args:
            names: some of the measures; all by default.
            axes: as many axes of matplotlib to draw into; new ones by default.
        """
        chosen = self.names if names is None else list(names)
        return draw(self.steps, {name: self[name] for name in chosen}, axes)

    def at_loss(self, name: str, level: float) -> Float[np.ndarray, "networks ..."]:
        """A measure of every network at its first measured step with a loss of at most `level`, so that
        trainings can be compared at equal loss. "loss" has to be among the measures."""
        values, below = self[name], self["loss"] <= level
        if not below.any(axis=1).all():
            least = self["loss"].min(axis=1).max()
            raise InputError(
                "level",
                f"a loss that every network was measured at, {least:.3g} or more",
                f"{level:g}",
                "Train longer",
            )
        return values[np.arange(len(values)), below.argmax(axis=1)]

    def critical(self, name: str, how: str = "peak") -> list[CriticalTime]:
        """The critical time of a measure, of every network on its own, with its interval.

        Args:
            name: a measure that is one number.
            how: "peak" is the most prominent maximum, with its full width at half of its height;
                "zero" the first change of sign, between the two steps around it; "sigmoid" the middle of
                a sigmoid in log10 of the step, ± twice its width. For "mag_ma" the sigmoid is fitted to
                the cumulative standard deviation.
        """
        values = self[name]
        if values.ndim != 2:
            raise InputError("name", "a measure that is one number", repr(name), "Choose another")
        return [critical_time(self.steps, one, name, how) for one in values]

    def _demand_measurements(self) -> None:
        if not len(self.steps):
            raise InputError(
                "watch",
                "a watch that a training was given",
                "one without measurements",
                "Train with train(..., watch=w) or train_ensemble(..., watch=w) first",
            )


def watch(
    X: Inputs, y: Targets, measures: Measures = USUAL, at: At = None, *, loss: str = "sum"
) -> Watch:
    r"""What to measure while networks train: `w = watch(X, y)`, then `train(..., watch=w)`, then
    `w.table`, `w.plot()` and `w.critical(name)`.

    With $J = \partial f(X)/\partial\theta$, $K = J J^T$ and $r = f(X) - y$ there are

    - "loss", $c\sum r^2$, and "sharpness", $2c\,\lambda_{\max}(K)$, with the c that `loss` says;
    - "loss_rate", $-d\log L/d\log t$ along the steps that are measured;
    - "lambda_max", "eigenvalues" (the ten largest), "alignment" (of the eigenvectors, $(u_i^T y)^2/|y|^2$), and
      "eigenvalue_error", how exact these are;
    - "kta", $y^T K y/(\|K\|_F |y|^2)$, and "cka", the centred alignment with $\exp(-50\,|y_i - y_j|^2)$;
    - "drift", $|\theta - \theta_0|$, and "kernel_drift", $\|K - K_0\|_F/\|K_0\|_F$;
    - "gradient_variance", of the gradients of $\frac12 |r_i|^2$ over the points;
    - of one output and inputs (n, d), "mag_ma", $|E_x \nabla_x \log|g||$ of the gradients g; "min_cosine", the
      least cosine of two of them by the local form; "correlation_floor" and "correlation_length", of their
      cosine against the distance.

    `lnk.finite.measures` has those that take arguments, such as `alignment(20)` and `cka(target)`.

    Args:
        X: inputs to measure at, (n, ...), usually those of the training or some of them; in
            `train_ensemble` with data of its own for each network also (seeds, n, d).
        y: targets there, (n,) or (n, k).
        measures: names, or functions of (tangent, X, y) that return a number or a vector; or both by a name
            of one's own. `tangent` has `params`, `start`, `value`, `gram`, `matrix`, `leading` and
            `vjp`, and the function is traced.
        at: after which steps; or about how many log-spaced ones. By default each is √2 times the one before.
            The start and the last step are measured, too, unless steps are given.
        loss: "sum" is $c = \frac12$, the loss of `train`; "half-mean" is $\frac1{2n}$ and "mean" $\frac1n$. A
            rate for one of these is 1/n or 2/n times as large for `train`.

    >>> import numpy as np, optax, lnkernel as lnk
    >>> X = np.linspace(-2, 2, 20)[:, None]
    >>> w = lnk.watch(X, np.sin(X[:, 0]), ("loss", "kta", "drift"))
    >>> e = lnk.finite.train_ensemble(
    ...     lnk.mlp(norm="first"), X, np.sin(X[:, 0]), seeds=3, steps=100, width=32, watch=w
    ... )
    >>> w.steps.tolist(), w["kta"].shape
    ([0, 1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 100], (3, 15))
    >>> len(w.table), list(w.table[0])
    (45, ['seed', 'step', 'loss', 'kta', 'drift'])
    """
    return Watch(X, y, measures, at, loss)


def loss_rate(
    steps: Int[np.ndarray, " m"], losses: Float[np.ndarray, "networks m"]
) -> Float[np.ndarray, "networks m"]:
    r"""$-d\log L/d\log t$ by differences between neighbours; NaN at step 0, which has no logarithm.

    >>> t = np.array([0, 1, 2, 4, 8])
    >>> loss_rate(t, np.array([[9.0, 1.0, 0.25, 0.0625, 0.015625]])).round(6)
    array([[nan,  2.,  2.,  2.,  2.]])
    """
    out = np.full(losses.shape, np.nan)
    later = steps > 0
    if later.sum() > 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.asarray(losses, np.float64)[:, later])
            out[:, later] = -np.gradient(logs, np.log(steps[later]), axis=1)
    return out


def _name_measures(measures: Measures) -> dict[str, str | Measure]:
    if isinstance(measures, Mapping):
        return dict(measures)
    given = [measures] if isinstance(measures, str) or callable(measures) else list(measures)
    named = {
        one if isinstance(one, str) else getattr(one, "__name__", type(one).__name__.lower()): one
        for one in given
    }
    if len(named) < len(given) or not given:
        raise InputError(
            "measures",
            "at least one measure, each of another name",
            ", ".join(map(str, named)) or "none",
            "Give a dict, {name: measure}",
        )
    return named
