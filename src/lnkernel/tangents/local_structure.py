"""What `Tangent.local` gives: the local structure of the tangent kernel at some inputs, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

from lnkernel.check.numbers import as_number
from lnkernel.errors import InputError
from lnkernel.tangents import local
from lnkernel.tangents.differential import Differential
from lnkernel.tangents.function import Function
from lnkernel.tangents.local import LocalForm
from lnkernel.tangents.products import batches
from lnkernel.tangents.structured import structured_jacobian
from lnkernel.types import Number, Points

MOST_NUMBERS = 2**24  # of the gradients of one batch: 64 MB in float32

PerInput = Float64[np.ndarray, " n"]


@dataclass(frozen=True, eq=False, repr=False)
class LocalStructure:
    r"""$a = |g|$, $D = G^T g$, $H = \tfrac12 G^T G$ of the gradient $g = \nabla_\theta f(x)$ and of
    $G = \partial g/\partial x$, at every input; `Tangent.local` makes it.

    Attributes:
        a: $|g|$, so that $K(x, x) = a^2$: (n,), float64.
        D: $\tfrac12 \nabla_x K(x, x)$: (n, d).
        H: $\tfrac12 \partial_x \partial_{x'} K$ on the diagonal: (n, d, d).
    """

    a: PerInput
    D: Float64[np.ndarray, "n d"]
    H: Float64[np.ndarray, "n d d"]

    def __repr__(self) -> str:
        return f"LocalStructure(inputs={len(self.a)}, dimension={self.D.shape[1]})"

    def cauchy(self, u: ArrayLike) -> PerInput | Float64[np.ndarray, "n m"]:
        r"""The cosine of the gradients at x and x + u, for small u:

        $$C(x, x+u) \approx \frac{a^2 + D^T u}{a^2 + D^T u + u^T H u}.$$

        It is $2 g \cdot g'/(|g|^2 + |g'|^2)$ with $g' = g + G u$. The arithmetic mean stands where the
        cosine has the geometric one: to second order it is less than the cosine by $(D^T u)^2/2a^4$.

        Args:
            u: one step (d,), or several (m, d).

        Returns:
            (n,) of one step, (n, m) of several.
        """
        steps = np.asarray(u, np.float64)
        d = self.D.shape[1]
        if steps.ndim not in (1, 2) or steps.shape[-1] != d:
            raise InputError(
                "u",
                f"one step of shape ({d},), or several of shape (m, {d})",
                f"shape {steps.shape}",
                "Give each step as many coordinates as the inputs have",
            )
        rows = np.atleast_2d(steps)
        top = (self.a**2)[:, None] + self.D @ rows.T
        made = top / (top + np.einsum("mi,nij,mj->nm", rows, self.H, rows))
        return made[:, 0] if steps.ndim == 1 else made

    def length(self, c_inf: Number = 0.0) -> PerInput:
        r"""The correlation length ξ: the radius of the ball with the volume of the ellipsoid
        $\{u : C \ge c\}$, $c = \frac12 + \frac12 c_\infty$; in two dimensions $\sqrt{\mathrm{area}/\pi}$,

        $$\xi = R\,(\det H)^{-1/2d}, \qquad
        R^2 = \tfrac{1-c}{c} a^2 + \big(\tfrac{1-c}{2c}\big)^2 D^T H^{-1} D.$$

        It is infinite where the gradient does not change along some direction.

        Args:
            c_inf: the cosine of inputs that are far from each other.
        """
        floor = as_number(c_inf)
        if floor is None or not -1 < floor < 1:
            raise InputError(
                "c_inf",
                "a cosine between -1 and 1",
                repr(c_inf),
                "It is what the cosine falls to, as `correlation_length` measures it",
            )
        with jax.enable_x64(True):
            return np.asarray(local.length(self._form, floor))

    @property
    def min_cosine(self) -> PerInput:
        r"""The least value of `cauchy` over all steps: $-\beta/(4 a^2 - \beta)$, $\beta = D^T H^{-1} D$;
        between -1 and 0."""
        with jax.enable_x64(True):
            return np.asarray(local.min_cosine(self._form))

    @property
    def mag_ma(self) -> float:
        r"""$|E_x[D/a^2]| = |E_x \nabla_x \log|g||$, over all the inputs."""
        return float(np.linalg.norm(np.mean(self.D / (self.a**2)[:, None], 0)))

    @property
    def _form(self) -> LocalForm:
        return LocalForm(*map(jax.numpy.asarray, (self.a, self.D, self.H)))


def local_of(tangent: Differential, x: Points, output: int | None) -> LocalStructure:
    """The local structure at the inputs x, (n, d), of one output."""
    with tangent.open(("x", x)) as (function, (points,)):
        if points.ndim != 2:
            raise InputError(
                "x",
                "inputs that are vectors, shape (n, d)",
                f"shape {points.shape}",
                "Flatten them, and give the model a function that restores their shape",
            )
        chosen = _choose_output(function.outputs, output)
        if tangent.structured:
            parts = [
                _factored(function, some, chosen) for _, some in batches(points, tangent.batch_size)
            ]
        else:
            numbers = (points.shape[1] + 1) * tangent.size  # of one input's gradients
            batch = max(1, min(tangent.batch_size, len(points), MOST_NUMBERS // numbers))
            parts = [_forms(function, points, chosen, batch)]
        a, D, H = (
            np.concatenate([np.asarray(part, np.float64) for part in same])[: len(points)]
            for same in zip(*parts, strict=True)
        )
    if not a.all():
        where = int(np.flatnonzero(a == 0)[0])
        raise InputError(
            "x",
            "inputs at which the gradient is not zero",
            f"a gradient of zero in row {where}",
            "It has no angle with others: drop the input, or choose more parameters",
        )
    return LocalStructure(a, D, H)


def _choose_output(outputs: int, output: int | None) -> int:
    if output is None and outputs == 1:
        return 0
    if isinstance(output, bool) or not isinstance(output, int) or not 0 <= output < outputs:
        raise InputError(
            "output",
            f"one of the outputs, 0 to {outputs - 1}",
            repr(output),
            "Every output has a gradient of its own: choose one",
        )
    return output


@partial(jax.jit, static_argnames="batch")
def _forms(function: Function, x: Float[jax.Array, "n d"], output: int, batch: int) -> LocalForm:
    return local.local_forms(
        lambda params, point: function(params, point)[output], function.params, x, batch
    )


@partial(jax.jit, static_argnames="output")
def _factored(function: Function, x: Float[jax.Array, "n d"], output: int) -> LocalForm:
    return local.factored_forms(partial(structured_jacobian, function), x, output)
