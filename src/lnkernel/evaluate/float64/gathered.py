"""Lengths of many pairs side by side, each stored once for its input.

A hundred inputs have five thousand pairs, in each of which two lengths stand, to twice the digits. What is computed of
a length alone is computed for the hundred, and its results are copied to the pairs when these ask for them.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from lnkernel.evaluate.float64.precise import Precise, as_precise

FEW = 512  # inputs, of which numbers are kept: for their pairs, however few, they are known already


class Gathered(Precise):
    """The numbers of `inputs` at the places `index`: to whoever does not know of it, `Precise` numbers of all pairs."""

    def __init__(self, inputs: Precise, index: np.ndarray):
        # frozen, as all `Precise` numbers are
        vars(self).update(inputs=inputs, index=index)

    inputs: Precise  # (n,), without exponents
    index: np.ndarray  # (pairs,)

    @cached_property
    def high(self) -> Any:
        return self.inputs.high[self.index]

    @cached_property
    def low(self) -> Any:
        return self.inputs.low[self.index]

    def root(self) -> Any:
        return self._root

    @cached_property
    def _root(self) -> Any:
        return self.inputs.root()[self.index]

    def __mul__(self, other: Any) -> Precise:
        alike = self._alike(other)
        return super().__mul__(other) if alike is None else self._made(self.inputs * alike)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Precise:
        alike = self._alike(other)
        return super().__add__(other) if alike is None else self._made(self.inputs + alike)

    __radd__ = __add__

    def _made(self, inputs: Precise) -> Gathered:
        return Gathered(inputs, self.index)

    def _alike(self, other: Any) -> Precise | None:
        """The other factor or summand for each of the inputs; None where it differs from pair to pair."""
        if isinstance(other, Gathered):
            return other.inputs if other.index is self.index else None
        other = as_precise(other)
        return other if np.ndim(other.high) == 0 and other.exponent is None else None


def gather(inputs: Precise, index: np.ndarray) -> Precise:
    """Numbers of single inputs at these places."""
    count = len(inputs.high)
    if inputs.exponent is None and (count <= FEW or count < len(index)):
        return Gathered(inputs, index)
    exponent = None if inputs.exponent is None else inputs.exponent[index]
    return Precise(inputs.high[index], inputs.low[index], exponent)
