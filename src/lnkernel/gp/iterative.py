r"""Linear systems of a Gram matrix with noise by conjugate gradients, for more points than a factor has room for.

With $r = b - A a$ the solution is off by $A^{-1} r$, and with $\sigma^2$ the least variance of the noise
$\lambda_{\min}(A) \ge \sigma^2$. So for every input x at once

$$|k(x, X)\,(A^{-1} b - a)| \le \sqrt{k(x, X) A^{-1} k(X, x)}\,\sqrt{r^T A^{-1} r} \le \sqrt{k(x, x)}\,|r|/\sigma
\le \sqrt C\,|r|/\sigma,$$

because the posterior variance $k(x, x) - k(x, X) A^{-1} k(X, x)$ is not negative. With a normalisation C is finite, and
the solver stops when this is below the tolerance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import numpy as np

from lnkernel.errors import InputError, NotConvergedError, NotEnoughMemoryError, SpreadMatrixError
from lnkernel.gp.conjugate_gradients import Preconditioner, Solution, conjugate_gradients
from lnkernel.gp.everywhere import supremum_of_diagonal
from lnkernel.gp.factor import Factor
from lnkernel.gp.iterates import Iterates
from lnkernel.gp.large_targets import longest, scale_down, scale_up, targets_too_large
from lnkernel.gp.matrix_free import times_below
from lnkernel.gp.packed import GramRows
from lnkernel.gp.pivoted import pivoted_cholesky
from lnkernel.gp.sharded_cholesky import strips_times
from lnkernel.gp.strips import GramStrips, StripLayout, deal_out, files_of
from lnkernel.gram import memory
from lnkernel.gram.hosts import spans_processes
from lnkernel.gram.sharded import Layout, as_sharding

RANK = 1000  # of the preconditioner, at most, unless another is asked for
MOST = 5000  # iterations


@dataclass(frozen=True)
class Iterative(Factor):
    """A = K + D and its preconditioner. Its solutions are as exact as the tolerance says, in units of the output."""

    rows: GramRows
    layout: StripLayout
    stored_strips: tuple[jax.Array, ...] | None  # half of A; None where it has no room
    diagonal: np.ndarray  # of A
    preconditioner: Preconditioner
    tolerance: float
    largest: float  # C, which bounds the kernel of every input with itself
    is_shared: bool  # whether several processes solve it together
    iterates: Iterates | None  # solutions on disk, to go on from

    @property
    def stored(self) -> np.ndarray:
        return np.empty((0, 0))  # nothing of it is in one place

    @property
    def least_noise(self) -> float:
        """A lower bound of the smallest eigenvalue of A."""
        return float(self.preconditioner.noise.min())

    @property
    def goal(self) -> float:
        """How long a residual may be."""
        return self.tolerance * math.sqrt(self.least_noise / self.largest)

    def error_of(self, residual: np.ndarray) -> float:
        """What a solution with this residual is off at most, at every input."""
        return math.sqrt(self.largest / self.least_noise) * longest(residual)

    def times(self, b: np.ndarray) -> np.ndarray:
        """A b, for b of shape (n, k)."""
        if self.stored_strips is None:
            below = times_below(self.rows, b, self.is_shared)
        else:
            below = strips_times(self.stored_strips, self.layout, b)
        return below + self.diagonal[:, None] * b

    def solve_to(self, b: np.ndarray, title: str = "conjugate gradients") -> Solution:
        """A⁻¹ b to the tolerance, for b of shape (n, k), with what is missing."""
        numbers, power = scale_down(b)
        goal, precondition = math.ldexp(self.goal, -power), self.preconditioner.solve
        try:
            made = conjugate_gradients(
                self.times, precondition, numbers, goal, MOST, title, self.iterates
            )
        except NotConvergedError as problem:
            left = float(scale_up(problem.residual, power))
            raise NotConvergedError(problem.iterations, left, self.goal, problem.stuck) from None
        solution, residual = (scale_up(part, power) for part in made[:2])
        if not np.isfinite(solution).all():
            raise targets_too_large(b, "the coefficients A⁻¹y")
        return Solution(solution, residual, made.iterations)

    def solve(self, b: np.ndarray) -> np.ndarray:
        return self.solve_to(b).solution

    def solve_roughly(self, b: np.ndarray) -> np.ndarray:
        return self.solve_to(b).solution

    def quadratic(self, b: np.ndarray) -> np.ndarray:
        r"""The diagonal of bᵀ A⁻¹ b, from below: aᵀb + aᵀr, which is off by $r^T A^{-1} r$."""
        solution, residual, _ = self.solve_to(b, "variance")
        return np.asarray((solution * (b + residual)).sum(axis=0))

    def inner(self, b: np.ndarray) -> np.ndarray:
        """bᵀ A⁻¹ b, symmetric to the last digit."""
        solution, residual, _ = self.solve_to(b, "covariance")
        made = solution.T @ (b + residual)
        return np.asarray((made + made.T) / 2)

    def half_solve(self, b: np.ndarray) -> np.ndarray:
        raise SpreadMatrixError(len(self.diagonal))

    def log_determinant(self) -> float:
        raise InputError(
            "log_marginal_likelihood",
            "a posterior whose matrix is factorised",
            f"one whose matrix of {len(self.diagonal)} points is not (tolerance=...)",
            "post.log_marginal_likelihood_bounds() encloses it",
        )

    def log_determinant_bounds(self) -> tuple[float, float]:
        """Numbers that log det A lies between."""
        lower = self.preconditioner.log_determinant()
        return lower, lower + self.preconditioner.log_determinant_gap()

    def frobenius(self) -> float:
        raise SpreadMatrixError(len(self.diagonal))

    def with_diagonal(self, diagonal: np.ndarray) -> Iterative:
        return replace(self, diagonal=diagonal)


def iterative(
    rows: GramRows,
    tolerance: float,
    rank: int | None,
    sharding: Layout | None,
    folder: str | Path | None = None,
) -> Iterative:
    """Prepare the solver: the preconditioner, and half of the matrix where it has room."""
    largest, noise = _demand_reach(rows), _demand_noise(rows)
    n = len(rows.x)
    wanted = min(n, RANK if rank is None else rank, n if rank is not None else max(1, n // 4))
    needed, available = 4 * 8 * n * wanted, memory.available_memory()
    if needed > available:
        fits = available // (4 * 8 * n)
        purpose = f"The preconditioner of rank {wanted} for {n} points"
        remedy = f"Ask for a lower rank= (about {fits} has room)" if fits else "Take fewer points"
        raise NotEnoughMemoryError(purpose, n, needed, available, wanted, remedy=remedy)
    layout = deal_out(n, _one_device() if sharding is None else sharding)
    plain = np.asarray(rows.kernel.diagonal(rows.x))

    def columns(some: np.ndarray) -> np.ndarray:
        return np.asarray(rows.kernel(rows.x, rows.x[some]))

    low_rank = pivoted_cholesky(plain, columns, wanted)
    here = [d for d in layout.mesh.devices.flat if d.process_index == jax.process_index()]
    has_room = 2 * len(here) * layout.bytes_of_device() < memory.available_memory()
    kept = tuple(GramStrips.of(rows, layout, 0.0, folder)) if has_room else None
    return Iterative(
        rows,
        layout,
        kept,
        plain + noise,
        Preconditioner(low_rank, noise),
        tolerance,
        largest,
        sharding is not None and spans_processes(as_sharding(sharding)),
        None if folder is None else Iterates(files_of(rows, layout, folder).folder),
    )


def _one_device() -> jax.sharding.Mesh:
    return jax.sharding.Mesh(np.array(jax.local_devices()[:1]), ("rows",))


def _demand_reach(rows: GramRows) -> float:
    largest = supremum_of_diagonal(rows.kernel.arch)
    if math.isinf(largest):
        raise InputError(
            "tolerance",
            "a network with a finite C = sup Θ(x, x), by which an error is bounded at every input",
            "one whose C is infinite",
            "Put a LayerNorm before the last layer, or leave tolerance out",
        )
    return largest


def _demand_noise(rows: GramRows) -> np.ndarray:
    noise = np.broadcast_to(np.asarray(rows.noise, dtype=np.float64), len(rows.x)).copy()
    if not (noise > 0).all():
        raise InputError(
            "noise",
            "a positive variance of the noise of each point beside tolerance=..., because without it nothing is "
            "known of the smallest eigenvalue before the matrix is factorised",
            str(noise.min()),
            "Give noise=..., or leave tolerance out",
        )
    return noise
