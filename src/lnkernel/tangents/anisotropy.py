r"""Neural anisotropy directions: which changes of the input change the gradient most.

With $g(x) = \partial f/\partial\theta$ they are the right singular vectors of $G = \partial g/\partial x$ at
one input (Ortiz-Jiménez et al. 2020, 2021). $G v$ is the gradient, in θ, of the derivative of f along
v; so $G^T G$ is the tangent kernel of the model $v \mapsto \partial_x f(\theta, x_0)\,v$ on the unit vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jaxtyping import Float64

from lnkernel.check.arrays import as_array
from lnkernel.tangents.differential import Differential
from lnkernel.tangents.eigen import spectrum_of
from lnkernel.tangents.function import Apply, Function
from lnkernel.tangents.model import Tree


@dataclass(frozen=True)
class Slope:
    """v ↦ ∂f(θ, x₀)/∂x · v; x₀ comes with the other variables."""

    apply: Apply

    def __call__(self, params: Tree, rest: tuple[Tree, Array], v: Array) -> Array:
        inner, x0 = rest
        along = v.reshape(x0.shape)
        return jax.jvp(lambda x: self.apply(params, inner, x), (x0,), (along,))[1]


def slope_at(tangent: Differential, x0: np.ndarray) -> Differential:
    """The tangent of the slope at x0, (1, ...), whose inputs are directions (n, d)."""
    model = tangent._model
    old = model.function
    function = Function(Slope(old.apply), old.params, (old.rest, x0), 0)
    return replace(tangent, _model=model._replace(function=function, structured=False, joint=None))


class Anisotropy(NamedTuple):
    """The directions in which the gradient changes most, the first first.

    Attributes:
        values: |G v|² of each: (r,), float64.
        directions: unit vectors, (r, ...), each of the shape of the input.
        residuals: |GᵀG v − value v| of each.
    """

    values: Float64[np.ndarray, " r"]
    directions: Float64[np.ndarray, "r ..."]
    residuals: Float64[np.ndarray, " r"]


def anisotropy_of(tangent: Differential, x0: Any, k: int | None, method: str) -> Anisotropy:
    """The largest k, or all, of the eigenpairs of GᵀG, summed over the outputs."""
    given = np.asarray(as_array("x0", x0))
    with tangent.open(("x0", given.reshape(1, *given.shape) if given.ndim else given)) as (
        function,
        (points,),
    ):
        outputs = function.outputs
    units = np.eye(given.size)
    found = spectrum_of(slope_at(tangent, points), units, k, method, "mean", None, 0)
    return Anisotropy(
        outputs * found.values,
        found.vectors.T.reshape(-1, *given.shape),
        outputs * found.residuals,
    )
