"""A line on which two classes of points fall apart into few runs."""

from __future__ import annotations

import math

import numpy as np

AXES, RANDOM = (
    32,
    32,
)  # coordinates with the largest spread, and directions at random, that are tried


def choose_direction(points: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, float]:
    """w and an offset such that w·x + offset is in about [0, 1], with as few runs of labels as any that was tried.

    It tries the coordinates, the direction of linear regression on the labels, and random directions.
    """
    centred = points - points[0]
    spread = np.abs(centred).max(0)
    candidates = [*np.eye(points.shape[1])[np.argsort(-spread, kind="stable")[:AXES]]]
    if points.shape[1] > 1:
        scale = np.where(spread > 0, spread, 1.0)
        scaled = centred / scale
        target = np.where(labels, 1.0, -1.0)
        fitted = np.linalg.lstsq(scaled - scaled.mean(0), target - target.mean(), rcond=None)[0]
        drawn = np.random.default_rng(0).normal(size=(RANDOM, points.shape[1]))
        candidates += [w / scale for w in (fitted, *drawn) if w.any()]
    ranked = [(*_quality(centred @ w, labels), -place) for place, w in enumerate(candidates)]
    w = candidates[-max(ranked)[-1]]
    t = points @ w
    power = 0.5 ** math.frexp(float(np.ptp(t)) or 1.0)[1]
    w = w * power  # by a power of 2, which keeps a coordinate exact
    return w, -float((points @ w).min())


def _quality(t: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """The fewer runs the better; then the larger the smallest gap between different labels."""
    order = np.lexsort((labels, t))
    change = labels[order][1:] != labels[order][:-1]
    gaps = np.diff(t[order])[change] / (float(np.ptp(t)) or 1.0)
    smallest = float(gaps.min(initial=1.0))
    if smallest <= 0:  # points of both classes fall on one number
        return -math.inf, 0.0
    return -float(change.sum()), smallest
