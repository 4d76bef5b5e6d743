"""What is measured of a network of sines while it learns a picture: functions for `watch`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import Array

from lnkernel.tangents import local
from lnkernel.tangents.alignment import cosines
from lnkernel.tangents.correlation import DistanceBins, correlation, distance_bins
from lnkernel.tangents.snapshot import Snapshot
from lnkernel.tangents.structured import structured_jacobian

BINS, FAR = 200, 40  # of the distances; the floor is the mean of the last fifth, as in the paper
AREA = 4.0  # of the square from -1 to 1
ORDER = (
    *("floor", "length", "min_cosine"),
    *("local_length", "local_min_cosine", "mag_ma", "principal_cosine", "rows_cosine"),
)  # the entries of the measure `OrderParameters`


@dataclass(frozen=True, eq=False)
class OrderParameters:
    """The numbers that `ORDER` names, of one network: floor and length of the cosine, measured at
    scattered points; its least value on the grid; what the local forms say of these; and the cosines of
    the first eigenvector with its local form and with K 1."""

    places: np.ndarray  # scattered points, (m, 2)
    bins: DistanceBins

    def __call__(self, tangent: Snapshot, X: Array, y: Array) -> Array:
        scattered = jnp.asarray(self.places, X.dtype)
        found = correlation(cosines(tangent.gram(scattered)), self.bins)
        K = tangent.gram(X)
        first = tangent.leading(X).vectors[:, 0]
        form = local.factored_forms(partial(structured_jacobian, tangent.function), X)
        return jnp.stack(
            [
                found.floor,
                found.length,
                jnp.min(cosines(K)),
                jnp.mean(local.length(form, found.floor)),
                jnp.min(local.min_cosine(form)),
                local.mag_ma(form),
                _cosine(first, local.principal(form, found.floor, AREA)),
                _cosine(first, K.sum(1)),
            ]
        )


def order_parameters(points: int) -> OrderParameters:
    """Those at so many scattered points, which are always the same."""
    places = np.random.default_rng(0).uniform(-1, 1, (points, 2))
    return OrderParameters(places, distance_bins(places, BINS, FAR))


def principal(tangent: Snapshot, X: Array, y: Array) -> Array:
    """|v₀|, the first eigenvector of K without its signs: (n,)."""
    return jnp.abs(tangent.leading(X).vectors[:, 0])


def _cosine(a: Array, b: Array) -> Array:
    return jnp.abs(a @ b) / (jnp.linalg.norm(a) * jnp.linalg.norm(b))


Measure = Callable[[Snapshot, Array, Array], Array]


def measures(scattered: int) -> dict[str, str | Measure]:
    """All of them, by the names that the tables have."""
    return {
        "loss": "loss",
        "loss_rate": "loss_rate",
        "lambda_max": "lambda_max",
        "cka": "cka",
        "gradient_variance": "gradient_variance",
        "order": order_parameters(scattered),
        "principal": principal,
    }
