"""What `compare` found at one width."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64


@dataclass(frozen=True, eq=False)
class Row:
    r"""Networks of one width beside the limit; m points `x_eval`, k outputs, s seeds.

    Errors of kernels are root mean squares over pairs of points, relative to
    $\sqrt{\Theta(x,x)\,\Theta(x',x')}$, for each network on its own, and their mean over the networks.

    Attributes:
        width: the width of the hidden layers.
        ntk_error, ntk_error_se: the error of the empirical NTK at the start against Θ, and its standard error.
        drift, drift_se: the change of the empirical NTK from the start to the end, and its standard error.
        mean, std: mean and deviation of the trained networks at `x_eval`, (m, k).
        expected_mean, expected_std: what theory says of networks trained so long, (m, k).
        max_output: the largest |output| of any network at any point of `x_eval`.
        loss: the mean training loss reached, $\frac12\sum_i (f(x_i) - y_i)^2$.
        expected_loss: what theory says of it. A loss far above says that the networks' own kernel
            changed in training: they are too narrow for the theory on these data.
        learning_rate, steps: those of the gradient descent.
        converged: whether the loss fell to ten times the goal or less. If not, `expected_mean` is
            that of networks stopped as early, and not the posterior mean.
    """

    width: int
    ntk_error: float
    ntk_error_se: float
    drift: float
    drift_se: float
    mean: Float64[np.ndarray, "m k"]
    std: Float64[np.ndarray, "m k"]
    expected_mean: Float64[np.ndarray, "m k"]
    expected_std: Float64[np.ndarray, "m k"]
    max_output: float
    loss: float
    expected_loss: float
    learning_rate: float
    steps: int
    converged: bool

    @property
    def mean_error(self) -> float:
        """The root mean square over `x_eval` of mean - expected_mean."""
        return _rms(self.mean - self.expected_mean)

    @property
    def spread(self) -> float:
        """The root mean square over `x_eval` of std."""
        return _rms(self.std)

    @property
    def expected_spread(self) -> float:
        """The root mean square over `x_eval` of expected_std."""
        return _rms(self.expected_std)

    def z(self, seeds: int) -> Float64[np.ndarray, "m k"]:
        """(mean - expected_mean) in standard errors, std/√seeds, of each point and output."""
        error = self.std / math.sqrt(seeds)
        difference = self.mean - self.expected_mean
        exact = np.where(difference == 0, 0.0, np.copysign(np.inf, difference))
        return np.divide(difference, error, out=exact, where=error > 0)


HEAD = (
    "width",
    "NTK error",
    "drift",
    "mean error",
    "max |z|",
    "spread",
    "(theory)",
    "max |f|",
    "loss",
    "(theory)",
    "steps",
    "converged",
)


def cells(row: Row, seeds: int) -> tuple[str, ...]:
    """The row of the table, under `HEAD`."""
    return (
        str(row.width),
        f"{row.ntk_error:.4f} ± {row.ntk_error_se:.4f}",
        f"{row.drift:.4f} ± {row.drift_se:.4f}",
        f"{row.mean_error:.2g}",
        f"{np.abs(row.z(seeds)).max():.2f}",
        f"{row.spread:.3g}",
        f"{row.expected_spread:.3g}",
        f"{row.max_output:.4g}",
        f"{row.loss:.2g}",
        f"{row.expected_loss:.2g}",
        str(row.steps),
        "yes" if row.converged else "no",
    )


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
