"""The loss of gradient flow as a function of time, from eigenvalues and coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from lnkernel.check.arrays import as_array
from lnkernel.check.numbers import as_number
from lnkernel.errors import InputError
from lnkernel.types import Times

ROUNDING = 1e-8  # of the largest eigenvalue: the negative ones that a rounded kernel may have
ENTRIES = 10**6  # of the matrix of times and eigenvalues, at a time


def loss(values: ArrayLike, coefficients: ArrayLike) -> Callable[[Times], np.ndarray]:
    r"""The function $t \mapsto L(t) = \frac12 \sum_n e^{-2\lambda_n t}\, |c_n|^2$.

    It is the loss of gradient flow at time t, if $\lambda_n$ are the eigenvalues of the kernel and $c_n$ the
    coefficients of the first residual in its eigenvectors. Of a Gram matrix on n points of a population, use the
    eigenvalues of K/n and coefficients $u_n^T r/\sqrt n$: the loss is then a mean over the population.

    Args:
        values: eigenvalues, (n,).
        coefficients: $c_n$, (n,), or (n, k) for k outputs.

    >>> import lnkernel as lnk
    >>> curve = lnk.asymptotics.loss([1.0, 0.5], [2.0, 0.0])
    >>> curve([0.0, 1.0]).round(6).tolist()                         # 2, and 2 exp(-2)
    [2.0, 0.270671]
    """
    eigenvalues = _finite("values", values)
    c = _finite("coefficients", coefficients)
    if eigenvalues.ndim != 1 or c.ndim not in (1, 2) or len(c) != len(eigenvalues):
        raise InputError(
            "coefficients",
            f"one for each of the eigenvalues, shape {eigenvalues.shape}",
            f"shape {c.shape}",
            "Give the coefficients of the residual in the same eigenvectors",
        )
    if not len(eigenvalues):
        raise InputError("values", "at least one eigenvalue", "none", "Give those of the kernel")
    if eigenvalues.min() < -ROUNDING * np.abs(eigenvalues).max():
        remedy = "Kernels have none: symmetrise the matrix, and look for an error in it"
        raise InputError("values", "eigenvalues, 0 or more", f"{eigenvalues.min()}", remedy)
    eigenvalues = np.maximum(eigenvalues, 0.0)  # what is less is rounding
    squares = c**2 if c.ndim == 1 else (c**2).sum(1)

    def curve(t: Times) -> np.ndarray:
        times = as_times(t)
        size = max(1, ENTRIES // max(1, len(eigenvalues)))
        blocks = [
            0.5 * np.exp(-2 * np.outer(times[i : i + size], eigenvalues)) @ squares
            for i in range(0, len(times), size)
        ]
        return np.concatenate(blocks) if np.ndim(t) else blocks[0][0]

    return curve


def as_times(t: Times) -> Float64[np.ndarray, " t"]:
    """Times, 0 or more, as an array."""
    times = np.atleast_1d(_finite("t", t))
    if times.ndim != 1 or not len(times) or (times < 0).any():
        raise InputError("t", "times, 0 or more", f"{t!r}", "Give one, or a list")
    return times


def as_ends(name: str, given: object) -> tuple[float, float]:
    """Two numbers, the lower first."""
    pair = list(given) if isinstance(given, tuple | list | np.ndarray) else []
    ends = [as_number(end) for end in pair]
    if len(ends) == 2 and ends[0] is not None and ends[1] is not None:
        low, high = ends[0], ends[1]
        if -math.inf < low < high < math.inf:
            return low, high
    remedy = f"Write e.g. {name}=(1.0, 10.0)"
    raise InputError(name, "two numbers, the lower first", repr(given), remedy)


def _finite(name: str, given: ArrayLike) -> np.ndarray:
    array = np.asarray(as_array(name, given), np.float64)
    if not np.isfinite(array).all():
        raise InputError(name, "finite numbers", "NaN or infinity", "Leave them out")
    return array
