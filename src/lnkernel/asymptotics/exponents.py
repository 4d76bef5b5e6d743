r"""The exponents of the law $L(t) \propto t^{-\xi}$, from the smoothness of the activation and the dimension."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lnkernel.arch.flow import Kind, check_network, rows_of
from lnkernel.arch.node import Node
from lnkernel.arch.text import Architecture, as_architecture
from lnkernel.arch.traits import traits
from lnkernel.asymptotics.smoothness import sees_length, smoothness, worst_kink
from lnkernel.check.numbers import as_number, positive_integer
from lnkernel.errors import InputError, NoLawError


@dataclass(frozen=True)
class Exponents:
    r"""The law of the loss $L(t) = \frac12\sum_n e^{-2\lambda_n t}|c_n|^2$ under gradient flow.

    Attributes:
        nu: eigenvalues of the NTK fall as $\lambda_n \propto n^{-\nu}$.
        kappa: what is left of the target falls as $\sum_{k \ge n} |c_k|^2 \propto n^{-\kappa}$.
        xi: the loss falls as $t^{-\xi}$, $\xi = \kappa/\nu$.
        reason: where these numbers come from, and what they hold for.
    """

    nu: float
    kappa: float
    xi: float
    reason: str


def exponents(arch: Architecture, d: int, target: str | float) -> Exponents:
    r"""$\nu = 1 + a/d$, $\kappa = b/d$ and $\xi = \kappa/\nu = b/(d + a)$, where $\Theta(x, x')$ is smooth but for
    $|x - x'|^a$, and the target but for the degree $b$.

    Activations with the kink $u_+^p$ have $a = 2p - 1$ (ReLU: 1), at any depth, with LayerNorms or without. Norms in
    groups of g features bend as a kink of degree $p = (g - 2)/2$.

    Args:
        arch: the architecture, or its text, with one activation.
        d: the dimension of the set on which the data have a density. Where no kink comes behind a bias, or a norm comes
            before the first bias, it is that of the set of directions.
        target: "indicator", of a domain with a smooth boundary (b = 1); "start", the network's own random start
            ($b = 2p + 1$); or the degree b of a Gaussian process, whose covariance has the singularity $|x - x'|^b$.

    Raises `NoLawError` where none is known.

    >>> import lnkernel as lnk
    >>> law = lnk.asymptotics.exponents(lnk.mlp(hidden=1, b_std=1.0), d=2, target="indicator")
    >>> law.nu, law.kappa, round(law.xi, 12)
    (1.5, 0.5, 0.333333333333)
    >>> lnk.asymptotics.exponents(lnk.mlp(hidden=1, b_std=1.0), d=2, target="start").xi
    1.0
    >>> lnk.asymptotics.exponents(lnk.mlp(activation=lnk.Tanh()), d=2, target="start")
    Traceback (most recent call last):
    ...
    lnkernel.errors.NoLawError: no law is known: no activation of this network has a kink: ...
    """
    network = check_network(as_architecture(arch))
    dimension = positive_integer("d", d)
    p = worst_kink(network)
    a = 2 * p - 1
    b, said = _degree(target, a)
    nu, kappa = 1 + a / dimension, b / dimension
    words = (
        f"activation with a kink of degree p = {p:g}: the NTK is smooth but for |x - x'|^a{_logarithm(a)}, "
        f"a = 2p - 1 = {a:g}, so that nu = 1 + a/d = {nu:g}; {said}, so that kappa = b/d = {kappa:g}; "
        f"xi = kappa/nu = {kappa / nu:g}"
    )
    return Exponents(nu, kappa, kappa / nu, ". ".join([words, *_conditions(network)]) + ".")


def _logarithm(power: float) -> str:
    """Even powers of a distance are smooth; what is singular there has a logarithm, and the same exponents."""
    return " log|x - x'|" if power % 2 == 0 else ""


def _degree(target: object, a: float) -> tuple[float, str]:
    """The degree b of a target, in numbers and in words."""
    if isinstance(target, str) and target == "indicator":
        return 1.0, "an indicator of a domain with a smooth boundary has b = 1"
    if isinstance(target, str) and target == "start":
        return a + 2, f"the network's random start has the NNGP kernel, b = 2p + 1 = {a + 2:g}"
    b = None if isinstance(target, str) else as_number(target)
    if b is None or not 0 < b < math.inf:
        raise InputError(
            "target",
            '"indicator", "start", or a positive number, the degree of a Gaussian process',
            repr(target),
            'Write e.g. target="indicator"',
        )
    if b > a + 2:
        raise NoLawError(
            f"a target of degree {b:g} is smoother than the network's own start, {a + 2:g}, and then how it meets the "
            "boundary of the data decides, not its smoothness",
            f"Choose a degree of at most {a + 2:g}",
        )
    return b, f"a Gaussian process with the singularity |x - x'|^b{_logarithm(b)} has b = {b:g}"


def _conditions(arch: Node) -> list[str]:
    """What else must be said: of norms, and of networks that see directions only."""
    said = []
    rows = list(rows_of(arch))
    norms = [(layer, place.kind) for _, layer, place in rows if traits(layer).fixes_length]
    if any(smoothness(layer) is not None for layer, _ in norms):
        said.append(
            "The norm in groups is what bends: groups of g centred features, without an activation, have the "
            "degree p = (g - 2)/2. This is an argument, tested in one dimension"
        )
    if any(kind is not Kind.INPUT and smoothness(layer) is None for layer, kind in norms):
        said.append(
            "Norms between layers change the constant and not the exponents: they multiply by smooth functions of "
            "single inputs. This is an argument, tested in one dimension; the published theorems are without norms"
        )
    if not sees_length(arch):
        said.append(
            "The kernel is smooth in the length of x: d is the dimension of the set of directions of the data. Without "
            "any bias, half of the harmonics on a sphere may vanish, which changes the constant"
        )
    return said
