"""Whether a file is a picture on which something is drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def shows_something(path: Path, colours: int = 20, drawn: float = 0.01) -> bool:
    """A PNG of at least so many colours, of which at least this share is not the background."""
    from matplotlib.image import imread

    pixels = (imread(path)[..., :3] * 255).round().astype(int).reshape(-1, 3)
    found, counts = np.unique(pixels, axis=0, return_counts=True)
    return len(found) >= colours and bool(counts.max() <= (1 - drawn) * len(pixels))
