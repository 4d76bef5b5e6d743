r"""`posterior`: conditioning infinitely wide networks on data."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from lnkernel.arch.text import Architecture, as_architecture
from lnkernel.check.numbers import plain_number, positive_integer
from lnkernel.errors import InputError
from lnkernel.gp.fit import fit
from lnkernel.gp.process import Posterior
from lnkernel.gp.traced import traced_fit
from lnkernel.gram.sharded import Layout
from lnkernel.precision import demand_plain_numbers, inside_jit, is_traced
from lnkernel.types import Noise, Points, Targets

__all__ = ["KERNELS", "Posterior", "posterior"]

KERNELS = ("ntk", "nngp")


def posterior(
    arch: Architecture,
    X: Points,
    y: Targets,
    kernel: str = "ntk",
    noise: Noise = 0.0,
    *,
    sharding: Layout | None = None,
    tolerance: float | None = None,
    rank: int | None = None,
    tiles: str | Path | None = None,
) -> Posterior:
    r"""The posterior of an infinitely wide network given data, with $A = k(X, X) + \mathrm{noise}\cdot I$:

        mean(x) = k(x, X) A^-1 y,    variance(x) = k(x, x) - k(x, X) A^-1 k(X, x).

    Args:
        arch: the network, or its text.
        X: inputs, (n, d).
        y: targets, (n,) or, for k outputs, (n, k).
        kernel: "ntk", where all layers are trained, or "nngp", the Bayesian network (and the
            network of which only the last layer is trained).
        noise: a variance, added to the diagonal of the Gram matrix. For "nngp" it is that of
            independent Gaussian noise of the targets; for "ntk" it is the weight of the ridge
            term of the loss, $\frac12\sum_i (f(x_i) - y_i)^2 + \frac{\mathrm{noise}}2 |\theta - \theta_0|^2$.
            Or a variance for each point, (n,); for "ntk" the mean then minimises
            $\frac12\sum_i (f(x_i) - y_i)^2/\mathrm{noise}_i + \frac12 |\theta - \theta_0|^2$.
        sharding: a `jax.sharding.Sharding` or `Mesh`, over whose devices (and hosts) the matrix is spread and
            factorised: 4 n² bytes in all. Every process of a program calls it alike.
        tolerance: how far the mean may be off, at any input, in units of the targets. Then nothing is factorised:
            conjugate gradients stop when they are certain of it. It takes noise and a finite C, as with LayerNorm; see
            `Posterior.error`.
        rank: of the preconditioner of that iteration; by default a quarter of the points, at most 1,000.
        tiles: a folder in which the entries of the matrix are kept, for a run with sharding or tolerance that may be
            killed: the next one reads them.

    Nothing else is added: where float64 cannot tell the Gram matrix from a singular one, a
    `SingularGramError` says so, and equal inputs are named by a `DuplicateInputsError`. The
    matrix is factorised in place, so n points take 8 n² bytes (from 1,000 to 10,000 points up to
    12 n², for a factor in single precision that solves as exactly in less time). Where four such matrices have
    no room in memory, half of one is made, 4 n² bytes, up to 46,340 points.

    Inside `jax.jit`, `jax.grad` and `jax.vmap` it is the same, without these checks, because no
    program can raise: of a singular matrix the results are NaN.

    >>> import numpy as np, lnkernel as lnk
    >>> x = np.linspace(-5, 5, 100)[:, None]
    >>> post = lnk.posterior(lnk.mlp(hidden=2, norm="first"), x, np.sin(x[:, 0]))
    >>> post.mean([[0.5], [1e6]]).round(3).tolist()
    [0.484, -0.974]
    >>> post.std(x[:2]).round(6).tolist()
    [0.0, 0.0]
    >>> near = lnk.posterior(lnk.mlp(hidden=2, norm="first"), x, np.sin(x[:, 0]), noise=0.01, tolerance=1e-6)
    >>> near.error <= 1e-6
    True
    >>> noisy = lnk.posterior(lnk.mlp(), [[1.0], [2.0]], [0.0, 1.0], noise=[0.0, 9.0])
    >>> noisy.mean([[1.0]]).round(6).tolist()                # the first target is exact
    [0.0]
    """
    network, which = as_architecture(arch), known_kernel(kernel)
    if tolerance is not None or sharding is not None:
        demand_plain_numbers("posterior with sharding=... or tolerance=...", network, X, y, noise)
        goal, columns = _checked_iteration(tolerance, rank)
        ways: dict[str, Any] = {
            "sharding": sharding,
            "tolerance": goal,
            "rank": columns,
            "tiles": tiles,
        }
        return Posterior(fit(network, which, X, y, noise, **ways))
    if tiles is not None:
        expected = "sharding=... or tolerance=... beside it"
        raise InputError("tiles", expected, "neither", "Write sharding=lnk.distributed.mesh()")
    if is_traced(network, X, y, noise) or inside_jit():
        return Posterior(traced_fit(network, which, X, y, noise))
    return Posterior(fit(network, which, X, y, noise, mean_first=True))


def _checked_iteration(tolerance: object, rank: object) -> tuple[float | None, int | None]:
    goal = (
        None
        if tolerance is None
        else plain_number("tolerance", tolerance, "a positive number, in units of the targets")
    )
    if goal is not None and not 0 < goal < math.inf:
        expected = "a positive number, in units of the targets"
        raise InputError("tolerance", expected, repr(tolerance), "Write e.g. 1e-3")
    return goal, None if rank is None else positive_integer("rank", rank)


def known_kernel(kernel: str) -> str:
    """The name, if it is that of a kernel."""
    if kernel not in KERNELS:
        raise InputError("kernel", '"ntk" or "nngp"', repr(kernel), 'The default is "ntk"')
    return kernel
