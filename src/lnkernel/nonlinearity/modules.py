"""Networks of affine layers and LayerNorms of width 3, as Flax modules: in float64, and in as many digits as needed."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from flint import arb
from jaxtyping import Float64

from lnkernel.arch import Dense, LayerNorm, Serial, serial
from lnkernel.check.arrays import as_inputs
from lnkernel.evaluate.balls.numbers import working_precision
from lnkernel.finite.build import network
from lnkernel.nonlinearity.folds import Chain, Evaluator
from lnkernel.precision import demand_plain_numbers, demand_x64, is_traced
from lnkernel.types import MorePoints

FLOAT64_BITS, FLOAT64_DIGITS = 53, 15
E1 = np.array([1.0, -1.0, 0.0]) / math.sqrt(
    2.0
)  # with E2 a basis of the plane orthogonal to (1, 1, 1)
E2 = np.array([1.0, 1.0, -2.0]) / math.sqrt(6.0)
MOST_BITS = 2**20


def architecture(norms: int) -> Serial:
    """Affine layers with LayerNorms of width 3 in between."""
    layers = [layer for _ in range(norms) for layer in (Dense(3, b_std=1.0), LayerNorm())]
    return serial(*layers, Dense(1, b_std=1.0))


class _Classifier(nnx.Module):
    """What both kinds of networks have: the classes, the number of LayerNorms, and the architecture."""

    def __init__(self, chain: Chain, classes: np.ndarray, digits: int):
        self.classes = nnx.static(tuple(classes.tolist()))
        self.in_dim, self.norms, self.digits = len(chain.w), len(chain.folds), digits

    @property
    def arch(self) -> Serial:
        """The architecture, for kernels: `serial(Dense(3), LayerNorm(), ..., Dense(1))` with biases."""
        return architecture(self.norms)

    def __call__(self, x: MorePoints) -> Any:
        raise NotImplementedError

    def classify(self, x: MorePoints) -> np.ndarray:
        """The class of each point, as it was called in the labels: (m,).

        >>> import lnkernel as lnk
        >>> lnk.nonlinearity.ln_net([[0.0], [1.0], [2.0]], ["a", "b", "a"]).classify([[0.1], [1.0]]).tolist()
        ['a', 'b']
        """
        demand_plain_numbers("classify", x)
        return np.asarray(self.classes)[(np.asarray(self(x)) > 0).astype(int)]


class LNNet(_Classifier):
    r"""Affine layers and LayerNorms of width 3 in float64, as `ln_net` makes them: (m, d) to scores (m,).

    `layers` are those of `finite.network(arch, ..., parameterization="standard")`, `norms` the number of LayerNorms.
    Plain numbers are computed in float64, whatever JAX's setting; inside of `jit` and
    `grad` its 64-bit mode must be on.

    >>> import lnkernel as lnk
    >>> net = lnk.nonlinearity.ln_net([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> net.norms, net.digits, (net([[0.0], [1.0], [2.0]]) > 0).tolist()
    (1, 15, [False, True, False])
    >>> net.arch
    serial(Dense(width=3, W_std=1.0, b_std=1.0), LayerNorm(eps=0.0, scale=False, bias=False), Dense(width=1, ...))
    """

    def __init__(self, chain: Chain, classes: np.ndarray):
        super().__init__(chain, classes, FLOAT64_DIGITS)
        with jax.enable_x64(True):
            self.network = network(
                self.arch,
                self.in_dim,
                rngs=0,
                parameterization="standard",
                dtype=jnp.float64,
            )
            affine = [layer for layer in self.network.layers if isinstance(layer, nnx.Linear)]
            for layer, (kernel, bias) in zip(affine, _affine_layers(chain), strict=True):
                layer.kernel.set_value(jnp.asarray(kernel))
                assert layer.bias is not None
                layer.bias.set_value(jnp.asarray(bias))

    @property
    def layers(self) -> Any:
        """The layers, affine ones and norms in turn."""
        return self.network.layers

    def __call__(self, x: MorePoints) -> Float64[np.ndarray, " m"] | jax.Array:
        """The scores, positive for the second class: (m,)."""
        if is_traced(x, nnx.state(self)):
            demand_x64()
            return self.network(x)[:, 0]
        points = as_inputs(x, self.in_dim)
        with jax.enable_x64(True):
            return np.asarray(self.network(points)[:, 0])


class PreciseLNNet(_Classifier):
    """The same in exact parameters, evaluated in balls of as many digits as the scores need: (m, d) to (m,).

    Scores are enclosed until their sign is certain, and then rounded to float64. It has no parameters to train
    and is no function for `jit` and `grad`; `chain` has the exact numbers, `digits` tells how many they have.

    >>> import numpy as np, lnkernel as lnk
    >>> X, labels = np.arange(60.0)[:, None], np.arange(60) % 2
    >>> net = lnk.nonlinearity.ln_net(X, labels)
    >>> type(net).__name__, net.norms <= 58, net.digits > 15, bool((net.classify(X) == labels).all())
    ('PreciseLNNet', True, True, True)
    """

    def __init__(self, chain: Chain, classes: np.ndarray, bits: int):
        super().__init__(chain, classes, math.ceil(bits * math.log10(2)))
        self.chain = nnx.static(chain)
        self.bits = bits

    def __call__(self, x: MorePoints) -> Float64[np.ndarray, " m"]:
        """The scores, positive for the second class: (m,)."""
        demand_plain_numbers("PreciseLNNet", x)
        rows = as_inputs(x, self.in_dim).tolist()
        scores, bits = np.full(len(rows), np.nan), 2 * self.bits
        while (open_places := np.flatnonzero(np.isnan(scores))).size:
            with working_precision(bits):
                chain = Evaluator(self.chain)
                for place in open_places:
                    found = chain.score(rows[place], arb(0))
                    if found > 0 or found < 0:
                        scores[place] = _round(found)
                    elif bits > MOST_BITS:  # a point of the boundary itself has no sign
                        scores[place] = 0.0
            bits *= 2
        return scores


def _round(ball: arb) -> float:
    """A number of float64 with the sign of the ball, also where the ball is below float64's range."""
    middle = float(ball.mid())
    return middle or math.copysign(5e-324, 1.0 if ball > 0 else -1.0)


def _affine_layers(chain: Chain) -> list[tuple[np.ndarray, np.ndarray]]:
    """Kernels (in, out) and biases of all affine layers: each reads the last fold and makes h of the next."""
    read, offset = np.array(chain.w), float(chain.offset)
    layers = []
    for fold in chain.folds:
        bias = (offset - float(fold.c)) * E1 + float(fold.s) * E2
        layers.append((np.outer(read, E1), bias))
        read, offset = (float(fold.a) * E1 + float(fold.b) * E2) / math.sqrt(3.0), 0.0
    last = chain.sign * (offset - float(chain.threshold))
    return [*layers, (chain.sign * read[:, None], np.array([last]))]
