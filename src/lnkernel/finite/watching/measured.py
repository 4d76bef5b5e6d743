"""Measurements as arrays, for checkpoints."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Measured(NamedTuple):
    """Measurements that were taken: at these steps, (m,), and by name (m, networks, ...)."""

    steps: np.ndarray
    values: dict[str, np.ndarray]
