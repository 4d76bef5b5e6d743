r"""Rigorous bounds of the smallest eigenvalue of Θ(X, X) and of $y^T \Theta^{-1} y$.

With float64 midpoints A and radii R of the entries: if the floating-point Cholesky
factorisation of fl(A - cI) runs to its end, then (Rump 2006; Higham, Theorem 10.3)

    lambda_min >= c - g/(1-g) tr(A - cI) - u max(a_ii) - max row sum of R,   g = (n+2)u/(1 - (n+2)u).

Where λ_min is below what float64 resolves, the same is done in balls, by $LDL^T$.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb, arb_mat
from scipy import linalg

from lnkernel.arch import Node
from lnkernel.bounds.certified.supremum import down, up
from lnkernel.errors import CertificateError
from lnkernel.evaluate.balls import entries
from lnkernel.evaluate.balls.numbers import BITS, working_precision
from lnkernel.gram.memory import demand_memory

ROUNDING = 2.0**-53
MANY_BITS = 384  # of the balls where float64 does not resolve the smallest eigenvalue
MOST_BALLS = 400  # points up to which that is done; it takes about n^3/3 operations of balls
FEW_BALLS = 100  # points up to which it is also done where float64 gives less than five digits


@dataclass(frozen=True)
class EnclosedGram:
    """Θ(X, X) of float64 inputs, enclosed entry by entry; computed when first asked for."""

    arch: Node
    x: np.ndarray
    progress: Callable[[int], object] | None = None

    @cached_property
    def float64(self) -> entries.Enclosed:
        demand_memory(len(self.x), 3, "The enclosed Gram matrix")  # middles, radii, work space
        return entries.gram(self.arch, self.x, BITS, self.progress).ntk

    @cached_property
    def balls(self) -> np.ndarray:
        """(n, n) balls of MANY_BITS bits, for small n."""
        return entries.ntk_balls(self.arch, self.x, MANY_BITS)


def eigenvalue_floor(gram: EnclosedGram) -> float:
    """A number that λ_min(Θ) is proved not to be below; positive, or an error."""
    middle, _ = gram.float64
    finite = bool(np.isfinite(middle).all())
    guess = float(linalg.eigvalsh(middle, subset_by_index=[0, 0])[0]) if finite else 0.0
    loss = _loss(gram, 0.0) if finite else math.inf
    enough = 4 if len(middle) > FEW_BALLS else 1e5
    if guess > enough * loss and is_above(gram, floor := _rounded(guess - 1.5 * loss)):
        return floor
    if len(middle) > MOST_BALLS:
        raise CertificateError(
            f"the smallest eigenvalue of Θ(X, X) is about {guess:.3g}, and float64 proves nothing "
            f"below {4 * loss:.3g} for this matrix of {len(middle)} points",
            f"Drop near-duplicates, or use at most {MOST_BALLS} points, for which balls of "
            f"{MANY_BITS} bits take over",
        )
    return _floor_in_balls(gram)


def is_above(gram: EnclosedGram, claim: float) -> bool:
    """Whether λ_min(Θ) >= claim is proved."""
    if not claim > 0:
        return False
    if np.isfinite(gram.float64.middle).all():
        shift = claim + _loss(gram, claim) * (1 + 2.0**-40)
        if shift - _loss(gram, shift) >= claim and _factorises(gram.float64.middle, shift):
            return True
    if len(gram.x) > MOST_BALLS:
        return False
    with working_precision(MANY_BITS):
        return _ldl(_shifted(gram.balls, arb(claim))) is not None


def _rounded(x: float) -> float:
    """A little less, with fewer digits, so that another machine's rounding proves it as well."""
    return x * (1 - 2.0**-40)


def _factorises(matrix: np.ndarray, shift: float) -> bool:
    shifted = np.array(matrix, order="F")
    np.fill_diagonal(shifted, matrix.diagonal() - shift)
    _, info = linalg.lapack.dpotrf(shifted, lower=1, overwrite_a=1)
    return info == 0


def _loss(gram: EnclosedGram, shift: float) -> float:
    """How far below the shift the smallest eigenvalue may be, rounded up.

    The trace of A bounds that of A - cI, and 2^-1000 more than covers underflow.
    """
    middle, radius = gram.float64
    n = len(middle)
    with working_precision(BITS):
        u = arb(ROUNDING)
        g = (n + 2) * u / (1 - (n + 2) * u)
        trace = arb(math.fsum(abs(middle.diagonal()))) * (1 + 2 * u)
        largest = arb(float(abs(middle.diagonal()).max())) + abs(arb(shift))
        rows = arb(float(radius.sum(axis=1).max())) * (1 + 2 * n * u)
        return up(g / (1 - g) * trace + u * largest + rows + arb(2) ** -1000)


# ---------------------------------------------------------------- in balls


def _shifted(matrix: np.ndarray, shift: arb) -> np.ndarray:
    out = matrix.copy()
    np.fill_diagonal(out, matrix.diagonal() - shift)
    return out


def _ldl(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """L (unit, lower) and the pivots; None unless every pivot is proved positive."""
    work, n = matrix.copy(), len(matrix)
    factor, pivots = np.full((n, n), arb(0), dtype=object), np.empty(n, dtype=object)
    for k in range(n):
        pivot = work[k, k]
        if not pivot > 0:
            return None
        column = work[k + 1 :, k] / pivot
        pivots[k], factor[k + 1 :, k] = pivot, column
        for i in range(k + 1, n):
            work[i:, i] = work[i:, i] - column[i - k - 1 :] * work[i, k]
    return factor, pivots


def _solve(factors: tuple[np.ndarray, np.ndarray], right: np.ndarray) -> np.ndarray:
    factor, pivots = factors
    x, n = right.copy(), len(right)
    for k in range(n):
        x[k + 1 :] = x[k + 1 :] - factor[k + 1 :, k] * x[k]
    x = x / pivots
    for k in range(n - 1, -1, -1):
        x[:k] = x[:k] - factor[k, :k] * x[k]
    return x


def _floor_in_balls(gram: EnclosedGram) -> float:
    """By inverse iteration, which only has to guess well, and a factorisation, which proves."""
    with working_precision(MANY_BITS):
        factors = _ldl(gram.balls)
        if factors is None:
            raise CertificateError(
                f"Θ(X, X) could not be proved positive definite, even in balls of {MANY_BITS} bits",
                "It is singular if two inputs are equal; merge such points, or move them apart",
            )
        n = len(gram.x)
        vector = np.array([arb(float(t)) for t in np.cos(np.arange(1, n + 1))], dtype=object)
        guess = arb(0)
        for _ in range(12):
            new = _middles(_solve(factors, vector))
            size = sum(new * new).sqrt()
            vector = _middles(new / size)
        guess = 1 / sum(vector * _solve(factors, vector))
        for slack in (1e-9, 1e-6, 1e-3, 0.1, 0.5):
            claim = down(guess * (1 - slack))
            if claim > 0 and _ldl(_shifted(gram.balls, arb(claim))) is not None:
                return claim
    raise CertificateError(
        "no lower bound of the smallest eigenvalue of Θ(X, X) could be proved",
        "Drop near-duplicates from X",
    )


_middle = np.frompyfunc(lambda ball: ball.mid(), 1, 1)


def _middles(values: np.ndarray) -> np.ndarray:
    return np.asarray(_middle(values))


# ---------------------------------------------------------------- y^T Theta^-1 y


def quadratic_ceiling(gram: EnclosedGram, y: np.ndarray, floor: float) -> float:
    r"""An upper bound of $y^T \Theta^{-1} y$, the largest over the columns of y (n, k).

    For any a, $y^T\Theta^{-1}y = 2 y^Ta - a^T\Theta a + \rho^T\Theta^{-1}\rho$ with
    $\rho = y - \Theta a$, and the last term is at most $|\rho|^2/\lambda_{min}$.
    """
    return max(_one_ceiling(gram, column, floor) for column in y.T)


def _one_ceiling(gram: EnclosedGram, y: np.ndarray, floor: float) -> float:
    if not y.any():
        return 0.0
    best = math.inf
    if np.isfinite(gram.float64.middle).all():
        best = _float_ceiling(gram, y, floor)
    if len(y) <= MOST_BALLS and _is_coarse(best, gram, floor):
        with working_precision(MANY_BITS):
            factors = _ldl(gram.balls)
            if factors is not None:
                right = np.array([arb(float(t)) for t in y], dtype=object)
                best = min(best, up(sum(right * _solve(factors, right))))
    return best


def _is_coarse(best: float, gram: EnclosedGram, floor: float) -> bool:
    if not math.isfinite(best):
        return True
    return len(gram.x) <= FEW_BALLS and floor < 1e5 * _loss(gram, 0.0)


def _float_ceiling(gram: EnclosedGram, y: np.ndarray, floor: float) -> float:
    middle, radius = gram.float64
    _, solution, info = linalg.lapack.dposv(middle, y[:, None], lower=1)
    if info != 0:
        return math.inf
    solution = solution[:, 0]
    n = len(y)
    with working_precision(BITS):
        a, right = _column(solution), _column(y)
        product = arb_mat(n, n, [arb(t) for t in middle.ravel().tolist()]) * a
        spread = radius @ np.abs(solution) * (1 + 2 * n * ROUNDING)
        widened = [product[i, 0] + arb(0, float(spread[i])) for i in range(n)]
        fit = sum((right[i, 0] * a[i, 0] for i in range(n)), arb(0))
        energy = sum((a[i, 0] * widened[i] for i in range(n)), arb(0))
        residual = [right[i, 0] - widened[i] for i in range(n)]
        return up(2 * fit - energy + sum((t * t for t in residual), arb(0)) / arb(floor))


def _column(values: np.ndarray) -> Any:
    return arb_mat(len(values), 1, [arb(t) for t in values.tolist()])
