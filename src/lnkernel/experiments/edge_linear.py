r"""The two-layer linear network $f = a^T W x$ at the edge of stability, and its closed form.

$K = X (W^T W + |a|^2) X^T$. Behind a small start W has rank one, $|a|\,|W| = |\beta|$ of the solution β, and
with $v = \beta/|\beta|$, $K = X (w^2 v v^T + \alpha^2) X^T$ for $w = |W|$, $\alpha = |a|$. The data have orthogonal
directions of lengths $s_i$, the first the longest, and v is the second. Then $\lambda_{\max}(K) = \alpha^2 s_1^2$, so
gradient descent of rate η on $\frac1{2n}\sum r^2$ keeps $\alpha^2 \le 2n/(\eta s_1^2)$; without need for it α = w.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from lnkernel.experiments.descent import descend
from lnkernel.finite.watching.watch import watch

POINTS, LONGEST, SIZE, SMALL = 100, 36.0, 1.5, 0.01
OTHERS = (4.0, 3.0, 2.5, 2.0, 1.5, 1.0, 0.8, 0.6, 0.4)  # s²/n of the directions behind the first
SQUARES = np.array([LONGEST, *OTHERS])  # s²/n of all; the target lies along the second


class LinearLaw(NamedTuple):
    """What the closed form says of one rate."""

    squared_head: float  # |a|²
    cap: float  # the largest |a|² that the rate is stable for
    kta: float
    ratio: float  # λ_max η/2n


def closed_form(rate: float) -> LinearLaw:
    """|a|² and KTA at the end of training with this rate.

    >>> low, high = closed_form(0.01), closed_form(0.06)
    >>> low.squared_head, round(high.squared_head, 3), high.kta > low.kta, round(high.ratio, 9)
    (1.5, 0.926, True, 1.0)
    """
    cap = 2 / (rate * LONGEST)
    alpha2 = min(SIZE, cap)
    along = (SIZE**2 / alpha2 + alpha2) * SQUARES[1]
    others = np.delete(SQUARES, 1)
    kta = along / np.sqrt(along**2 + alpha2**2 * np.sum(others**2))
    return LinearLaw(alpha2, cap, float(kta), alpha2 * LONGEST * rate / 2)


def linear_data() -> tuple[np.ndarray, np.ndarray]:
    """Inputs with these squares along orthogonal directions, and targets along the second."""
    draw = np.random.default_rng(0)
    left = np.linalg.qr(draw.standard_normal((POINTS, len(SQUARES))))[0]
    right = np.linalg.qr(draw.standard_normal((len(SQUARES), len(SQUARES))))[0]
    X = left * np.sqrt(POINTS * SQUARES) @ right.T
    return X, SIZE * X @ right[:, 1]


def linear_network(seed: int) -> nnx.Sequential:
    """aᵀWx with small random weights, in float64."""
    rngs, small, d = nnx.Rngs(seed), nnx.initializers.normal(SMALL), len(SQUARES)
    options: dict[str, Any] = {"use_bias": False, "kernel_init": small, "rngs": rngs}
    options["param_dtype"] = jnp.float64
    return nnx.Sequential(nnx.Linear(d, d, **options), nnx.Linear(d, 1, **options))


def squared_head(tangent: Any, X: jax.Array, y: jax.Array) -> jax.Array:
    """|a|², of the only parameters that have one column."""
    heads = [leaf for leaf in jax.tree.leaves(tangent.params) if leaf.shape[1] == 1]
    return jnp.sum(jnp.square(heads[0]))


def train_linear(rates: Sequence[float], seeds: Sequence[int], steps: int) -> dict[str, np.ndarray]:
    """Every rate from every start: |a|², KTA, λ_max η/2n and the loss at the end, (rates, seeds).

    Where training diverges, `diverged` has the step, and the others are NaN.
    """
    X, y = linear_data()
    names = ("loss", "kta", "sharpness", "squared_head")
    shape = len(rates), len(seeds)
    w = watch(X, y, [*names[:-1], squared_head], at=[0, steps], loss="half-mean")
    with jax.enable_x64(True):
        networks = [linear_network(seed) for _ in rates for seed in seeds]
    each = [rate / POINTS for rate in rates for _ in seeds]
    made = descend(networks, X, y, each, steps, w)
    found = {name: made.values[name][:, -1].reshape(shape) for name in names}
    found["ratio"] = found.pop("sharpness") * np.asarray(rates)[:, None] / 2
    return {**found, "diverged": made.diverged.reshape(shape)}
