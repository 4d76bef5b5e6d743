r"""A bound on the mean where activations saturate: without a LayerNorm, and without C."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lnkernel.arch.text import Architecture
from lnkernel.bounds.digits import at_most
from lnkernel.bounds.problem import problem
from lnkernel.bounds.reach import reach
from lnkernel.evaluate.leading.growth import concrete
from lnkernel.gp.fit import fit
from lnkernel.gp.large_targets import targets_too_large
from lnkernel.gp.posterior import Posterior
from lnkernel.gram.memory import demand_memory
from lnkernel.precision import demand_plain_numbers
from lnkernel.types import Noise, Points, Targets


@dataclass(frozen=True)
class MeanBound:
    r"""A bound on $|E f(x)|$ for every x. `mean_bound` makes it.

    Attributes:
        value: $\sum_i \sup_x|\Theta(x, x_i)|\,|a_i|$; of several outputs the largest.
        reach: a bound on $\sup_x|\Theta(x, x_i)|$ for each point, (n,).
        coefficients: $a = (\Theta + \mathrm{noise}\,I)^{-1}y$, (n, k).

    >>> import lnkernel as lnk
    >>> b = lnk.mean_bound(lnk.mlp(hidden=1, activation=lnk.Erf()), [[-1.0], [1.0]], [1.0, 0.0])
    >>> float(b) == b.value, b.reach.shape
    (True, (2,))
    """

    value: float
    reach: np.ndarray = field(repr=False)
    coefficients: np.ndarray = field(repr=False)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return (
            "The expected output of the trained, infinitely wide network is at most "
            f"{at_most(self.value)} in absolute value for every x, because its activations are bounded. "
            "A theorem, evaluated in float64: rounding errors are not accounted for."
        )


def mean_bound(
    arch: Architecture | Posterior,
    X: Points | None = None,
    y: Targets | None = None,
    noise: Noise = 0.0,
) -> MeanBound:
    r"""$|\Theta(x,X)\,a| \le \sum_i \sup_x|\Theta(x, x_i)|\,|a_i|$ with $a = \Theta(X,X)^{-1}y$, for every x.

    Where activations saturate, $\Theta(x, x)$ may grow without limit, so that `bound` is infinite; but
    $\Theta(x, x_i)$ stays bounded for each data point $x_i$, and with it the mean. (The spread of trained networks
    about their mean does not.) Proved for Dense layers and `Tanh`, `Erf`, `Sigmoid`, `Gaussian`, `Sin`, `Cos`,
    `Clip`, one after another, also with a LayerNorm or RMSNorm behind the first activation; every other network is
    refused.

    Args:
        arch: the network, its text, or its `posterior` with kernel="ntk"; then X and y are left out.
        X: inputs, (n, d).
        y: targets, (n,) or (n, k); the bound holds for each output.
        noise: variance of the targets' noise, added to the diagonal of Θ(X, X), or one for each point, (n,).

    >>> import lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(8), lnk.Erf(), lnk.Dense(1))
    >>> b = lnk.mean_bound(arch, [[1.0]], [1.0])                 # one point: Θ(x, 1)/Θ(1, 1)
    >>> far = lnk.posterior(arch, [[1.0]], [1.0]).mean([[2.0]])[0]
    >>> bool(far < b.value), lnk.bound(arch, [[1.0]], [1.0]).value
    (True, inf)
    """
    demand_plain_numbers("mean_bound", arch, X, y, noise)
    asked = problem(arch, X, y, noise)
    plain = concrete(asked.arch)
    if asked.fit is None:
        demand_memory(len(asked.data.x), 1, "The Gram matrix")
    sizes = reach(plain, np.asarray(asked.data.x))
    made = asked.fit or fit(plain, "ntk", asked.data.x, asked.data.y, asked.noise)
    a = made.coefficients
    with np.errstate(over="ignore"):
        value = float((sizes @ np.abs(a)).max())
    if not np.isfinite(value):
        raise targets_too_large(asked.data.y, "the bound")
    return MeanBound(value, sizes, a)
