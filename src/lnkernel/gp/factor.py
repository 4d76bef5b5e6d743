"""What a factorised Gram matrix can do, however it is stored."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np


class Factor(ABC):
    """A symmetric positive definite matrix A and its Cholesky factor, $L L^T = A$."""

    diagonal: np.ndarray  # of A

    @property
    @abstractmethod
    def stored(self) -> np.ndarray:
        """The array that holds L: a square, or half of one."""

    @abstractmethod
    def times(self, b: np.ndarray) -> np.ndarray:
        """A b, for b of shape (n, k)."""

    @abstractmethod
    def half_solve(self, b: np.ndarray) -> np.ndarray:
        """L⁻¹ b, for b of shape (n, k)."""

    def quadratic(self, b: np.ndarray) -> np.ndarray:
        """The diagonal of bᵀ A⁻¹ b, (k,)."""
        half = self.half_solve(b)
        return np.asarray(np.einsum("im,im->m", half, half))

    def inner(self, b: np.ndarray) -> np.ndarray:
        """bᵀ A⁻¹ b, (k, k)."""
        half = self.half_solve(b)
        return np.asarray(half.T @ half)

    @abstractmethod
    def solve_roughly(self, b: np.ndarray) -> np.ndarray:
        """A⁻¹ b, for b of shape (n, k), without refinement."""

    @abstractmethod
    def log_determinant(self) -> float:
        """log det A."""

    @abstractmethod
    def frobenius(self) -> float:
        """The Frobenius norm of A."""

    @abstractmethod
    def with_diagonal(self, diagonal: np.ndarray) -> Factor:
        """The same numbers off the diagonal and these on it. Only `times` is right of what comes back."""

    def solve(self, b: np.ndarray) -> np.ndarray:
        """A⁻¹ b, for b of shape (n, k), with one step of iterative refinement."""
        solution = self.solve_roughly(b)
        return solution + self.solve_roughly(b - self.times(solution))
