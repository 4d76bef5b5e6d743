"""What a bound is asked of: a network and data, or a posterior, which has both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnkernel.arch import Node
from lnkernel.arch.facts import acts_on_positions
from lnkernel.arch.text import Architecture, as_architecture
from lnkernel.check.arrays import Data, as_data
from lnkernel.errors import InputError
from lnkernel.gp.fit import Fit
from lnkernel.gp.noise import Variance, as_variance, noise_in_words
from lnkernel.gp.posterior import Posterior
from lnkernel.types import Noise, Points, Targets


class Problem(NamedTuple):
    """A network, its training data, and the factorised Gram matrix where there is one already."""

    arch: Node
    data: Data
    noise: Variance  # one, or one for each point
    fit: Fit | None


def problem(
    arch: Architecture | Posterior,
    X: Points | None,
    y: Targets | None,
    noise: Noise,
) -> Problem:
    """The arguments of `bound`, checked."""
    if isinstance(arch, Posterior):
        return _of_posterior(arch._fit, X, y, noise)
    if X is None or y is None:
        raise InputError(
            "X" if X is None else "y",
            "the data that the network is trained on",
            "None",
            "Write bound(arch, X, y), or bound(post) with a posterior of the data",
        )
    plain = as_architecture(arch)
    data = as_data(X, y, acts_on_positions(plain))
    return Problem(plain, data, as_variance(noise, len(data.x)), None)


def _of_posterior(fit: Fit, X: Points | None, y: Targets | None, noise: Noise) -> Problem:
    for name, given in (("X", X), ("y", y)):
        if given is not None:
            raise InputError(
                name,
                "no data beside a posterior, which has its own",
                type(given).__name__,
                'Write bound(post), with other arguments by name, as in bound(post, s="paper")',
            )
    if np.any(noise) and not np.array_equal(noise, fit.noise):
        raise InputError(
            "noise",
            f"nothing, because the posterior has its own, {noise_in_words(fit.noise)}",
            repr(noise),
            "Make another posterior with this noise",
        )
    if fit.which != "ntk":
        raise InputError(
            "arch",
            'a posterior with kernel="ntk"',
            f"one with kernel={fit.which!r}",
            "The bound speaks of networks trained as a whole; make the posterior with the NTK",
        )
    return Problem(fit.arch, fit.data, fit.noise, fit)
