r"""Images of another size: $K' = M K M^T$ and $\Theta' = M \Theta M^T$, sums over positions with weights.

They are sums as of a pooling, and have its accuracy; but with the method "nearest" every position is one before it.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np

from lnkernel.arch.resize import Resize
from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.places import taken
from lnkernel.calculus.pooling import added_up
from lnkernel.calculus.positions import Groups, demand_positions
from lnkernel.calculus.rules import rule
from lnkernel.calculus.special import special
from lnkernel.calculus.state import State


@special
def matrix_along(num: Arithmetic, x: Number, axis: int, matrix: np.ndarray) -> Number:
    """the sums of x along one axis with these weights, (places behind, places before)."""
    raise NotImplementedError


@rule.register
def _(layer: Resize, state: State, num: Arithmetic) -> State:
    at = demand_positions(layer, state.positions)
    if not layer.mixes:
        return taken(num, state, at, layer.over(at.shape))
    return added_up(num, state, at, WeightedSums(layer.weights(at.shape)))


class WeightedSums(NamedTuple):
    """Sums with weights, one axis after another."""

    matrices: tuple[np.ndarray, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(matrix) for matrix in self.matrices)

    def total(self, num: Arithmetic, x: Number, groups: Groups) -> Number:
        return _along_all(num, x, groups, self.matrices)

    def largest(self, num: Arithmetic, x: Number, groups: Groups) -> Number:
        r"""By $(\sum|M_p| r_p)^2 \le \sum|M_p| \sum|M_p| r_p^2$."""
        sizes = [np.abs(matrix) for matrix in self.matrices]
        weighted = [matrix.sum(axis=1, keepdims=True) * matrix for matrix in sizes]
        return _along_all(num, x, groups, tuple(weighted))

    def some(self, num: Arithmetic, live: Number, groups: Groups) -> Number:
        read = tuple((matrix != 0).astype(np.float64) for matrix in self.matrices)
        return _along_all(num, num.as_number(live), groups, read) > 0


def _along_all(
    num: Arithmetic, x: Number, groups: Groups, matrices: tuple[np.ndarray, ...]
) -> Number:
    moves = [(axes[0], matrix) for axes, matrix in zip(groups, matrices, strict=True)]
    return reduce(lambda made, move: matrix_along(num, made, *move), moves, x)
