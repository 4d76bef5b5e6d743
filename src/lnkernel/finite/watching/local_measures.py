r"""Measures of the kernel as a function of the distance of two inputs, for networks with one output.

They are the order parameters of Castiglione, Buckley and Simpson (2025).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lnkernel.tangents import local
from lnkernel.tangents.alignment import cosines
from lnkernel.tangents.correlation import Correlation, DistanceBins, correlation
from lnkernel.tangents.snapshot import Snapshot

Value = Float[Array, ""]


def mag_ma(tangent: Snapshot, X: Array, y: Array) -> Value:
    r"""$|E_x \nabla_x \log|g(x)||$ of the gradients g in the parameters."""
    return local.mag_ma(tangent.local(X))


def min_cosine(tangent: Snapshot, X: Array, y: Array) -> Value:
    """The least cosine of the gradients at two inputs by the local form, over all inputs."""
    return jnp.min(local.min_cosine(tangent.local(X)))


@dataclass(frozen=True)
class CorrelationFloor:
    """The cosine of gradients at inputs far from each other."""

    inputs: str  # a digest, so that for the same inputs nothing is compiled anew
    bins: DistanceBins = field(compare=False, repr=False)

    def __call__(self, tangent: Snapshot, X: Array, y: Array) -> Value:
        return _correlation(self.bins, tangent, X).floor


@dataclass(frozen=True)
class CorrelationLength:
    """The distance at which the cosine of the gradients has fallen, as a Gaussian does, by one deviation."""

    inputs: str  # a digest, so that for the same inputs nothing is compiled anew
    bins: DistanceBins = field(compare=False, repr=False)

    def __call__(self, tangent: Snapshot, X: Array, y: Array) -> Value:
        return _correlation(self.bins, tangent, X).length


def _correlation(bins: DistanceBins, tangent: Snapshot, X: Array) -> Correlation:
    return correlation(cosines(tangent.matrix(X)), bins)
