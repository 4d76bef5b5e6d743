"""Progress bars: shown at once, never, or only once a run turns out to be long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")
PATIENCE = 2.0  # seconds until a bar is shown that nobody asked for


def show_progress(items: Sequence[T], wanted: bool | None, unit: str) -> Iterable[T]:
    """The items, with a bar that counts them. `wanted`: True, False, or None for long runs only."""
    if wanted is False:
        return items
    from tqdm import tqdm

    bar: Iterable[T] = tqdm(items, unit=unit, delay=PATIENCE if wanted is None else 0.0)
    return bar


def _is_not_the_first() -> bool:
    """Whether this is one of several processes that run one program, and not the first of them."""
    import jax

    return jax.distributed.is_initialized() and jax.process_index() != 0


class Bar:
    """A bar of `total` units. `wanted`: True, False, or None for long runs only."""

    def __init__(self, wanted: bool | None, total: int, unit: str, title: str, done: int = 0):
        self._bar: Any = None
        if wanted is None and _is_not_the_first():
            wanted = False  # all processes of a program go on together: one bar is for all
        if wanted is not False:
            from tqdm import tqdm

            delay = PATIENCE if wanted is None else 0.0
            self._bar = tqdm(total=total, initial=done, unit=unit, desc=title, delay=delay)

    def update(self, count: int, said: str = "") -> None:
        """So many more units are done; `said` stands behind the bar."""
        if self._bar is not None:
            if said:
                self._bar.set_postfix_str(said, refresh=False)
            self._bar.update(count)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()
