"""The progress bar of a training run."""

from __future__ import annotations

from typing import Any

from lnkernel.finite.seeds import PATIENCE


class Bar:
    """A bar of steps that shows the loss. `wanted`: True, False, or None for long runs only."""

    def __init__(self, wanted: bool | None, steps: int, done: int):
        self.bar: Any = None
        if wanted is not False:
            from tqdm import tqdm

            delay = PATIENCE if wanted is None else 0.0
            self.bar = tqdm(total=steps, initial=done, unit="step", desc="training", delay=delay)

    def update(self, steps: int, loss: float) -> None:
        if self.bar is not None:
            self.bar.set_postfix_str(f"loss {loss:.3g}", refresh=False)
            self.bar.update(steps)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
