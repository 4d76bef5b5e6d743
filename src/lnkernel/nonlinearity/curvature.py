r"""How much a map bends: the sum of the squares of all its second derivatives, at a point."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from lnkernel.arch import GroupNorm, LayerNorm, RMSNorm
from lnkernel.check.arrays import as_array
from lnkernel.check.numbers import as_flag, plain_number, positive_integer
from lnkernel.errors import ArchitectureError, InputError
from lnkernel.precision import demand_plain_numbers
from lnkernel.types import Array

Energy = float | Float64[np.ndarray, " n"]
FUNCTION = "a function of one point that JAX can differentiate, or a norm"


def hessian_energy(
    f: Callable[[Array], Array] | LayerNorm | RMSNorm | GroupNorm, x: ArrayLike
) -> Energy:
    r"""$H(f; x) = \sum_i \|\partial^2 f_i/\partial x^2\|_F^2$, how far $f$ is from linear around $x$.

    Args:
        f: a JAX function of ONE point, (d,) to (k,) or to a number. For a network that takes many write
            `lambda x: network(x[None])[0]`. Or a norm of ours, `LayerNorm()`, `GroupNorm(c)`, `RMSNorm()`,
            whose closed form is `norm_energy`.
        x: one point, (d,), or several, (n, d).

    >>> import jax.numpy as jnp, lnkernel as lnk
    >>> x = jnp.array([1.0, 2.0, 4.0, 8.0])
    >>> def layer_norm(x):
    ...     return (x - x.mean()) / jnp.std(x)
    >>> bool(abs(lnk.nonlinearity.hessian_energy(layer_norm, x) * 7.1875**2 - 3 * (4 - 2) / 4) < 1e-12)
    True
    >>> bool(abs(lnk.nonlinearity.hessian_energy(lnk.LayerNorm(), x) * 7.1875**2 - 1.5) < 1e-12)
    True
    """
    demand_plain_numbers("hessian_energy", x)
    points, single = _as_rows(x)
    found = _energies(f, points)
    if not np.isfinite(found).all():
        at = int(np.argmax(~np.isfinite(found)))
        raise InputError(
            "x",
            "points at which f has finite second derivatives",
            f"{found[at]} at point {at}",
            "Leave out points at which f divides by zero",
        )
    return float(found[0]) if single else found


def norm_energy(x: ArrayLike, groups: int = 1, *, eps: float = 0.0, centre: bool = True) -> Energy:
    r"""The energy of a norm in closed form. LayerNorm, and LN-G with $g$ groups of $c = d/g$ features, have

    $$H = \frac{3(d - 2)}{d\,\sigma^4}, \qquad H = \sum_G \frac{3(c - 2)}{c\,\sigma_G^4}.$$

    With $\epsilon$, $s = \sigma_G^2 + \epsilon$ and $k = c - 1$ dimensions left by the mean ($k = c$ without
    centring), each group adds $\frac{\sigma_G^2}{c}\big(\frac{3(k+2)}{s^3} - \frac{18\sigma_G^2}{s^4} +
    \frac{9\sigma_G^4}{s^5}\big)$. The ratio of LN-G to LayerNorm is at least $g(d - 2g)/(d - 2)$ at every
    point: d/8 and more at g = d/4.

    Args:
        x: one point, (d,), or several, (n, d).
        groups: how many groups of neighbours are normalised on their own; it divides d.
        eps: added to the variance.
        centre: whether the mean is subtracted; without it is RMSNorm, and σ² the mean square.

    >>> import lnkernel as lnk
    >>> lnk.nonlinearity.norm_energy([-1.0, 1.0, -1.0, 1.0])         # σ = 1: 3 · 2/4
    1.5
    >>> lnk.nonlinearity.norm_energy([[-1.0, 1.0, -1.0, 1.0]], groups=2).tolist()  # two features become ±1
    [0.0]
    """
    demand_plain_numbers("norm_energy", x)
    points, single = _as_rows(x)
    g, d = positive_integer("groups", groups), points.shape[1]
    if d % g:
        raise InputError("groups", f"a divisor of the {d} features", repr(groups), "Choose another")
    small = plain_number("eps", eps, "a number, 0 or more")
    if not 0 <= small < np.inf:
        raise InputError("eps", "a number, 0 or more", repr(eps), "Write eps=0.0")
    found = _norm_energies(points, d // g, small, as_flag("centre", centre))
    return float(found[0]) if single else found


@singledispatch
def _energies(f: Any, points: np.ndarray) -> np.ndarray:
    """The energies by differentiation, point after point."""
    if not callable(f):
        remedy = "Write e.g. hessian_energy(lambda x: network(x[None])[0], x)"
        raise InputError("f", FUNCTION, repr(f), remedy)
    with jax.enable_x64(True):
        first = _as_output(f, jnp.asarray(points[0]))
        if first.ndim > 1:
            remedy = "For a network write lambda x: network(x[None])[0]"
            raise InputError(
                "f", "outputs of shape () or (k,) for one point", f"{first.shape}", remedy
            )
        if first.dtype != np.float64:
            raise InputError(
                "f",
                "outputs in float64, because second derivatives in less lose most digits",
                f"outputs of {first.dtype}",
                "Make a network by finite.network(..., dtype=jnp.float64), inside jax.enable_x64(True)",
            )
        hessians = jax.lax.map(jax.hessian(f), jnp.asarray(points))
        return np.asarray(jnp.sum(hessians**2, axis=range(1, hessians.ndim)))


def _as_output(f: Callable[[Array], Any], point: Array) -> jax.ShapeDtypeStruct:
    """Shape and dtype of f at a point, as JAX traces it."""
    try:
        traced = jax.eval_shape(f, point)
    except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as problem:
        remedy = "Write it by jax.numpy instead of numpy"
        raise InputError("f", FUNCTION, "one that leaves JAX", remedy) from problem
    if len(jax.tree.leaves(traced)) != 1 or not hasattr(traced, "dtype"):
        raise InputError("f", "one array as output", f"{traced}", "Return one of its outputs")
    return traced


@_energies.register
def _(f: LayerNorm, points: np.ndarray) -> np.ndarray:
    return _norm_energies(points, points.shape[1], float(f.eps), True)


@_energies.register
def _(f: RMSNorm, points: np.ndarray) -> np.ndarray:
    return _norm_energies(points, points.shape[1], float(f.eps), False)


@_energies.register
def _(f: GroupNorm, points: np.ndarray) -> np.ndarray:
    if points.shape[1] % f.group_size:
        reason = f"its groups of {f.group_size} do not divide the {points.shape[1]} features of x"
        raise ArchitectureError("GroupNorm", "", reason, "Choose another group_size")
    return _norm_energies(points, f.group_size, float(f.eps), f.centre)


def _norm_energies(points: np.ndarray, size: int, eps: float, centre: bool) -> np.ndarray:
    groups = points.reshape(len(points), -1, size)
    unit = 2.0 ** np.frexp(np.abs(groups).max())[1]  # squares stay in the range of float64
    groups, eps = groups / unit, eps / unit / unit
    groups = groups - groups.mean(-1, keepdims=True) if centre else groups
    square = (groups**2).mean(-1)
    if eps == 0 and not (square > 0).all():
        at = int(np.argwhere(square <= 0)[0, 0])
        raise InputError(
            "x",
            "features that differ within every group, because a norm without eps has no value elsewhere",
            f"a group of equal features at point {at}",
            "Leave such points out, or give an eps",
        )
    k, s = size - centre, square + eps
    if eps == 0:
        energy = (3 * (k - 1) / (size * square**2)).sum(-1)  # exactly 0 for k = 1
    else:
        terms = 3 * (k + 2) / s**3 - 18 * square / s**4 + 9 * square**2 / s**5
        energy = (square / size * terms).sum(-1)
    with np.errstate(over="ignore", under="ignore"):
        found: np.ndarray = energy / unit / unit / unit / unit
    if not np.isfinite(found).all():
        remedy = "Rescale the data: the energy falls with their fourth power"
        raise InputError("x", "numbers whose energy is in the range of float64", "smaller", remedy)
    return found


def _as_rows(x: ArrayLike) -> tuple[np.ndarray, bool]:
    """The points as float64 of shape (n, d), and whether only one came."""
    given = np.asarray(as_array("x", x), np.float64)
    if given.ndim not in (1, 2) or 0 in given.shape:
        remedy = "Give one vector, or several as rows"
        raise InputError("x", "shape (d,) or (n, d)", f"shape {given.shape}", remedy)
    if not np.isfinite(given).all():
        raise InputError("x", "finite numbers", "NaN or infinity", "Leave such points out")
    return np.atleast_2d(given), given.ndim == 1
