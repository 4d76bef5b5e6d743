r"""How far fine-tuning can be from its linearization, proved before and after it is trained.

With $R(\theta) = \frac12\sum_i|f(x_i) - y_i|^2$ let θ* be a stationary point of the regularised loss
$R + \frac\lambda2|\theta - \theta_0|^2$ that a descent from $\theta_0$ reaches, and $\bar\theta$ the minimum with f
linearized at $\theta_0$, of the loss $\bar L$.

1. Along a descent $\frac\lambda2|\theta - \theta_0|^2 \le R(\theta_0)$, which is a ball around $\theta_0$.
2. $\bar L$ is λ-strongly convex, so that $|\theta - \bar\theta| \le |\nabla\bar L(\theta)|/\lambda$ for every θ.
3. If every $\nabla f(x_i)$ has the Lipschitz constant β in the ball of radius ρ, then at θ* that is at most
   $\frac{\sqrt n\,\beta\rho}{\lambda}(\frac12|J|\rho + |r|)$, with r the residual, and
   $|f - \bar f|(x) \le \frac12\beta\rho^2 + |J(x)||\theta^* - \bar\theta|$.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from flax import nnx
from jaxtyping import Float64

SLOPE, BEND = 1.0, 4 / (3 * math.sqrt(3))  # the largest |tanh'| and |tanh''|


def ball(risk: float, strength: float) -> float:
    """How far a descent of the regularised loss can go from where the risk is `risk`."""
    return math.sqrt(2 * risk / strength)


class Start(NamedTuple):
    """What is known of a tanh network at θ₀."""

    norms: list[float]  # |W| of every layer
    widths: list[int]  # how many outputs each has
    sizes: list[Float64[np.ndarray, " n"]]  # |a| at every input, of what goes into each layer


def start_of(network: nnx.Sequential, x: Float64[np.ndarray, "n d"]) -> Start:
    """The norms of weights and of activations at these inputs."""
    a, found = np.asarray(x, np.float64), Start([], [], [])
    layers: list[Any] = [one for one in network.layers if isinstance(one, nnx.Linear)]
    for layer in layers:
        W, b = (np.asarray(v[...], np.float64) for v in (layer.kernel, layer.bias))
        found.norms.append(float(np.linalg.norm(W, 2)))
        found.widths.append(W.shape[1])
        found.sizes.append(np.linalg.norm(a, axis=1))
        a = np.tanh(a @ W + b)
    return found


def bend_of_mlp(start: Start, trained: Sequence[bool], radius: float) -> float:
    r"""A Lipschitz constant β of $\theta \mapsto \nabla f(\theta, x)$, for a tanh network and all inputs of
    `start`, in the ball of this radius in the parameters of the `trained` layers.

    β is the largest $|\ddot f|$ along unit directions δ. With $h = W a + b$: $|\dot h| \le |δ|\sqrt{|a|^2 + 1} +
    |W||\dot a|$, $|\ddot h| \le 2|δ||\dot a| + |W||\ddot a|$, and behind a tanh $|\dot a| \le |\dot h|$,
    $|\ddot a| \le \frac4{3\sqrt3}|\dot h|^2 + |\ddot h|$; in the ball $|W|$ and $|a|$ have grown by no more than
    ρ and $\rho|\dot a|$.
    """
    first = second = np.zeros_like(start.sizes[0])
    last = len(trained) - 1
    for number, moves in enumerate(trained):
        size = start.sizes[number]
        if number:
            size = np.minimum(size + radius * first, math.sqrt(start.widths[number - 1]))
        norm = start.norms[number] + radius * moves
        second = 2 * moves * first + norm * second
        first = moves * np.sqrt(size**2 + 1) + norm * first
        if number < last:
            first, second = SLOPE * first, BEND * first**2 + SLOPE * second
    return float(second.max())


class Proved(NamedTuple):
    """What is proved before training."""

    radius: float  # ρ ≥ |θ* − θ₀|
    bend: float  # β in the ball of this radius
    change: float  # ≥ |θ* − θ̄|

    def outputs(self, slopes: Float64[np.ndarray, " m"]) -> float:
        """≥ |f − f̄| at inputs where |J(x)| is at most this."""
        return float(np.max(self.bend * self.radius**2 / 2 + slopes * self.change))


def prove(
    start: Start, trained: Sequence[bool], n: int, slope: float, risk: float, strength: float
) -> Proved:
    r"""The bounds from the start alone, of n points with |J| = `slope` and $R(\theta_0)$ = `risk`.

    The ball is made smaller as long as it is: at θ* in the ball of radius ρ $|\theta^* - \theta_0| =
    |J_*^T r|/\lambda \le (|J| + \sqrt n\beta\rho)|r|/\lambda$, with $|r| \le \sqrt{2R(\theta_0)}$.
    """
    residual, radius = math.sqrt(2 * risk), ball(risk, strength)
    for _ in range(30):
        bend = bend_of_mlp(start, trained, radius)
        smaller = (slope + math.sqrt(n) * bend * radius) * residual / strength
        if smaller >= radius:
            break
        radius = smaller
    bend = bend_of_mlp(start, trained, radius)
    change = math.sqrt(n) * bend * radius / strength * (slope * radius / 2 + residual)
    return Proved(radius, bend, change)


def weyl(values: Sequence[Float64[np.ndarray, " rows"]]) -> tuple[float, float, float, float]:
    """λ_min and λ_max of a sum of matrices with these eigenvalues, each from below and from above.

    λ_min(ΣK) is at least Σλ_min and, of positive matrices, λ_max(ΣK) is at least the largest λ_max;
    λ_max(ΣK) is at most Σλ_max and λ_min(ΣK) at most min_l (λ_min(K_l) + Σ of the other λ_max).

    >>> weyl([np.array([1.0, 2.0]), np.array([3.0, 5.0])])
    (4.0, 5.0, 5.0, 7.0)
    """
    least, most = (np.array([f(v) for v in values]) for f in (np.min, np.max))
    upper_least = float(np.min(least + most.sum() - most))
    return float(least.sum()), upper_least, float(most.max()), float(most.sum())
