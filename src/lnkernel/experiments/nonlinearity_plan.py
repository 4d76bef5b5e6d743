"""The networks and the size of the experiment on the nonlinearity of LayerNorm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lnkernel.arch import Dense, GroupNorm, LayerNorm, Serial, serial

CLASSES = 10
DEEP = 4  # norms, from which on a network is trained at all rates


class LNKind(NamedTuple):
    """A network of affine layers and norms: how many norms, and features in a group, None for all."""

    norms: int
    group_size: int | None

    def arch(self, width: int, outputs: int = CLASSES) -> Serial:
        """affine, norm, affine, ..., affine."""
        norm = LayerNorm() if self.group_size is None else GroupNorm(self.group_size)
        return serial(*[Dense(width, b_std=1.0), norm] * self.norms, Dense(outputs, b_std=1.0))

    @property
    def name(self) -> str:
        return "LN-Net" if self.group_size is None else f"LN-G, groups of {self.group_size}"


@dataclass(frozen=True)
class NonlinearityPlan:
    """The size of the experiment."""

    seeds: list[int]
    points: int = 5000
    width: int = 128
    epochs: int = 60
    batch: int = 100
    rates: Sequence[float] = (1e-3, 3e-3)  # of Adam; deep networks are shown at the better one
    depths: Sequence[int] = (1, 2, 4, 8)  # norms of an LN-Net
    groups: Sequence[int] = (2, 4, 8, 16, 32)  # of the one norm of LN-G
    kernel_sizes: Sequence[int | None] = (4, 6, 8, 16, 32, None)
    kernel_depths: Sequence[int] = (1, 4)
    noises: Sequence[float] = (1e-1, 1e-2, 1e-3, 1e-4)  # over the mean of the diagonal
    constructed: Sequence[int] = (100, 200, 400)  # points that `ln_net` gets

    @property
    def trained(self) -> list[LNKind]:
        """The networks that are trained: LN-Nets of all depths, LN-G with all numbers of groups."""
        deep = [LNKind(norms, None) for norms in self.depths]
        return [*deep, *(LNKind(1, self.width // g) for g in self.groups)]

    def rates_of(self, kind: LNKind) -> Sequence[float]:
        """Networks of few norms are trained at the last rate alone, deep ones at all."""
        return self.rates if kind.norms >= DEEP else self.rates[-1:]

    @property
    def kernels(self) -> list[LNKind]:
        return [LNKind(depth, size) for depth in self.kernel_depths for size in self.kernel_sizes]

    @property
    def settings(self) -> dict[str, Any]:
        """All of it but the seeds, for the record."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "seeds"}
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in own.items()
        }


QUICK: dict[str, Any] = {
    "points": 800,
    "width": 32,
    "epochs": 20,
    "rates": (3e-3,),
    "depths": (1, 4),
    "groups": (2, 8),
    "kernel_sizes": (4, 16, None),
    "noises": (1e-2, 1e-4),
    "constructed": (100, 200),
}
