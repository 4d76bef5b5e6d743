"""Arguments that are one number."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_number(value: Any) -> float | None:
    """A number of Python, NumPy or JAX as a float; None for everything else, texts included."""
    kind = np.asarray(value).dtype.kind if not isinstance(value, (str, bool)) else "U"
    return float(value) if kind in "iuf" and np.ndim(value) == 0 else None
