r"""Training in time by products with A alone: $\varphi(A)\,b$ with $\varphi(\lambda) = (1 - e^{-\lambda t})/\lambda$.

Lanczos' method finds an orthonormal basis V of the span of $b, Ab, \dots, A^{m-1}b$ with
$A V = V T + \beta\,v_{m+1} e_m^T$ and a tridiagonal T, and $\alpha = |b|\,V c(t)$ with $c(t) = \varphi_t(T)\,e_1$
stands for $\varphi(A)\,b$ (Hochbruck and Lubich 1997). Its error is bounded by what is known then: $\alpha$ solves
$\alpha' = b - A\alpha$ up to the residual $|b|\,\beta\,c_m(s)\,v_{m+1}$, so with $\lambda_{\min} \ge \mu$

$$|\alpha - \varphi(A)\,b| \le |b|\,\beta \int_0^t e^{-\mu(t - s)}\,|c_m(s)|\,ds
\le |b|\,\beta\,|c_m(t)|\,\varphi_t(\mu).$$

The last step is monotony: with the signs of every other row and column turned, -T has no negative entry beside its
diagonal, so its exponential has none at all, and $|c_m|$, the integral of such an entry, grows with the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from lnkernel.gp.filters import Filter
from lnkernel.gp.spectrum import EPS

GOAL = 1e-14  # of the error, relative to the solution; rounding leaves more of either method
FEWEST = 1000  # points from which on it is quicker than all eigenvectors
SHARE = 10  # n/10 steps for one column take a fifth of the time of all eigenvectors, or less
MOST_COLUMNS = 100
FIRST = 16  # steps until the error is looked at
GROWTH = 1.25  # times as many until it is looked at again
GONE = 100 * EPS  # what is left of a vector by rounding alone, when it lay in the basis


def step_limit(n: int, columns: int) -> int:
    """How many steps are worth trying; 0, where all eigenvectors are the quicker way."""
    if n < FEWEST or columns > MOST_COLUMNS:
        return 0
    return int(n / (SHARE * math.sqrt(columns)))  # orthogonality costs the square of the steps


class Lanczos:
    """Bases of the columns of b (n, k), of as many steps as were needed so far; every time uses the same ones."""

    def __init__(self, times: Callable[[np.ndarray], np.ndarray], b: np.ndarray, most: int):
        n, k = b.shape
        self._times, self._most, self._steps = times, most, 0
        self._sizes = np.linalg.norm(b, axis=0)
        self._basis = np.zeros((k, most + 1, n))
        self._basis[:, 0] = (b / np.where(self._sizes > 0, self._sizes, 1.0)).T
        self._diagonal, self._beside = np.zeros((k, most)), np.zeros((k, most))

    def flow(
        self, chosen: Filter, floor: float, better_floor: Callable[[], float]
    ) -> np.ndarray | None:
        """φ(A) b, (n, k), where φ is gradient flow; None, where that takes too many steps.

        Both floors are lower bounds of the smallest eigenvalue. The better one, which costs more, is asked for where it
        may help.
        """
        while True:
            if self._steps:
                parts = [self._part(chosen, j) for j in range(len(self._sizes))]
                if all(part.is_within(floor, better_floor) for part in parts):
                    vectors = [
                        size * (part.coefficients @ basis[: self._steps])
                        for size, part, basis in zip(self._sizes, parts, self._basis, strict=True)
                    ]
                    return np.stack(vectors, axis=1)
            if self._steps == self._most:
                return None
            self._grow(min(self._most, max(FIRST, int(GROWTH * self._steps))))

    def _part(self, chosen: Filter, j: int) -> _Part:
        m = self._steps
        diagonal, beside = self._diagonal[j, :m], self._beside[j, :m]
        values, vectors = scipy.linalg.eigh_tridiagonal(diagonal, beside[:-1], check_finite=False)
        coefficients = vectors @ (chosen(values) * vectors[0])
        return _Part(chosen, coefficients, float(beside[-1]), float(values[0]))

    def _grow(self, steps: int) -> None:
        for m in range(self._steps, steps):
            images = self._times(self._basis[:, m].T)
            for j, image in enumerate(images.T):
                known = self._basis[j, : m + 1]
                self._diagonal[j, m] = known[-1] @ image
                rest = image
                for _ in range(
                    2
                ):  # twice is enough (Giraud et al. 2005) for a basis that is orthogonal
                    rest = rest - (known @ rest) @ known
                size = np.linalg.norm(rest)
                # otherwise all that b reaches is in the basis, and what follows is 0
                if size > GONE * np.linalg.norm(image):
                    self._beside[j, m], self._basis[j, m + 1] = size, rest / size
        self._steps = steps


class _Part(NamedTuple):
    """What is found for one column."""

    chosen: Filter
    coefficients: np.ndarray  # c, in the basis
    beside: float  # β
    lowest: float  # the smallest eigenvalue of T, not below that of A

    def is_within(self, floor: float, better_floor: Callable[[], float]) -> bool:
        """Whether β |c_m| φ(μ) ≤ GOAL |c|; the largest entry stands for |c|, and does not underflow."""
        sizes = np.abs(self.coefficients)
        rate, allowed = self.beside * float(sizes[-1]), GOAL * float(sizes.max())

        def will_do(least: float) -> bool:
            return rate * float(self.chosen(np.array(least))) <= allowed

        return will_do(floor) or (will_do(self.lowest) and will_do(better_floor()))
