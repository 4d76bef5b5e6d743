"""The factorised Gram matrix inside a user's own JAX transformation: differentiable, unchecked.

It has the members of `Fit`, by the same formulas. It is also what a posterior is made of when JAX takes it apart and
puts it together again, so its arrays may be tracers, plain numbers, or whatever `jax.tree.map` makes of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from lnkernel.arch import Node
from lnkernel.arch.facts import acts_on_positions, position_axes
from lnkernel.check.arrays import (
    Data,
    as_targets,
    as_traced_array,
    as_traced_images,
    as_traced_inputs,
    as_traced_points,
    shape_of_one,
)
from lnkernel.errors import HalfMatrixError, InputError, SpreadMatrixError
from lnkernel.gp.cholesky import Cholesky
from lnkernel.gp.diagnosis import is_resolved
from lnkernel.gp.filters import Filter, Root, matrix_function
from lnkernel.gp.fit import Fit, fit
from lnkernel.gp.noise import as_traced_variances
from lnkernel.gp.packed import GramRows, PackedCholesky
from lnkernel.gp.predictor import Predictor
from lnkernel.gram.kernel import Kernel
from lnkernel.gram.memory import demand_memory
from lnkernel.precision import demand_x64, inside_jit, is_traced
from lnkernel.types import Array, MorePoints, Noise, Points, Targets


@dataclass(frozen=True, eq=False)
class TracedFit(Predictor):
    """A = kernel(X, X) + noise I with its factor, as JAX sees it."""

    arch: Node
    which: str
    x: Array  # (n, d)
    y: Array  # (n, k)
    one_output: bool
    noise: Array | float  # () or (n,)
    made: Any  # L in the lower triangle, A's entries above the diagonal; or half of a matrix, for others
    made_diagonal: Any  # the diagonal of A
    origin: Fit | None = None  # the plain numbers that these are, which factorise when needed

    @property
    def both(self) -> Array:
        return self.made if self.origin is None else self.origin.factor.stored

    @property
    def square(self) -> Array:
        """The same; half of a matrix is refused."""
        self._demand_stored()
        if np.shape(self.both) != (len(self.x), len(self.x)):
            raise HalfMatrixError(len(self.x))
        return self.both

    def _demand_stored(self) -> None:
        if np.shape(self.both) == (0, 0):
            raise SpreadMatrixError(len(self.x))

    @property
    def diagonal(self) -> Array:
        return self.made_diagonal if self.origin is None else self.origin.factor.diagonal

    @cached_property
    def kernel(self) -> Kernel:
        return Kernel(self.arch, (self.which,))

    @property
    def prior(self) -> Kernel:
        return Kernel(self.arch, ("nngp",))

    def shape_of_inputs(self) -> tuple[int, ...]:
        return np.shape(self.x)

    def inputs(self, x: MorePoints) -> Array:
        """Points to predict at; of tracers only the shape can be checked."""
        demand_x64()
        return as_traced_inputs(x, shape_of_one(self.x))

    @property
    def targets(self) -> Array:
        """y, (n, k)."""
        return self.y

    def columns(self, values: Array) -> Array:
        return values[..., 0] if self.one_output else values

    @property
    def coefficients(self) -> Array:
        """A⁻¹ y, (n, k)."""
        if self.origin is not None:
            return jnp.asarray(self.origin.coefficients)
        return self.solve(self.y)

    def solve(self, b: Array) -> Array:
        """A⁻¹ b, for b of shape (n, k)."""
        return solve_triangular(self.square.T, self.half_solve(b), lower=False)

    def solve_roughly(self, b: Array) -> Array:
        return self.solve(b)

    def half_solve(self, b: Array) -> Array:
        """L⁻¹ b; of `both` only the lower triangle is read."""
        return solve_triangular(self.square, b, lower=True)

    def misfit(self) -> Array:
        """yᵀ A⁻¹ y, summed over the outputs."""
        half = self.half_solve(self.y)
        return (half * half).sum()

    def log_determinant(self) -> Array:
        """log det A."""
        return 2 * jnp.log(jnp.diagonal(self.square)).sum()

    def largest_eigenvalue(self) -> Array:
        if self.origin is not None:
            return jnp.asarray(self.origin.largest_eigenvalue())
        return jnp.linalg.eigvalsh(self._gram)[-1]

    def apply_filter(self, chosen: Filter, b: Array) -> Array:
        """φ(A) b."""
        if self.origin is not None:  # the matrix does not vary, though the time may
            values, vectors = (jnp.asarray(part) for part in self.origin.eigen)
            return vectors @ (chosen(values)[:, None] * (vectors.T @ b))
        parameter = jnp.asarray(chosen.parameter, jnp.float64)
        return matrix_function(chosen.function, parameter, self._gram) @ b

    @property
    def _gram(self) -> Array:
        above = jnp.triu(self.square, 1)
        return above + above.T + jnp.diag(self.diagonal)

    def mean(self, coefficients: Array, x: Array) -> Array:
        """kernel(x, X) coefficients, (m, k)."""
        self._demand_room(x, matrices=1)
        return self.kernel(x, self.x) @ coefficients

    def predictions(self, x: Array) -> Array:
        """kernel(x, X) A⁻¹ y, (m, k), also where the coefficients of plain numbers alone are too large."""
        if self.origin is None:
            return super().predictions(x)
        numbers, power = self.origin.scaled_coefficients
        half = power // 2  # because 2^power itself may be beyond float64
        return self.mean(jnp.asarray(numbers), x) * 2.0**half * 2.0 ** (power - half)

    def variance(self, x: Array) -> Array:
        """kernel(x, x) - kernel(x, X) A⁻¹ kernel(X, x), (m,)."""
        self._demand_room(x, matrices=2)
        half = self.half_solve(self.kernel(self.x, x))
        return _not_negative(self.kernel.diagonal(x) - (half * half).sum(axis=0))

    def covariance(self, x: Array) -> Array:
        """The same for all pairs, (m, m)."""
        self._demand_room(x, matrices=2, of_pairs=2)
        half = self.half_solve(self.kernel(self.x, x))
        return self.kernel(x, x) - half.T @ half

    def covariance_root(self, x: Array) -> Array:
        """The symmetric square root of `covariance`."""
        return matrix_function(Root(), jnp.ones(()), self.covariance(x))

    def ensemble_variance(self, solver: Callable[[Array], Array], x: Array) -> Array:
        """The variance of f_0(x) - w(x) f_0(X) with w(x) = kernel(x, X) phi(A), (m,)."""
        self._demand_room(x, matrices=3)
        weights = solver(self.kernel(self.x, x))
        less = self.prior(self.x, self.x) @ weights - 2 * self.prior(self.x, x)
        return _not_negative(self.prior.diagonal(x) + (weights * less).sum(axis=0))

    def ensemble_covariance(self, solver: Callable[[Array], Array], x: Array) -> Array:
        """The covariance of f_0(x) - w(x) f_0(X) for all pairs of points, (m, m)."""
        self._demand_room(x, matrices=3, of_pairs=3)
        weights = solver(self.kernel(self.x, x))
        half = weights.T @ (self.prior(self.x, self.x) @ weights / 2 - self.prior(self.x, x))
        return self.prior(x, x) + half + half.T

    def _demand_room(self, x: Array, matrices: int, of_pairs: int = 0) -> None:
        """Room for (m, n) matrices, and for (m, m) ones, which a program of this machine holds as a whole. It is asked
        for while the program is traced; what other devices have room for is not known here."""
        if jax.device_count() == 1 and jax.default_backend() == "cpu":
            demand_memory(
                len(x), matrices, "Inside a transformation the kernel matrix", len(self.x)
            )
            demand_memory(len(x), of_pairs, "Inside a transformation the covariance")

    def is_traced(self) -> bool:
        held = (self.arch, self.x, self.y, self.noise, self.made, self.made_diagonal)
        return is_traced(*held)

    def plain(self) -> Fit:
        """The fit of the plain numbers, checked now, because no program can raise."""
        if np.ndim(self.y) != 2:
            raise InputError(
                "posterior",
                "one posterior",
                f"a stack of them, with inputs of shape {np.shape(self.x)}",
                "Ask each by jax.vmap, e.g. jax.vmap(lambda post: post.mean(x))(stack)",
            )
        self._demand_stored()
        arch = jax.tree.map(float, self.arch)
        data = Data(np.array(self.x), np.array(self.y), self.one_output)
        noise = float(self.noise) if np.ndim(self.noise) == 0 else np.array(self.noise)
        stored, ends = np.array(self.both, order="F"), np.array(self.diagonal)
        rows = GramRows(Kernel(arch, (self.which,)), data.x, noise)
        is_square = stored.shape == (len(data.x), len(data.x))
        factor = Cholesky(stored, ends) if is_square else PackedCholesky(stored, rows, ends)
        if np.isfinite(stored).all() and is_resolved(factor):
            return Fit(arch, self.which, data, noise, factor)
        y = data.y[:, 0] if self.one_output else data.y
        return fit(arch, self.which, data.x, y, noise)  # which says what is wrong


def traced_fit(arch: Node, which: str, X: Points, y: Targets, noise: Noise) -> TracedFit:
    """The factorised Gram matrix of data of which some are tracers; what is not is checked."""
    demand_x64()
    kernel = Kernel(arch, (which,))
    of_images = acts_on_positions(arch)
    x = as_traced_images("X", X, position_axes(arch)) if of_images else as_traced_points("X", X)
    given = as_traced_array("y", y, "outputs") if is_traced(y) else as_targets(y, len(x))
    targets = jnp.asarray(given, dtype=jnp.float64)
    if targets.ndim not in (1, 2) or len(targets) != len(x):
        raise InputError(
            "y",
            f"one target per point of X, shape ({len(x)},) or ({len(x)}, k)",
            f"shape {tuple(targets.shape)}",
            "Check that X and y were loaded and filtered alike",
        )
    variance = as_traced_variances(noise, len(x))
    # each of several variances goes to its own column
    gram = kernel(x, x) + variance * jnp.eye(len(x))
    both = jnp.tril(jnp.linalg.cholesky(gram)) + jnp.triu(gram, 1)
    columns = targets if targets.ndim == 2 else targets[:, None]
    return TracedFit(
        *(arch, which, x, columns, targets.ndim == 1), variance, both, jnp.diagonal(gram)
    )


def as_traced(made: Fit) -> TracedFit:
    """A fit of plain numbers, for points that are tracers."""
    (x, y, one_output), noise = made.data, made.noise
    return TracedFit(made.arch, made.which, x, y, one_output, noise, None, None, made)


def _not_negative(variance: Array) -> Array:
    return jnp.maximum(variance, 0.0)


def seen_with(made: Predictor, *values: object) -> Predictor:
    """The fit as it is computed with beside these values: JAX's, if anything here is a tracer."""
    inside = is_traced(*values) or inside_jit()
    if isinstance(made, TracedFit) and not inside and not made.is_traced():
        return made.plain()
    if isinstance(made, TracedFit) or inside:
        demand_x64()
    return as_traced(made) if inside and isinstance(made, Fit) else made
