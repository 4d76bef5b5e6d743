"""Conjugate gradients on protein: iterations and time against noise and rank, and the error beside the exact mean."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import lnkernel as lnk
from benchmarks.scale_one_machine import ARCH, proteins
from lnkernel.gp import fit, packed

TOLERANCE = 1e-3  # of targets of variance 1


def iterations(n: int, noises: list[float], ranks: list[int]) -> list[dict[str, Any]]:
    """A row for each noise and rank: how many iterations it took, how far it is off, and what it said of that."""
    data, rows = proteins(), []
    x, y, new = data.train.x[:n], data.targets[:n], data.outside.x[:500]
    for noise in noises:
        exact = np.asarray(lnk.posterior(ARCH, x, y, noise=noise).mean(new))
        for rank in ranks:
            start = time.process_time()
            post = lnk.posterior(ARCH, x, y, noise=noise, tolerance=TOLERANCE, rank=rank)
            used = time.process_time() - start
            assert post._fit.iterated is not None
            low, high = post.log_marginal_likelihood_bounds()
            rows.append(
                {
                    "n": n,
                    "noise": noise,
                    "rank": rank,
                    "iterations": post._fit.iterated.iterations,
                    "processor": used,
                    "off": float(np.abs(post.mean(new) - exact).max()),
                    "error": post.error,
                    "likelihood": [low, high],
                }
            )
    return rows


def accuracy(n: int, noise: float) -> list[dict[str, Any]]:
    """Every way to a posterior beside the square matrix in float64: the largest differences."""
    data = proteins()
    x, y, new = data.train.x[:n], data.targets[:n], data.outside.x[:100]
    whole = lnk.Posterior(fit.fit(ARCH, "ntk", x, y, noise))
    room, packed.ROOM = packed.ROOM, 10**12
    half = lnk.Posterior(fit.fit(ARCH, "ntk", x, y, noise))
    packed.ROOM = room
    ways = {
        "half of a matrix": half,
        "over devices": lnk.posterior(ARCH, x, y, noise=noise, sharding=lnk.distributed.mesh()),
        f"conjugate gradients, tolerance {TOLERANCE:g}": lnk.posterior(
            ARCH, x, y, noise=noise, tolerance=TOLERANCE
        ),
    }
    rows = []
    for name, post in ways.items():
        low, high = post.log_marginal_likelihood_bounds()
        value = float(whole.log_marginal_likelihood())
        inside = low - 1e-9 * abs(value) <= value <= high + 1e-9 * abs(value)
        rows.append(
            {
                "way": name,
                "n": n,
                "mean": float(np.abs(post.mean(new) - whole.mean(new)).max()),
                "variance": float(np.abs(post.variance(new) - whole.variance(new)).max()),
                "error": post.error,
                "likelihood": max(abs(low - value), abs(high - value)) / abs(value),
                "likelihood_enclosed": inside,
            }
        )
    return rows
