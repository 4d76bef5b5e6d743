"""A progress bar for certificates of many points."""

from __future__ import annotations

LONG = 300  # points from which on it is shown


class Bar:
    """A progress bar over the entries of the matrix, where there are many of them."""

    def __init__(self, wanted: bool | None, n: int):
        self.shown = n >= LONG if wanted is None else wanted and n >= LONG
        self.total, self.bar = n * (n + 1) // 2, None

    def __enter__(self) -> Bar:
        if self.shown:
            from tqdm import tqdm

            self.bar = tqdm(total=self.total, unit="entries", desc="enclosing the kernel")
        return self

    def update(self, count: int) -> None:
        if self.bar is not None:
            self.bar.update(count)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()
