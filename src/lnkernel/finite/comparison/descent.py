r"""How to descend: a stable learning rate, and as many steps as it takes by theory.

In the limit of infinite width, with $\Theta(X, X) = \sum_i \lambda_i u_i u_i^T$, networks with k
outputs have after s steps of gradient descent the expected loss

    L_s = 1/2 Σ_i (1 - η λ_i)^(2s) (|u_iᵀ y|² + k u_iᵀ K(X, X) u_i),

half the expected sum of the squared errors, from their targets and from their random starts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from lnkernel.arch import Node
from lnkernel.check.arrays import Data
from lnkernel.gp.fit import matrix
from lnkernel.gp.spectrum import Eigen
from lnkernel.gram.kernel import nngp


@dataclass(frozen=True, eq=False)
class Descent:
    """Gradient descent of infinitely wide networks on given data."""

    values: Float64[np.ndarray, " n"]  # the eigenvalues of Θ(X, X), ascending
    powers: Float64[
        np.ndarray, " n"
    ]  # what the expected loss at the start is the sum of, one for each

    @property
    def start(self) -> float:
        """The expected loss of untrained networks."""
        return float(self.powers.sum())

    def loss(self, steps: int, rate: float) -> float:
        """The expected loss after so many steps."""
        with np.errstate(under="ignore"):
            left = np.abs(1 - rate * self.values) ** (2 * steps)
        return float(left @ self.powers)

    def steps(self, rate: float, goal: float, most: int) -> int:
        """The fewest steps to this fraction of the loss at the start, or `most` if it takes more."""

        def arrived(steps: int) -> bool:
            return self.loss(steps, rate) <= goal * self.start

        if not arrived(most):
            return most
        low, high = 0, most  # the goal is reached at `high`, and not at `low`
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if arrived(middle) else (middle, high)
        return high


def descent(arch: Node, data: Data, eigen: Eigen) -> Descent:
    """The descent of the networks of `arch`, with the eigenvectors of their Θ(X, X)."""
    prior = matrix(nngp(arch), data.x)
    vectors = eigen.vectors
    targets = np.square(vectors.T @ data.y).sum(1)
    starts = data.y.shape[1] * np.einsum("in,ij,jn->n", vectors, prior, vectors)
    return Descent(eigen.values, 0.5 * (targets + starts))
