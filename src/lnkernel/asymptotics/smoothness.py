r"""The degree $p$ of an activation's worst kink: around it, $\phi$ is analytic but for a multiple of $u_+^p$."""

from __future__ import annotations

from functools import singledispatch

from lnkernel.arch import Activate, Clip, Elu, GroupNorm, PositivelyHomogeneous, Selu
from lnkernel.arch.flow import Kind, Place, rows_of
from lnkernel.arch.node import Node
from lnkernel.arch.traits import traits
from lnkernel.errors import NoLawError


@singledispatch
def smoothness(layer: Node) -> float | None:
    """The degree p of the worst kink, 1 for ReLU; None for a layer without a kink, which is analytic.

    An activation from outside of the library registers its own: `@smoothness.register`.

    >>> import lnkernel as lnk
    >>> [lnk.asymptotics.smoothness(layer) for layer in (lnk.Relu(), lnk.RectifiedPower(2), lnk.Elu(), lnk.Tanh())]
    [1.0, 2.0, 2.0, None]
    >>> lnk.asymptotics.smoothness(lnk.GroupNorm(4))                  # four features bend as a ReLU does
    1.0
    """
    return None


@smoothness.register
def _(layer: PositivelyHomogeneous) -> float | None:
    """u^p on both sides, for an integer p, is no kink."""
    p = float(layer.degree)
    polynomial = p.is_integer() and float(layer.b) == (-1) ** int(p) * float(layer.a)
    return None if polynomial else p


@smoothness.register
def _(layer: Elu) -> float:
    return 2.0 if float(layer.alpha) == 1.0 else 1.0


@smoothness.register(Selu)
@smoothness.register(Clip)
def _(layer: Selu | Clip) -> float:
    return 1.0


@smoothness.register
def _(layer: GroupNorm) -> float:
    r"""Directions of $\nu$ Gaussian numbers have a kernel that is analytic but for $(1 - \rho^2)^{\nu/2}$, the angle to
    the power $\nu$ (times a logarithm for even $\nu$). Kinks of degree $p$ leave the power $2p + 1$."""
    return (layer.degrees_of_freedom - 1) / 2


@smoothness.register
def _(layer: Activate) -> float | None:
    if layer.kinks:
        raise NoLawError(
            "Activate has kinks of which only the places are known, not which derivative jumps there",
            "Register lnkernel.asymptotics.smoothness for a layer of your own",
        )
    return None


def worst_kink(arch: Node) -> float:
    """The degree of the kinks of all activations of a network, which must be the same."""
    degrees: set[float | None] = set()
    last = Place(Kind.INPUT)
    for here, layer, place in rows_of(arch):
        p = smoothness(layer)
        if not traits(layer).has_ntk or (p is not None and p <= 0.5):
            raise NoLawError(
                f"{type(layer).__name__} at {here} jumps, and its NTK does not exist or has no law",
                "Take a continuous activation, or groups of 4 features and more",
            )
        if p is not None:
            degrees.add(p)
        elif place.kind is Kind.FEATURES and last.kind is not Kind.FEATURES:
            degrees.add(None)  # an analytic activation, or another layer that is no linear map
        last = place
    if degrees == {None} or not degrees:
        raise NoLawError(
            "no activation of this network has a kink: its kernel is analytic, or of finite rank, and its eigenvalues "
            "fall faster than every power",
            "Laws are known for kinks, e.g. Relu",
        )
    if len(degrees) > 1:
        names = sorted("analytic" if p is None else f"{p:g}" for p in degrees)
        raise NoLawError(
            f"its activations are of different smoothness ({', '.join(names)})",
            "The law is known for the same activation in all layers",
        )
    return next(p for p in degrees if p is not None)


def sees_length(arch: Node) -> bool:
    """Whether the kernel is singular along the length of x too: where a kink comes after a bias, without a norm before
    that bias.

    Without a bias every kink of a homogeneous activation is where a linear function of x is 0, for x of all lengths.
    """
    biased = False
    for _, layer, _ in rows_of(arch):
        facts = traits(layer)
        if facts.fixes_length and not biased:
            return False
        if biased and smoothness(layer) is not None:
            return True
        biased = biased or facts.adds_bias
    return False
