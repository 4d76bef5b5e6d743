"""All that the calculus carries for one pair of inputs between two layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import NamedTuple

from lnkernel.calculus.arithmetic import Arithmetic, Number
from lnkernel.calculus.covariance import Covariance
from lnkernel.calculus.positions import Positions


class Both(NamedTuple):
    """A number of each of the two inputs."""

    first: Number
    second: Number


class Mean(NamedTuple):
    """The mean feature of each input: its share m/r of the length, and the relative difference
    (|m1| - |m2|)/(|m1| + |m2|).

    `rest` says what the mean leaves of each length, sqrt(1 - share²), where that formula would cancel:
    where an activation that is not 0 at 0 meets short inputs.
    """

    first: Number
    second: Number
    e: Number
    rest: Both | None = None

    def left(self, num: Arithmetic) -> Both:
        """What the mean leaves of each length."""
        if self.rest is not None:
            return self.rest
        return Both(*(num.sqrt(1 - share * share) for share in (self.first, self.second)))


@singledispatch
def refuse_lost_spread(num: Arithmetic, t: Number, left: Both, centred: Covariance) -> Number:
    """t behind a norm without eps, which divides by what the mean leaves of each length; a number system in which that
    may underflow gives no number there."""
    return t


class Kernels(NamedTuple):
    """Both kernels of one architecture at the same points: `nngp` is K, `ntk` is Θ."""

    nngp: Number
    ntk: Number


@dataclass(frozen=True)
class State:
    r"""One pair of inputs at one place of the network.

    The NTK there is $\Theta = r_1 r_2\,(t + g\,c) + o$:

    * $t$ is free of the scale of the data,
    * $g$ counts the trainable scales on these very coordinates, whose part
      $g\,u_i v_i$ differs from coordinate to coordinate until it is averaged,
    * $o$ comes from trainable biases of normalisations; it does not shrink with the
      lengths, so it cannot be divided by them. None where there is no such bias.

    Of images and sequences it is a block of pairs of positions, see `lnkernel.calculus.positions`.
    """

    total: Covariance
    centred: Covariance  # the same less the mean features; `total` itself where they are zero
    t: Number
    g: int = 0
    o: Number = None
    mean: Mean | None = None
    gaussian: bool = True
    positions: Positions | None = None

    @property
    def averaged(self) -> Number:
        """t with the coordinate-dependent part averaged in, as the next Dense does."""
        return self.t + self.g * self.total.c if self.g else self.t

    def kernels(self, num: Arithmetic) -> Kernels:
        """K and Θ at this place."""
        ntk = self.total.times_lengths(num, self.averaged)
        nngp = self.total.times_lengths(num, self.total.c)
        return Kernels(nngp, ntk if self.o is None else ntk + self.o)


def at_input(total: Covariance, centred: Covariance, positions: Positions | None = None) -> State:
    """The raw input: no parameter has acted yet."""
    return State(total, centred, t=0.0, gaussian=False, positions=positions)
