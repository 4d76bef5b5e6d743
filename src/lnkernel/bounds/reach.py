r"""How large $|\Theta(x, x')|$ can be for a fixed x', over all x, where activations are bounded.

For Dense layers, bounded activations, and normalisations behind the first of them. *Proof*, by induction
over the layers, with $q' = E v^2$ of the fixed input, which is known:

* Before the first activation K is affine in $x \cdot x'$, and $\Theta = c_1 K + c_0$: a Dense has $K' = wK + b$ and
  $\Theta' = K' + w\Theta = (1 + c_1)K' + (wc_0 - bc_1)$.
* An activation has $|K'| \le \|\phi\|_\infty\sqrt{E\,\phi(v)^2}$ and
  $|E\,\phi'\phi'| \le S = \|\phi'\|_\infty\sqrt{E\,\phi'(v)^2}$.
* The first one: $|\Theta'| = |(c_1 K + c_0)\,E\,\phi'\phi'| \le c_1 P(q') + |c_0| S$, with P as in
  `bounded_activations`.
* Every later one: $|\Theta'| \le |\Theta|\,S$, where $|\Theta|$ is bounded already.
* A Dense: $|K'| \le w|K| + b$, $|\Theta'| \le |K'| + w|\Theta|$, and every squared length behind it is at least b.
* A `Scale` multiplies all of them, and $c_0$, by one number; $c_1$ stays.
* A normalisation divides both by $\sqrt{(q + \epsilon)(q' + \epsilon)}$, where q is at least a number that is known. ∎
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import singledispatch
from typing import NoReturn

import numpy as np

from lnkernel.arch import Dense, Identity, LayerNorm, Node, RMSNorm, Scale, Serial
from lnkernel.arch.flow import inside
from lnkernel.arch.traits import traits
from lnkernel.bounds.bounded_activations import Bounded, numbers_of
from lnkernel.errors import ArchitectureError
from lnkernel.evaluate.float64.moments import moments_at


@dataclass(frozen=True)
class Reach:
    """Bounds for each of the fixed inputs, (n,), behind some layers."""

    own: np.ndarray  # q' of each
    rest: np.ndarray  # q' less the squared mean
    least: float  # no x has a smaller q
    kernel: np.ndarray | None = None  # sup |K(x, x')|; None before the first activation
    tangent: np.ndarray | None = None  # sup |Θ(x, x')|
    rise: float = 0.0  # c1 and c0, before the first activation
    offset: float = 0.0


def reach(arch: Node, x: np.ndarray) -> np.ndarray:
    """sup |Θ(·, x')| for each of the inputs x (n, d), or at most so much more; refuses other networks."""
    square = np.mean(np.square(x), axis=1)
    state = _behind(arch, Reach(square, square, 0.0), "")
    if state.tangent is None:
        _refuse(arch, "", "without an activation its output is linear, and not bounded")
    return state.tangent


@singledispatch
def _behind(layer: Node, state: Reach, here: str) -> Reach:
    numbers = numbers_of(layer)
    if numbers is None:
        _refuse(
            layer,
            here,
            "only for Dense, LayerNorm, RMSNorm and bounded activations, one after another, is it "
            "proved that Θ(x, x') stays bounded in x",
        )
    return _through_activation(layer, numbers, state)


@_behind.register
def _(layer: Serial, state: Reach, here: str) -> Reach:
    for number, part in enumerate(layer.layers):
        state = _behind(part, state, inside(here, f"layer {number}"))
    return state


@_behind.register
def _(layer: Identity, state: Reach, here: str) -> Reach:
    return state


@_behind.register
def _(layer: Scale, state: Reach, here: str) -> Reach:
    square = layer.factor * layer.factor
    return dataclasses.replace(
        state,
        own=square * state.own,
        rest=square * state.rest,
        least=square * state.least,
        kernel=None if state.kernel is None else square * state.kernel,
        tangent=None if state.tangent is None else square * state.tangent,
        offset=square * state.offset,
    )


@_behind.register
def _(layer: Dense, state: Reach, here: str) -> Reach:
    w, b = layer.W_std * layer.W_std, layer.b_std * layer.b_std
    own, least = w * state.own + b, w * state.least + b
    if state.kernel is None or state.tangent is None:
        offset = w * state.offset - b * state.rise
        return Reach(own, own, least, rise=1 + state.rise, offset=offset)
    kernel = w * state.kernel + b
    return Reach(own, own, least, kernel, kernel + w * state.tangent)


def _through_activation(layer: Node, numbers: Bounded, state: Reach) -> Reach:
    r = np.sqrt(state.own)
    found = moments_at(layer, r)
    most = numbers.steepness * np.sqrt(found.slopes)
    if state.tangent is None:
        tangent = state.rise * numbers.product(r) + abs(state.offset) * most
    else:
        tangent = state.tangent * most
    kernel = numbers.height * np.sqrt(found.square)
    return Reach(found.square, found.variance, 0.0, kernel, tangent)


@_behind.register(LayerNorm)
@_behind.register(RMSNorm)
def _(layer: LayerNorm | RMSNorm, state: Reach, here: str) -> Reach:
    if state.tangent is None:
        _refuse(
            layer, here, "it stands before the first activation, so that Θ(x, x) itself is bounded"
        )
    if layer.scale or layer.bias:
        _refuse(layer, here, "trainable scales and biases are not part of the proof")
    if state.least + layer.eps == 0:
        _refuse(layer, here, "it divides by a length that may be as small as 0")
    square = state.rest if traits(layer).forgets_mean else state.own
    own, rest = square / (square + layer.eps), state.rest / (square + layer.eps)
    tangent = state.tangent / np.sqrt((state.least + layer.eps) * (square + layer.eps))
    least = state.least / (state.least + layer.eps)
    return dataclasses.replace(
        state, own=own, rest=rest, least=least, kernel=np.sqrt(own), tangent=tangent
    )


def _refuse(layer: Node, here: str, reason: str) -> NoReturn:
    raise ArchitectureError(
        type(layer).__name__,
        here,
        f"no bound on the mean without C: {reason}",
        "Ask lnkernel.bound, with a LayerNorm before the first activation",
    )
