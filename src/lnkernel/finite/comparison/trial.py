"""How far theory and practice are apart: networks of finite width beside their limit."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from lnkernel.arch.text import Architecture, as_architecture
from lnkernel.bounds import bound
from lnkernel.check.arrays import as_inputs
from lnkernel.check.numbers import as_seeds, positive_integer
from lnkernel.errors import GrowthError, InputError
from lnkernel.finite.comparison.descent import descent
from lnkernel.finite.comparison.result import Comparison
from lnkernel.finite.comparison.row import Row
from lnkernel.finite.comparison.width import Task, as_columns, as_spread, compare_at_width
from lnkernel.finite.empirical.estimate import weighted_slope
from lnkernel.finite.training.arguments import precision_of
from lnkernel.gp.posterior import Posterior, posterior
from lnkernel.progress import show_progress
from lnkernel.types import MorePoints, Points, Targets


def compare(
    arch: Architecture,
    X: Points,
    y: Targets,
    x_eval: MorePoints,
    widths: int | Iterable[int] = (64, 256, 1024, 4096),
    seeds: int | Iterable[int] = 10,
    *,
    goal: float = 1e-4,
    max_steps: int = 1000,
    dtype: DTypeLike = jnp.float32,
    progress: bool | None = None,
) -> Comparison:
    r"""Train networks of several widths on the same data and compare them with their limit.

    For every width: the empirical NTK against Θ at X and `x_eval` (at most 200 of these points,
    evenly chosen), and its drift in training; the mean and the spread of the trained networks at
    `x_eval` against theory; the largest output there beside the bound B(D); the training loss.
    `Row` and `Comparison` say what each figure is.

    The networks are trained, in NTK parametrisation, by gradient descent on half the sum of the
    squared errors at the learning rate $1/\lambda_{\max}(\Theta(X, X))$, half of what is stable in
    the limit. If a narrow network diverges there, its width is trained again at half that rate, and
    so on. The number of steps is the smallest with which the expected loss of infinitely wide
    networks falls to `goal` times that of untrained ones, or `max_steps`. Theory is
    `posterior(arch, X, y).after(steps, learning_rate)`, so that what is compared is exact in the
    limit also where descent has not converged.

    Args:
        arch: the network; it must have as many outputs as y.
        X: inputs, (n, d).
        y: targets, (n,) or (n, k).
        x_eval: points to compare at, (m, d).
        widths: widths of the hidden layers, each at least 2.
        seeds: number of networks of each width, at least 2, or their seeds.
        goal: the training loss to reach, as a fraction of that of untrained networks; 1e-4 leaves an
            error of about 1 % at the data.
        max_steps: the most steps of gradient descent. One step of a network of width 4,096 with two hidden layers
            takes about 0.1 s on two cores.
        dtype: float32 or float64, of the networks.
        progress: whether to show a bar; by default when it takes more than 2 seconds.

    >>> import numpy as np, lnkernel as lnk
    >>> arch, X = lnk.mlp(hidden=1, norm="first", b_std=1.0), np.linspace(-1, 1, 4)[:, None]
    >>> found = lnk.finite.compare(arch, X, np.sin(2 * X[:, 0]), [[0.2], [100.0]], [256], seeds=4)
    >>> row = found.rows[0]
    >>> row.converged, bool(abs(row.z(4)).max() < 5), row.max_output < found.bound
    (True, True, True)
    >>> print(found)
    width         NTK error ...
    """
    chosen, known = _as_widths(widths), list(as_seeds(seeds, at_least=2))
    positive_integer("max_steps", max_steps)
    if isinstance(goal, bool) or not isinstance(goal, Real) or not 0 < goal < 1:
        raise InputError("goal", "a number between 0 and 1", repr(goal), "The default is 1e-4")
    precision = precision_of(dtype)
    given = as_architecture(arch)
    limit = posterior(given, X, y)
    data = limit._fit.data
    points = as_inputs(x_eval, data.x.shape[1], "x_eval")
    largest, rkhs = _bounds(limit)
    task = Task(
        given,
        data,
        points,
        limit,
        descent(given, data, limit._fit.eigen),
        known,
        float(goal),
        max_steps,
        precision,
        None if progress else progress,
    )
    rows = [compare_at_width(task, width) for width in show_progress(chosen, progress, "width")]
    exponent, error = _fit_exponent(rows, float(np.finfo(precision).eps))
    return Comparison(
        rows=rows,
        exponent=exponent,
        exponent_se=error,
        bound=largest,
        rkhs=rkhs,
        x_eval=points,
        limit_mean=as_columns(limit.mean(points)),
        limit_std=as_spread(limit.ensemble_variance(points), data),
        seeds=known,
        points=len(data.x),
        arch=repr(given),
    )


def _bounds(limit: Posterior) -> tuple[float, float]:
    """B(D) and its tightest form; NaN where the growth of Θ(x, x) is not known."""
    try:
        found = bound(limit)
    except GrowthError:
        return math.nan, math.nan
    return found.value, found.rkhs


def _fit_exponent(rows: list[Row], rounding: float) -> tuple[float | None, float | None]:
    """The slope of log error over log width, where there is an error that falls."""
    errors = np.array([row.ntk_error for row in rows])
    noise = np.array([row.ntk_error_se for row in rows])
    if len(rows) < 2 or (errors < 100 * rounding).any() or (noise == 0).any():
        return None, None
    widths = np.log([row.width for row in rows])
    return weighted_slope(widths, np.log(errors), noise / errors)


def _as_widths(widths: int | Iterable[int]) -> list[int]:
    given = list(widths) if isinstance(widths, Iterable) else [widths]
    if not given or any(isinstance(w, bool) or not isinstance(w, Integral) or w < 2 for w in given):
        raise InputError(
            "widths",
            "integers, at least 2",
            repr(widths),
            "The theory is that of wide networks: choose e.g. widths=(64, 256, 1024)",
        )
    return sorted({int(width) for width in given})
