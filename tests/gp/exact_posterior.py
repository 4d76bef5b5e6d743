"""The posterior to 50 digits: the oracle's kernels and mpmath's linear algebra, nothing of ours."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import mpmath
import numpy as np
import oracle
from mpmath import mp


class Exact:
    """Every formula straight from its definition, with explicit inverses and eigenvectors."""

    def __init__(self, arch: Any, X: Any, y: Any, which: str = "ntk", noise: float = 0.0):
        self.arch, self.X, self.which = arch, np.asarray(X), which
        with mp.workdps(50):
            self.y = mpmath.matrix(np.asarray(y).reshape(len(self.X), -1).tolist())
            self.A = self.kernel(self.X, self.X) + mpmath.mpf(noise) * mpmath.eye(len(self.X))

    def kernel(self, x: Any, x2: Any, which: str | None = None) -> Any:
        place = ("nngp", "ntk").index(which or self.which)
        return mpmath.matrix(
            [
                [oracle.kernels(self.arch, a, b)[place] for b in np.asarray(x2)]
                for a in np.asarray(x)
            ]
        )

    @cached_property
    def eigen(self) -> Any:
        return mpmath.eigsy(self.A)

    def applied(self, function: Any) -> Any:
        """function(A)."""
        values, vectors = self.eigen
        return vectors * mpmath.diag([function(v) for v in values]) * vectors.T

    def mean(self, x: Any, function: Any = None) -> np.ndarray:
        with mp.workdps(50):
            middle = self.applied(function or (lambda v: 1 / v))
            return as_floats(self.kernel(x, self.X) * middle * self.y)

    def covariance(self, x: Any) -> np.ndarray:
        with mp.workdps(50):
            k = self.kernel(x, self.X)
            return as_floats(self.kernel(x, x) - k * self.A**-1 * k.T)

    def log_marginal_likelihood(self) -> float:
        with mp.workdps(50):
            n, k = self.y.rows, self.y.cols
            inner = self.y.T * self.A**-1 * self.y
            misfit = sum(inner[i, i] for i in range(k))
            volume = mpmath.log(mpmath.det(self.A)) + n * mpmath.log(2 * mpmath.pi)
            return float(-(misfit + k * volume) / 2)

    def ensemble_variance(self, x: Any, function: Any = None) -> np.ndarray:
        return np.diagonal(self.ensemble_covariance(x, function))

    def ensemble_covariance(self, x: Any, function: Any = None) -> np.ndarray:
        with mp.workdps(50):
            w = self.kernel(x, self.X) * self.applied(function or (lambda v: 1 / v))
            shared = self.kernel(self.X, x, "nngp")
            inner = self.kernel(self.X, self.X, "nngp")
            prior = self.kernel(x, x, "nngp")
            spread = prior - w * shared - (w * shared).T + w * inner * w.T
            return as_floats(spread)


def as_floats(matrix: Any) -> np.ndarray:
    return np.array([[float(v) for v in row] for row in matrix.tolist()])
