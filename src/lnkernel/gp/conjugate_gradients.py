r"""Conjugate gradients for $A = K + D$, with a preconditioner $\hat K + D$ of low rank beside the diagonal D."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from lnkernel.errors import NotConvergedError
from lnkernel.gp.iterates import Iterates
from lnkernel.gp.pivoted import LowRank
from lnkernel.progress import Bar

Product = Callable[[np.ndarray], np.ndarray]
PATIENCE = 500  # iterations without progress, after which what rounding has done is looked at


@dataclass(frozen=True)
class Preconditioner:
    """M = F Fᵀ + D, with M ⪯ A."""

    low_rank: LowRank
    noise: np.ndarray  # the diagonal of D, (n,)

    @cached_property
    def _scaled(self) -> np.ndarray:
        """D^-1/2 F."""
        return self.low_rank.factor / np.sqrt(self.noise)[:, None]

    @cached_property
    def _inner(self) -> tuple[np.ndarray, bool]:
        """The factor of 1 + Fᵀ D⁻¹ F."""
        small = self._scaled.T @ self._scaled
        small.flat[:: len(small) + 1] += 1.0
        return scipy.linalg.cho_factor(small, lower=True)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """M⁻¹ b by Woodbury's formula."""
        root = np.sqrt(self.noise)[:, None]
        half = b / root
        inside = scipy.linalg.cho_solve(self._inner, self._scaled.T @ half)
        return np.asarray((half - self._scaled @ inside) / root)

    def log_determinant(self) -> float:
        """log det M, at most log det A."""
        return float(np.log(self.noise).sum() + 2 * np.log(np.diagonal(self._inner[0])).sum())

    def log_determinant_gap(self) -> float:
        r"""How much larger log det A is at most: $\sum_i \log(1 + r_{ii}/\sigma_i^2)$, with $R = K - \hat K$.

        What adding R does to the log determinant of M is at most what it does to that of $D \preceq M$, and the
        determinant of a positive matrix is at most the product of its diagonal (Hadamard).
        """
        return float(np.log1p(self.low_rank.left / self.noise).sum())


class Solution(NamedTuple):
    """a with A a ≈ b, what is missing, and how long it took."""

    solution: np.ndarray  # (n, k)
    residual: np.ndarray  # b - A a, computed from a itself, (n, k)
    iterations: int


def conjugate_gradients(
    product: Product,
    precondition: Product,
    b: np.ndarray,
    goal: float,
    most: int,
    title: str = "conjugate gradients",
    iterates: Iterates | None = None,
) -> Solution:
    """a with |b - A a| ≤ goal in every column, for b of shape (n, k).

    The residual that the recurrence carries drifts away from b - A a by rounding; so where it says that the goal is
    reached, b - A a is computed, and if it is larger the iteration starts again from a. Residuals may stay as long as
    they are for more than a thousand iterations, and shrink then; so where they do, the drift is looked at, and only
    where it is most of what is left the iteration starts again. With `iterates` it starts from the last one that was
    saved.
    """
    solution = np.zeros_like(b) if iterates is None else iterates.find(b)
    residual, spent = b - product(solution) if solution.any() else b.copy(), 0
    before = np.inf  # the residual when the iteration was started last
    with Bar(None, most, "iterations", title) as bar:
        while (size := _longest(residual)) > goal:
            if size > before / 2:  # what the recurrence gained was lost to rounding
                raise NotConvergedError(spent, size, goal, stuck=True)
            before, best, idle = size, size, 0
            direction = ready = precondition(residual)
            slope = (residual * ready).sum(axis=0)
            while size > goal:
                if spent >= most:
                    raise NotConvergedError(spent, best, goal, stuck=False)
                if idle == PATIENCE:
                    if _longest(b - product(solution) - residual) > size / 2:
                        break
                    idle = 0
                image = product(direction)
                step = _quotient(slope, (direction * image).sum(axis=0))
                solution = solution + step * direction
                residual = residual - step * image
                spent += 1
                if iterates is not None:
                    iterates.offer(b, solution)
                size = _longest(residual)
                idle = 0 if size < 0.99 * best else idle + 1
                best = min(best, size)
                bar.update(1, f"residual {size:.2g}, goal {goal:.2g}")
                ready = precondition(residual)
                last, slope = slope, (residual * ready).sum(axis=0)
                direction = ready + _quotient(slope, last) * direction
            residual = b - product(solution)
    return Solution(solution, residual, spent)


def _quotient(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """one / other, and 0 for columns that are solved exactly."""
    return np.divide(one, other, out=np.zeros_like(one), where=other > 0)


def _longest(columns: np.ndarray) -> float:
    return float(np.linalg.norm(columns, axis=0).max())
