r"""Rigorous bounds of the smallest eigenvalue of $A = \Theta(X, X) + D$ and of the norm of the mean.

D holds the noise of each point on its diagonal; Θ is positive semi-definite, so no eigenvalue of A is below the
least noise. With float64 midpoints A and radii R of the entries: if the floating-point Cholesky
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
    """A = Θ(X, X) + D of float64 inputs, enclosed entry by entry; computed when first asked for."""

    arch: Node
    x: np.ndarray
    noise: np.ndarray  # the diagonal of D, (n,)
    progress: Callable[[int], object] | None = None

    @cached_property
    def float64(self) -> entries.Enclosed:
        """A; what is off its diagonal is that of Θ."""
        middle, radius = self._theta
        place = np.diag_indices(len(middle))
        own = self.own_diagonal
        middle[place] = own.middle + self.noise
        rounding = np.where(
            self.noise > 0, np.abs(middle[place]) * (ROUNDING * (1 + 2.0**-40)), 0.0
        )
        radius[place] = np.where(
            self.noise > 0, np.nextafter(own.radius + rounding, np.inf), own.radius
        )
        return entries.Enclosed(middle, radius)

    @cached_property
    def own_diagonal(self) -> entries.Enclosed:
        """The diagonal of Θ itself, (n,)."""
        middle, radius = self._theta
        return entries.Enclosed(middle.diagonal().copy(), radius.diagonal().copy())

    @cached_property
    def _theta(self) -> entries.Enclosed:
        demand_memory(len(self.x), 3, "The enclosed Gram matrix")  # middles, radii, work space
        return entries.gram(self.arch, self.x, BITS, self.progress).ntk

    @cached_property
    def own_balls(self) -> np.ndarray:
        """Θ, (n, n) balls of MANY_BITS bits, for small n."""
        return entries.ntk_balls(self.arch, self.x, MANY_BITS)

    @cached_property
    def balls(self) -> np.ndarray:
        """A, (n, n) balls of MANY_BITS bits, for small n."""
        with working_precision(MANY_BITS):
            return _shift(self.own_balls, -_as_balls(self.noise))

    @property
    def least_noise(self) -> float:
        return float(self.noise.min())


def eigenvalue_floor(gram: EnclosedGram) -> float:
    """A number that λ_min(A) is proved not to be below; positive, or an error."""
    try:
        return max(_factorised_floor(gram), gram.least_noise)
    except CertificateError:
        if gram.least_noise > 0:
            return gram.least_noise
        raise


def _factorised_floor(gram: EnclosedGram) -> float:
    middle, _ = gram.float64
    finite = bool(np.isfinite(middle).all())
    guess = float(linalg.eigvalsh(middle, subset_by_index=[0, 0])[0]) if finite else 0.0
    loss = _loss(gram, 0.0) if finite else math.inf
    enough = 4 if len(middle) > FEW_BALLS else 1e5
    if guess > enough * loss and is_above(gram, floor := _round_down(guess - 1.5 * loss)):
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
    """Whether λ_min(A) >= claim is proved."""
    if not claim > 0:
        return False
    if claim <= gram.least_noise:
        return True
    if np.isfinite(gram.float64.middle).all():
        shift = claim + _loss(gram, claim) * (1 + 2.0**-40)
        if shift - _loss(gram, shift) >= claim and _factorises(gram.float64.middle, shift):
            return True
    if len(gram.x) > MOST_BALLS:
        return False
    with working_precision(MANY_BITS):
        return _ldl(_shift(gram.balls, arb(claim))) is not None


def _round_down(x: float) -> float:
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
        trace = _sum_of_sizes(middle.diagonal()) * (1 + 2 * u)
        largest = arb(float(abs(middle.diagonal()).max())) + abs(arb(shift))
        rows = arb(float(radius.sum(axis=1).max())) * (1 + 2 * n * u)
        return up(g / (1 - g) * trace + u * largest + rows + arb(2) ** -1000)


def _sum_of_sizes(values: np.ndarray) -> arb:
    """The sum of the absolute values, which may be beyond float64."""
    return sum((arb(abs(t)) for t in values.tolist()), arb(0))


# ---------------------------------------------------------------- in balls


def _as_balls(values: np.ndarray) -> np.ndarray:
    return np.array([arb(float(t)) for t in values], dtype=object)


def _shift(matrix: np.ndarray, shift: arb | np.ndarray) -> np.ndarray:
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
            if claim > 0 and _ldl(_shift(gram.balls, arb(claim))) is not None:
                return claim
    raise CertificateError(
        "no lower bound of the smallest eigenvalue of Θ(X, X) could be proved",
        "Drop near-duplicates from X",
    )


_middle = np.frompyfunc(lambda ball: ball.mid(), 1, 1)


def _middles(values: np.ndarray) -> np.ndarray:
    return np.asarray(_middle(values))


# ---------------------------------------------------------------- the norm of the mean


def norm_ceiling(gram: EnclosedGram, y: np.ndarray, floor: float) -> float:
    r"""An upper bound of $\sqrt{a^T\Theta a}$ with $a = A^{-1}y$, the largest over the columns of y (n, k).

    For any $\tilde a$, with $\rho = y - A\tilde a$ and because $\Theta \le A$,

        |a| <= |a~| + |A^-1 rho| <= sqrt(a~^T Theta a~) + |rho|/sqrt(lambda_min)

    in the norm $|a| = \sqrt{a^T\Theta a}$; the last term is also at most
    $\sqrt{\mathrm{tr}\,\Theta}\,|\rho|/\lambda_{min}$, which is less where the noise is large. Without noise the
    square is $y^T\Theta^{-1}y = 2 y^T\tilde a - \tilde a^T\Theta\tilde a + \rho^T\Theta^{-1}\rho$, where the last term,
    at most $|\rho|^2/\lambda_{min}$, is tiny.
    """
    return max(_one_ceiling(gram, column, floor) for column in y.T)


def _one_ceiling(gram: EnclosedGram, y: np.ndarray, floor: float) -> float:
    if not y.any():
        return 0.0
    power = int(np.frexp(np.abs(y).max())[1])
    plain = np.ldexp(y, -power)  # exactly, but for what is 1e-308 of the largest; see below
    lost = 0.0 if (np.ldexp(plain, power) == y).all() else 2.0**-1000
    best = arb.pos_inf()
    if np.isfinite(gram.float64.middle).all():
        best = _float_ceiling(gram, plain, floor)
    if len(y) <= MOST_BALLS and _is_coarse(best, gram, floor):
        best = _smaller(_ceiling_in_balls(gram, plain), best)
    with working_precision(BITS):
        # what the targets lost at the end of float64's range counts as |A^-1 rho| does above
        slack = arb(lost) * len(y) / arb(floor).sqrt()
        return up((best + slack) * arb(2) ** power)


def _ceiling_in_balls(gram: EnclosedGram, y: np.ndarray) -> arb:
    with working_precision(MANY_BITS):
        factors = _ldl(gram.balls)
        if factors is None:
            return arb.pos_inf()
        a = _solve(factors, _as_balls(y))
        return _root(sum(a * gram.own_balls.dot(a)))


def _root(square: arb) -> arb:
    """The square root of the largest number of the ball, which is at least 0."""
    above = square.upper()
    return above.sqrt() if above > 0 else arb(0)


def _smaller(x: arb, y: arb) -> arb:
    return x if x < y else y


def _is_coarse(best: arb, gram: EnclosedGram, floor: float) -> bool:
    if not best.is_finite():
        return True
    return len(gram.x) <= FEW_BALLS and floor < 1e5 * _loss(gram, 0.0)


def _float_ceiling(gram: EnclosedGram, y: np.ndarray, floor: float) -> arb:
    middle, radius = gram.float64
    factor, solution, info = linalg.lapack.dposv(middle, y[:, None], lower=1)
    if info != 0:
        return arb.pos_inf()
    correction, _ = linalg.lapack.dpotrs(factor, y[:, None] - middle @ solution, lower=1)
    solution = (solution + correction)[:, 0]
    n, own = len(y), gram.own_diagonal
    with working_precision(BITS):
        a, right = _column(solution), _column(y)
        theta = arb_mat(n, n, [arb(t) for t in middle.ravel().tolist()])
        for i, t in enumerate(own.middle.tolist()):
            theta[i, i] = arb(t)
        product = theta * a
        of_theta = radius.copy()  # without the rounding error of the noise, which Θ has not
        np.fill_diagonal(of_theta, own.radius)
        spread = of_theta @ np.abs(solution) * (1 + 2 * n * ROUNDING)
        image = [product[i, 0] + arb(0, float(spread[i])) for i in range(n)]  # Θ a~
        fit = sum((right[i, 0] * a[i, 0] for i in range(n)), arb(0))
        energy = sum((a[i, 0] * image[i] for i in range(n)), arb(0))
        noise = [arb(t) for t in gram.noise.tolist()]
        residual = [right[i, 0] - image[i] - noise[i] * a[i, 0] for i in range(n)]
        squares = sum((t * t for t in residual), arb(0))
        trace = _sum_of_sizes(own.middle) + _sum_of_sizes(own.radius)
        missing = _root(squares / arb(floor))
        first = _root(energy) + _smaller(missing, _root(squares * trace) / arb(floor))
        if gram.noise.any():
            return first
        return _smaller(_root(2 * fit - energy + squares / arb(floor)), first)


def _column(values: np.ndarray) -> Any:
    return arb_mat(len(values), 1, [arb(t) for t in values.tolist()])
