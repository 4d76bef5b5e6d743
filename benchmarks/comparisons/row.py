"""One line of the report: a peer and a task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """Ours beside a peer's; None where there is nothing to measure."""

    peer: str
    task: str
    cannot: str  # what the peer cannot do, or does not have
    agreement: float | None = None  # the largest difference, relative to the largest value
    error: float | None = None  # ours, against 50 digits
    peer_error: float | None = None
    seconds: float | None = None
    peer_seconds: float | None = None
    memory: int | None = None  # bytes at the highest, beyond those of a small call
    peer_memory: int | None = None
    checks: dict[str, bool] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """How many times as fast as the peer we are."""
        if self.seconds is None or self.peer_seconds is None:
            return None
        return self.peer_seconds / self.seconds


@dataclass(frozen=True)
class Size:
    """How much is measured: `quick` is for tests, where times say nothing."""

    quick: bool = False

    def of(self, whole: Any, quick: Any) -> Any:
        return quick if self.quick else whole

    def claims(self, **checks: bool) -> dict[str, bool]:
        """Claims of speed and memory, which the quick form does not make."""
        return {} if self.quick else checks
