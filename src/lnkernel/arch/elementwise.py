"""Functions of one number that act on every coordinate: what all activations have in common."""

from __future__ import annotations

from lnkernel.arch.flow import Kind, Place, step
from lnkernel.arch.node import Node, node
from lnkernel.arch.traits import NOWHERE, Traits, traits
from lnkernel.errors import ArchitectureError


class Elementwise(Node):
    r"""The common type of the activations, $u \mapsto \phi(u)$ on every coordinate.

    The calculus needs of it no more than its `dual` (`lnkernel.calculus.dual`): the Gaussian
    expectations $E\,\phi(u)\phi(v)$, $E\,\phi'(u)\phi'(v)$ and so on of a pair.
    """


@node
class Identity(Node):
    r"""$\phi(u) = u$. It changes nothing, wherever it stands; `residual` uses it as the skip.

    >>> import lnkernel as lnk
    >>> x = [[1.0, 2.0]]
    >>> plain = lnk.serial(lnk.Dense(8), lnk.Dense(1))
    >>> with_identity = lnk.serial(lnk.Dense(8), lnk.Identity(), lnk.Dense(1))
    >>> bool(lnk.ntk(plain)(x) == lnk.ntk(with_identity)(x))
    True
    """


@step.register(Elementwise)
def _(layer: Elementwise, place: Place, here: str) -> Place:
    name = type(layer).__name__
    if place.kind is Kind.INPUT:
        raise ArchitectureError(
            name, here, "it acts on the raw input, which is not Gaussian", "Put a Dense before it"
        )
    if place.kind is Kind.FEATURES:
        raise ArchitectureError(
            name,
            here,
            f"its input is not Gaussian, because {place.maker} stands between it and the last "
            "Dense, so its kernel has no closed form",
            "Put a Dense between them",
        )
    if place.mixed:
        raise ArchitectureError(
            name,
            here,
            "it follows a sum in which one branch ends in a trainable scale; the scale's part of "
            "the NTK then differs from coordinate to coordinate and has no closed form",
            "Put a Dense between the sum and the activation, or set scale=False",
        )
    return place.of_features(f"{name} at {here}" if here else name)


@step.register
def _(layer: Identity, place: Place, here: str) -> Place:
    return place


@traits.register
def _(layer: Identity) -> Traits:
    return Traits(
        needs_difference=NOWHERE,
        needs_range=False,
        reads_centred=False,
        is_identity=True,
        is_monotone=True,
        steepness=1.0,
    )
