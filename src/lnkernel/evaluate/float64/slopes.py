r"""The derivatives of lengths and angles by the inputs, in closed form.

With unit vectors $\hat x, \hat y$, angle $\theta$ and $w = \sin^2(\theta/2)$,

$$\partial_x w = -\frac{\hat y - \cos\theta\,\hat x}{2|x|}, \qquad
\partial_y w = -\frac{\sin^2\theta\,\hat x - \cos\theta\,(\hat y - \cos\theta\,\hat x)}{2|y|}.$$

The part of $\hat y$ orthogonal to $\hat x$ is exact to the last digits, so nothing cancels where the two are nearly
parallel.
"""

from __future__ import annotations

from typing import NamedTuple

from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.geometry import Inputs, shift
from lnkernel.evaluate.float64.projection import centred, project
from lnkernel.types import Array


class Slopes(NamedTuple):
    """What a change of the first (n, d) and of the second inputs (m, d) makes of the numbers of their pairs."""

    angle: tuple[Array, Array]  # ∂w by either, (n, m, d) each
    square: tuple[
        Array, Array
    ]  # ∂ of the mean square, as `geometry.prepare` holds it, (n, d) and (m, d)
    length: tuple[Array, Array]  # ∂|x|, (n, d) and (m, d)
    difference: tuple[Array, Array]  # ∂e by either length, (n, m) each


def slopes(one: Inputs, two: Inputs, w: Array, z: Array, centre: bool, with_range: bool) -> Slopes:
    """The derivatives of all pairs, whose angles are known already. A zero vector has none."""
    xp = namespace.of(one.unit, two.unit)
    rest, _ = project(one.scaled[:, None], two.scaled[None, :], xp.ones((1, 1)), centre)
    inner = centred(two.scaled) if centre else two.scaled
    norm = xp.sqrt(xp.where(two.live, xp.sum(inner * inner, axis=1), 1.0))
    turned = rest / norm[None, :, None]
    sine = xp.sum(turned * turned, axis=-1)
    turned_back = sine[..., None] * one.unit[:, None] - (z - w)[..., None] * turned
    half = xp.where(one.live[:, None] & two.live[None, :], -0.5, 0.0)[..., None]
    r1, r2 = (xp.where(side.live, side.length, 1.0) for side in (one, two))
    long = r1[:, None] + r2[None, :]
    return Slopes(
        (half * turned / r1[:, None, None], half * turned_back / r2[None, :, None]),
        (_of_square(one, centre, with_range), _of_square(two, centre, with_range)),
        (one.unit, two.unit),
        (2 * (r2[None, :] / long) / long, -2 * (r1[:, None] / long) / long),
    )


def _of_square(side: Inputs, centre: bool, with_range: bool) -> Array:
    inner = centred(side.scaled) if centre else side.scaled
    exponent = side.exponent[:, None]
    return shift(2 * inner / inner.shape[1], -exponent if with_range else exponent)
