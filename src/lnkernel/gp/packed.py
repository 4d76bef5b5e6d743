r"""Cholesky's method on half of the Gram matrix, for as many points as fit.

A square matrix of 40,000 points takes 12.8 GB, its half 6.4. LAPACK factorises the half in place, as fast as a square
matrix (`rectangular_packed`), and then A is gone. Where A is needed again, for refinement, its rows come from the
kernel once more, which takes a small part of the time of the factorisation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from lnkernel.errors import NotEnoughMemoryError, TooManyPointsError
from lnkernel.gp import rectangular_packed
from lnkernel.gp.factor import Factor
from lnkernel.gp.noise import Variance
from lnkernel.gp.rectangular_packed import MOST, diagonal_of, make_array, write_rows
from lnkernel.gram import memory
from lnkernel.gram.kernel import Kernel
from lnkernel.progress import Bar

ENTRIES = 2**24  # of A, computed at a time (128 MB)
ROOM = 4  # square matrices, for which there has to be memory if one is made


@dataclass(frozen=True)
class GramRows:
    """A = S (kernel(x, x) + noise) S, some rows at a time, up to the diagonal; S is diagonal, mostly 1."""

    kernel: Kernel
    x: np.ndarray
    noise: Variance
    scale: np.ndarray | None = None  # the diagonal of S

    def __iter__(self) -> Iterator[tuple[int, np.ndarray]]:
        """The number of the first row, and the rows (m, first + m)."""
        n, start = len(self.x), 0
        noise = np.broadcast_to(self.noise, n)
        with Bar(None, n * (n + 1) // 2, "entries", "Gram matrix") as bar:
            while start < n:
                stop = min(n, start + max(1, ENTRIES // n))
                # the transpose has columns without gaps, which is how they are stored
                rows = np.asarray(self.kernel(self.x[:stop], self.x[start:stop])).T
                within = np.arange(stop - start)
                rows[within, start + within] = self.kernel.diagonal(self.x[start:stop])
                rows[within, start + within] += noise[start:stop]
                if self.scale is not None:
                    rows *= self.scale[start:stop, None]
                    rows *= self.scale[:stop]
                yield start, rows
                bar.update((start + 1 + stop) * (stop - start) // 2)
                start = stop


@dataclass(frozen=True)
class PackedCholesky(Factor):
    """The factor of A in half the memory of A, and how A is computed again."""

    packed: np.ndarray  # L, in the rectangular full packed format
    rows: GramRows
    diagonal: np.ndarray  # of A

    @property
    def stored(self) -> np.ndarray:
        return self.packed

    def times(self, b: np.ndarray) -> np.ndarray:
        """A b, for b of shape (n, k), by computing A once more."""
        product = np.zeros(b.shape)
        for start, rows in self.rows:
            stop = start + len(rows)
            below, corner = rows[:, :start], rows[:, start:]
            product[:start] += below.T @ b[start:stop]
            product[start:stop] += below @ b[:start]
            both = np.tril(corner, -1)
            product[start:stop] += both @ b[start:stop] + both.T @ b[start:stop]
        return product + self.diagonal[:, None] * b

    def half_solve(self, b: np.ndarray) -> np.ndarray:
        return self._triangular(b, "N")

    def solve_roughly(self, b: np.ndarray) -> np.ndarray:
        return self._triangular(self._triangular(b, "N"), "T")

    def _triangular(self, b: np.ndarray, trans: str) -> np.ndarray:
        right = np.array(b, dtype=np.float64, order="F")
        solve = scipy.linalg.lapack.dtfsm
        return np.asarray(solve(1.0, self._numbers, right, uplo="L", trans=trans, overwrite_b=1))

    def log_determinant(self) -> float:
        return 2 * float(np.log(diagonal_of(self.packed)).sum())

    def frobenius(self) -> float:
        return self._frobenius

    @cached_property
    def _frobenius(self) -> float:
        norm = scipy.linalg.lapack.dlange
        parts = [norm("F", self.diagonal[:, None])]
        for start, rows in self.rows:
            rows[np.arange(len(rows)), start + np.arange(len(rows))] = 0.0
            below = np.concatenate([rows[:, :start], np.tril(rows[:, start:])], axis=1)
            parts.append(math.sqrt(2) * norm("F", below.T))
        return math.hypot(*parts)

    def with_diagonal(self, diagonal: np.ndarray) -> PackedCholesky:
        return replace(self, diagonal=diagonal)

    @property
    def _numbers(self) -> np.ndarray:
        """The array as LAPACK takes it, without a copy."""
        return self.packed.reshape(-1, order="F")


def is_needed(n: int) -> bool:
    """Whether a square matrix of n points leaves no room for three others, which training in time takes beside it.
    Then nothing but memory is lost by holding it."""
    return ROOM * 8 * n * n > memory.available_memory()


def packed_cholesky(rows: GramRows, shift: float = 0.0) -> PackedCholesky | None:
    """The factor of A + shift I; None where there is none. It refuses more points than it can hold."""
    n = len(rows.x)
    needed, available = 4 * n * (n + 1) + 3 * 8 * ENTRIES, memory.available_memory()
    if needed > available:
        raise NotEnoughMemoryError("Half of the Gram matrix", n, needed, available, most=MOST)
    if n > MOST:
        raise TooManyPointsError(n, MOST)
    packed, diagonal = make_array(n), np.empty(n)
    for start, some in rows:
        within = np.arange(len(some))
        diagonal[start + within] = some[within, start + within]
        some[within, start + within] += shift
        write_rows(packed, start, some)
    if not (diagonal > 0).all():
        return None
    done = rectangular_packed.factorise_in_place(packed)
    return PackedCholesky(packed, rows, diagonal + shift) if done else None
