"""Whether parameters look as Flax's default initialisers leave them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lnkernel.errors import ArchitectureError

SURE = 16.0  # what is refused would happen by chance with a probability below 2 exp(-16)


def check_weights(linear: Any, here: str) -> None:
    r"""Refuse weights whose mean square is not $1/n_{in}$, up to chance.

    A sum of $N$ squared normal numbers is above $N + 2\sqrt{Nt} + 2t$, or below $N - 2\sqrt{Nt}$,
    with probability below $e^{-t}$ each (Laurent and Massart 2000, lemma 1); truncated normal
    ones, as Flax's are, vary less.
    """
    W = np.asarray(linear.kernel[...], float)
    ratio, N = float(np.mean(W**2)) * math.prod(W.shape[:-1]), W.size
    chance = 2 * math.sqrt(SURE / N)
    if -chance <= ratio - 1 <= chance + 2 * SURE / N:
        return
    raise ArchitectureError(
        type(linear).__name__,
        here,
        f"its weights have variance {ratio:.3g}/n_in, so they do not come from Flax's default "
        "initialiser, whose variance is 1/n_in, or they have been trained",
        f"Give W_std (about {math.sqrt(ratio):.3g}; 2**0.5 for he_normal), or read the module "
        "before it is trained",
    )


def check_bias(linear: Any, here: str) -> None:
    """Refuse biases that are not all zero."""
    b = np.asarray(linear.bias[...], float)
    if not b.any():
        return
    raise ArchitectureError(
        type(linear).__name__,
        here,
        "its biases are not zero, as Flax's default initialiser makes them",
        f"Give b_std (about {math.sqrt(float(np.mean(b**2))):.3g}), or read the module before it "
        "is trained",
    )
