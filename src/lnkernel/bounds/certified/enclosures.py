r"""The ingredients of the bound, each proved: $C$, $\lambda_{min}$ and $y^T\Theta^{-1}y$."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from lnkernel.arch import Node
from lnkernel.arch.facts import acts_on_positions, centres_input
from lnkernel.arch.flow import check_network
from lnkernel.bounds.certified.spectrum import EnclosedGram, eigenvalue_floor, norm_ceiling
from lnkernel.bounds.certified.supremum import Enclosure, Supremum, supremum
from lnkernel.bounds.images import demand_monotone, dense_counterpart
from lnkernel.check.arrays import as_data, as_points, check_centred
from lnkernel.errors import InputError
from lnkernel.types import Points, Targets

RTOL = 1e-8


def sup_diagonal_enclosure(
    arch: Node, rtol: float = RTOL, progress: Callable[[float], object] | None = None
) -> tuple[Enclosure, float]:
    r"""$C = \sup_x \Theta(x, x)$, proved to lie between two numbers; and where.

    Returns the enclosure and the norm $|x|/\sqrt d$ of an input that reaches its lower end (or
    infinity). (inf, inf) where Θ(x, x) is unbounded. Where a LayerNorm acts on the raw input,
    the norm is that of the centred input.

    Args:
        arch: a network.
        rtol: how wide the enclosure may be, relatively.
        progress: a function that is called with the width that remains, or None.

    >>> import lnkernel as lnk
    >>> C, norm = sup_diagonal_enclosure(lnk.mlp(hidden=2, norm="last"))
    >>> C.lower <= 3.0100000000000005 <= C.upper, C.upper / C.lower < 1 + 1e-15, norm
    (True, True, inf)
    """
    check_network(arch)
    if not 0 < rtol < 1:
        raise InputError("rtol", "a number between 0 and 1", repr(rtol), "Write rtol=1e-8")
    found = supremum_over_inputs(arch, rtol, progress)
    return found.enclosure, found.norm


def supremum_over_inputs(
    arch: Node, rtol: float, progress: Callable[[float], object] | None = None
) -> Supremum:
    """`supremum`; of a network on images, over all of them, by the dense network with the same layers.

    Its C is at least that of the network on images, and is attained where no zeros come in (`bounds/images.py` has the
    proof, which is for dense networks whose Θ(x, x) does not decrease in |x|). Where it is not, 0 is the lower end.
    """
    if not acts_on_positions(arch):
        return supremum(arch, rtol, progress=progress)
    dense = dense_counterpart(check_network(arch))
    demand_monotone(dense.arch)
    found = supremum(dense.arch, rtol, progress=progress)
    if dense.attained:
        return found
    return found._replace(enclosure=Enclosure(0.0, found.enclosure.upper))


def lambda_min_lower(
    arch: Node, X: Points, progress: Callable[[int], object] | None = None
) -> float:
    r"""A number that $\lambda_{min}(\Theta(X, X))$ is proved not to be below.

    `progress` is a function that is called with the number of entries just enclosed, or None.

    >>> import lnkernel as lnk
    >>> round(lambda_min_lower(lnk.mlp(norm="first"), [[1.0], [-1.0]]), 8)
    2.71055019
    """
    x = checked_points(arch, np.asarray(as_points("X", X)))
    return eigenvalue_floor(EnclosedGram(check_network(arch), x, np.zeros(len(x)), progress))


def quadratic_form_upper(arch: Node, X: Points, y: Targets, lambda_low: float) -> float:
    r"""A number that $y^T \Theta(X, X)^{-1} y$ is proved not to exceed, for each column of y.

    Args:
        lambda_low: a proved lower bound of λ_min, as `lambda_min_lower` gives it.

    >>> import lnkernel as lnk
    >>> arch, X = lnk.mlp(norm="first"), [[1.0], [-1.0]]
    >>> low = lambda_min_lower(arch, X)
    >>> round(quadratic_form_upper(arch, X, [1.0, 1.0], low), 8)    # 2/(3.03 + 0.31944981)
    0.59711299
    """
    data = as_data(X, y)
    x = checked_points(arch, data.x)
    gram = EnclosedGram(check_network(arch), x, np.zeros(len(x)))
    norm = norm_ceiling(gram, data.y, lambda_low)
    return math.nextafter(norm * norm, math.inf)


def checked_points(arch: Node, x: np.ndarray) -> np.ndarray:
    """x, if a LayerNorm on the raw input leaves anything of it."""
    if centres_input(check_network(arch)):
        check_centred(x)
    return x
