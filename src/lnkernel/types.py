"""Types of public signatures: what users give, and what they get back."""

from __future__ import annotations

import jax
import numpy as np

Array = jax.Array | np.ndarray  # JAX's where 64-bit mode is on, NumPy's else
