"""What predictions are made with: `Fit`, of plain numbers, and `TracedFit`, inside JAX's transformations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from lnkernel.gp.filters import Filter
from lnkernel.types import MorePoints

Numbers = Any  # NumPy's arrays for the one, JAX's for the other, never mixed


class Predictor(ABC):
    """A = kernel(X, X) + noise I, factorised. Both kinds have these members, by the same formulas."""

    which: str
    noise: Numbers

    @property
    @abstractmethod
    def targets(self) -> Numbers: ...

    @property
    @abstractmethod
    def coefficients(self) -> Numbers: ...

    @abstractmethod
    def shape_of_inputs(self) -> tuple[int, ...]: ...

    @abstractmethod
    def inputs(self, x: MorePoints) -> Numbers: ...

    @abstractmethod
    def columns(self, values: Numbers) -> Numbers: ...

    @abstractmethod
    def solve(self, b: Numbers) -> Numbers: ...

    @abstractmethod
    def solve_roughly(self, b: Numbers) -> Numbers: ...

    @abstractmethod
    def apply_filter(self, chosen: Filter, b: Numbers) -> Numbers: ...

    def filtered_targets(self, chosen: Filter) -> Numbers:
        """φ(A) y."""
        return self.apply_filter(chosen, self.targets)

    @abstractmethod
    def misfit(self) -> Numbers: ...

    @abstractmethod
    def log_determinant(self) -> Numbers: ...

    @abstractmethod
    def largest_eigenvalue(self) -> Numbers: ...

    @abstractmethod
    def mean(self, coefficients: Numbers, x: Numbers) -> Numbers: ...

    def predictions(self, x: Numbers) -> Numbers:
        """kernel(x, X) A⁻¹ y, (m, k)."""
        return self.mean(self.coefficients, x)

    @abstractmethod
    def variance(self, x: Numbers) -> Numbers: ...

    @abstractmethod
    def covariance(self, x: Numbers) -> Numbers: ...

    @abstractmethod
    def covariance_root(self, x: Numbers) -> Numbers: ...

    @abstractmethod
    def ensemble_variance(self, solver: Callable[[Numbers], Numbers], x: Numbers) -> Numbers: ...

    @abstractmethod
    def ensemble_covariance(self, solver: Callable[[Numbers], Numbers], x: Numbers) -> Numbers: ...
