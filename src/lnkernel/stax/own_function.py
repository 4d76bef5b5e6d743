"""An activation of one's own: its function, and formulas of its kernels that are compared with what is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel import arch
from lnkernel.errors import ArchitectureError
from lnkernel.gram.kernel import kernels
from lnkernel.stax.triple import Layer, layer_of

Formula = Callable[[Any, Any, Any], Any]  # of cov12, var1, var2

# inputs of a Dense, whose variances are 1/3, 1/2 and 1, and whose covariances are of either sign
POINTS = np.array([[1.0, 0.0, 0.0], [0.5, 1.0, -0.5], [-1.0, 0.5, 1.75**0.5]])
AGREE = 1e-6  # relatively: formulas lose digits, and a wrong one is farther off


def ElementwiseNumerical(
    fn: Callable[[Any], Any], deg: int = 25, df: Any = None, do_stabilize: bool = False
) -> Layer:
    r"""$\mathrm{fn}(u)$ for a function of your own: `lnkernel.Activate`.

    `deg` is the number of nodes of its quadrature; here as many are taken as the last digit needs.
    `do_stabilize`: see `Relu`. For a function with kinks take `lnkernel.Activate`, which lets you name them.

    >>> import jax.numpy as jnp
    >>> from lnkernel import stax
    >>> stax.ElementwiseNumerical(jnp.tanh, deg=25).arch.kinks
    ()
    """
    return layer_of(arch.Activate(fn, df))


def Elementwise(
    fn: Callable[[Any], Any] | None = None,
    nngp_fn: Formula | None = None,
    d_nngp_fn: Formula | None = None,
) -> Layer:
    r"""$\mathrm{fn}(u)$ for a function of your own: `lnkernel.Activate`, which computes its kernels.

    Args:
        fn: the function. There it may be missing; here the kernels are computed from it.
        nngp_fn: $E\,\mathrm{fn}(u)\,\mathrm{fn}(v)$ of the covariance and the two variances of $u$ and $v$. It is not
            needed. If it is given, it is compared at three covariances with what is computed; one that differs is
            refused.
        d_nngp_fn: the same of the derivatives.

    For a function with kinks take `lnkernel.Activate`, which lets you name them.

    >>> import jax, jax.numpy as jnp
    >>> from lnkernel import stax
    >>> def nngp_fn(cov12, var1, var2):
    ...     prod = (1 + 2 * var1) * (1 + 2 * var2)
    ...     return jnp.arcsin(2 * cov12 / jnp.sqrt(prod)) * 2 / jnp.pi
    >>> stax.Elementwise(jax.scipy.special.erf, nngp_fn).arch
    Activate(fn=erf, kinks=())
    """
    if fn is None:
        raise ArchitectureError(
            "stax.Elementwise",
            "",
            "fn is missing, and kernels are computed from it: a formula alone does not say what the finite network "
            "is, nor what a LayerNorm behind it subtracts",
            "Give fn; nngp_fn and d_nngp_fn are not needed",
        )
    made = arch.Activate(fn)
    given = {"nngp_fn": nngp_fn, "d_nngp_fn": d_nngp_fn}
    formulas = {name: formula for name, formula in given.items() if formula is not None}
    if formulas:
        _compare(made, formulas)
    return layer_of(made)


def _compare(layer: arch.Activate, formulas: dict[str, Formula]) -> None:
    """Refuse a formula that is not that of the function."""
    found = kernels(arch.serial(arch.Dense(1), layer))(POINTS)
    covariances = POINTS @ POINTS.T / POINTS.shape[1]
    own, ends = np.diagonal(covariances), np.sqrt(np.diagonal(found.nngp))
    for i, j in ((0, 1), (0, 2), (1, 2)):
        k = covariances[i, j]
        values = {"nngp_fn": found.nngp[i, j], "d_nngp_fn": found.ntk[i, j] / k}
        sizes = {
            "nngp_fn": ends[i] * ends[j],
            "d_nngp_fn": np.sqrt(found.ntk[i, i] / own[i] * found.ntk[j, j] / own[j]),
        }
        for name, formula in formulas.items():
            with jax.enable_x64(True):
                said = float(formula(*map(jnp.float64, (k, own[i], own[j]))))
            if not abs(said - values[name]) <= AGREE * sizes[name]:
                what = "fn(u) fn(v)" if name == "nngp_fn" else "fn'(u) fn'(v)"
                raise ArchitectureError(
                    "stax.Elementwise",
                    "",
                    f"{name}({k:.6g}, {own[i]:.6g}, {own[j]:.6g}) is {said:.9g}, and E {what} is "
                    f"{values[name]:.9g} there, computed from fn",
                    f"Correct {name} or fn, or leave {name} out: it is not needed",
                )
