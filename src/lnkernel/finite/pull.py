r"""The ridge term $\frac\lambda2 |\theta - \theta_0|^2$ of fine-tuning, as a part of an optimizer."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from lnkernel.check.numbers import as_number
from lnkernel.errors import InputError
from lnkernel.types import Number


class PullState(NamedTuple):
    """What `pull_to_start` remembers."""

    start: Any  # θ₀
    skipped: jax.Array  # how many steps were taken without the ridge term


def pull_to_start(strength: Number, *, selective: bool = False) -> optax.GradientTransformation:
    r"""Add $\lambda\,(\theta - \theta_0)$ to the gradient, the slope of $\frac\lambda2|\theta - \theta_0|^2$.

    $\theta_0$ is where training starts. Chain it before the step itself:
    `optax.chain(pull_to_start(0.1), optax.sgd(1e-3))`.

    Args:
        strength: λ, on the scale of the loss that `train` has, half the SUM of the squared errors.
        selective: add it only in steps with $\nabla R(\theta)\cdot(\theta - \theta_0) \ge 0$, where R is
            the loss without the ridge term: then the ridge term does not raise R, to first order
            (Afzal et al. 2025, Eq. 8).

    >>> import jax.numpy as jnp, lnkernel as lnk
    >>> pull = lnk.finite.pull_to_start(10.0, selective=True)
    >>> state = pull.init(jnp.array([0.0]))
    >>> pull.update(jnp.array([1.0]), state, jnp.array([0.5]))[0]     # downhill is towards the start
    Array([6.], dtype=float32)
    >>> pull.update(jnp.array([-1.0]), state, jnp.array([0.5]))[0]    # downhill is away from it
    Array([-1.], dtype=float32)
    """
    weight = as_number(strength)
    if weight is None or not 0 <= weight < math.inf:
        raise InputError(
            "strength", "a number, at least 0", repr(strength), "It pulls to the start"
        )

    def init(params: Any) -> PullState:
        return PullState(jax.tree.map(jnp.array, params), jnp.zeros((), jnp.int32))

    def update(slope: Any, state: PullState, params: Any = None) -> tuple[Any, PullState]:
        if params is None:
            raise InputError(
                "params",
                "the parameters as they are",
                "None",
                "Call update(gradient, state, params), as optax's weight decay needs it",
            )
        change = jax.tree.map(jnp.subtract, params, state.start)
        inner = sum(
            jnp.vdot(g, d) for g, d in zip(*map(jax.tree.leaves, (slope, change)), strict=True)
        )
        pulls = inner >= 0 if selective else jnp.ones((), bool)
        made = jax.tree.map(
            lambda g, d: g + jnp.where(pulls, weight, 0.0).astype(d.dtype) * d, slope, change
        )
        return made, PullState(state.start, state.skipped + ~pulls)

    return optax.GradientTransformation(init, update)
