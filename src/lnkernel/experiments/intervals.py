"""Means and rank correlations over seeds, with confidence intervals of 95 %."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from jaxtyping import Float64


def rank_correlation(
    a: Sequence[float] | Float64[np.ndarray, " n"], b: Sequence[float] | Float64[np.ndarray, " n"]
) -> float:
    """Spearman's, of two lists; infinite values are the largest. Of equal values there is none.

    >>> rank_correlation([1.0, 2.0, np.inf], [5.0, 4.0, 3.0]), rank_correlation([1.0, 2.0], [1.0, 1.0])
    (-1.0, nan)
    """
    ranks = [scipy.stats.rankdata(values) for values in (a, b)]
    if any(np.ptp(one) == 0 for one in ranks):
        return float("nan")
    return round(float(np.corrcoef(*ranks)[0, 1]), 12)


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean over the seeds and the ends of its 95 % confidence interval by Student's t.

    >>> interval([0.5, 0.7])[0]
    0.6
    """
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, np.nan, np.nan
    half = scipy.stats.t.ppf(0.975, len(values) - 1) * scipy.stats.sem(values)
    return mean, mean - float(half), mean + float(half)


def correlation_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The same for correlations, whose interval ends at ±1.

    Fisher's transform, artanh, would not do: rank correlations of few ranks are often ±1 exactly.

    >>> [round(end, 2) for end in correlation_interval([0.9, 0.95, 0.99])]
    [0.95, 0.83, 1.0]
    """
    mean, low, high = interval(values)
    return mean, max(low, -1.0), min(high, 1.0)


def share_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The same for shares, such as accuracies, whose interval ends at 0 and 1.

    >>> [round(end, 2) for end in share_interval([0.9, 1.0])]
    [0.95, 0.31, 1.0]
    """
    mean, low, high = interval(values)
    return mean, max(low, 0.0), min(high, 1.0)
