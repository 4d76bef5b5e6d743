"""The correlation length of the tangent kernel before training: finite networks beside the limit."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from lnkernel.experiments.alignment_measures import order_parameters
from lnkernel.experiments.alignment_plan import WIDTH, Kind
from lnkernel.experiments.siren import wide_siren
from lnkernel.finite.build import network
from lnkernel.gram.kernel import ntk
from lnkernel.tangents.alignment import cosines
from lnkernel.tangents.correlation import correlation
from lnkernel.tangents.tangent import tangent
from lnkernel.types import Array

WIDTHS = (WIDTH, 8 * WIDTH)


def correlations_at_start(
    kind: Kind, seeds: Sequence[int], scattered: int
) -> dict[str, np.ndarray]:
    """Floor and length, (…, 2): of networks with normal weights of the variances of `siren`, by width
    and seed, and at infinite width, exactly. All are in the parametrization that has the limit."""
    at = order_parameters(scattered)
    arch = wide_siren(kind.depth, WIDTH, kind.omega)

    def measure(K: Array) -> np.ndarray:
        return np.array([float(p) for p in correlation(cosines(jnp.asarray(K)), at.bins)])

    finite = [
        [measure(tangent(network(arch, 2, width, rngs=seed)).gram(at.places)) for seed in seeds]
        for width in WIDTHS
    ]
    return {"finite": np.array(finite), "infinite": measure(ntk(arch)(at.places))}
