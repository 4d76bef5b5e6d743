r"""The constants of the law: $\lambda_n \sim \Lambda n^{-\nu}$ in one dimension, and the loss that follows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float64

from lnkernel.arch.facts import starts_with_bias
from lnkernel.arch.flow import check_network
from lnkernel.arch.text import Architecture, as_architecture
from lnkernel.asymptotics.curves import as_ends, as_times
from lnkernel.asymptotics.smoothness import sees_length, worst_kink
from lnkernel.check.numbers import plain_number
from lnkernel.errors import InputError, NoLawError
from lnkernel.gram.kernel import ntk
from lnkernel.types import Times

NODES = 64  # of Gauss and Legendre, for functions that are analytic on the interval
STEP = 1e-2  # of the interval: the largest distance from the diagonal
HALVINGS = 5
TOGETHER = 16  # points in a call: few pairs are wasted, and calls are few
TOLERANCE = 1e-4  # of the last extrapolation, against the largest c


def constant(
    arch: Architecture,
    interval: tuple[float, float] = (-1.0, 1.0),
    density: Callable[[np.ndarray], np.ndarray] | None = None,
) -> float:
    r"""$\Lambda = \frac{2}{\pi^2}\Big(\int \sqrt{c(x)\,p(x)}\,dx\Big)^2$, the constant of
    $\lambda_n \sim \Lambda n^{-2}$ for inputs on an interval with the density $p$.

    The NTK of a network whose activations have kinks of degree 1 is $\Theta(x, x') = \text{smooth} - c(x)|x - x'|$,
    and $c$ is read off the exact kernel, extrapolated to the diagonal.

    Args:
        arch: the architecture, or its text, with a bias in its first layer.
        interval: its ends.
        density: a function of an array of points; by default uniform. It is divided by its integral.

    >>> import math, lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(8, b_std=1.0), lnk.Relu(), lnk.Dense(1, b_std=1.0))
    >>> bool(abs(lnk.asymptotics.constant(arch) - 2 / math.pi**3) < 1e-10)                # c = 1/2π
    True
    """
    network = check_network(as_architecture(arch))
    if worst_kink(network) != 1:
        raise NoLawError("its kinks are not of degree 1", "The constant is known for ReLU's kind")
    if not sees_length(network):
        raise NoLawError(
            "on a line this network sees the sign of x alone, and its kernel has finite rank",
            "Give the first Dense a bias, b_std=1.0",
        )
    low, high = as_ends("interval", interval)
    if not starts_with_bias(network) and low < 0 < high:
        remedy = "Choose an interval on one side of 0, or give the first Dense a bias"
        raise InputError("interval", "one without 0, where c jumps", repr(interval), remedy)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    x, weights = (low + high) / 2 + (high - low) / 2 * nodes, weights * (high - low) / 2
    if density is not None and not callable(density):
        remedy = "Write e.g. density=lambda x: np.exp(-x**2)"
        raise InputError("density", "a function of an array of points", repr(density), remedy)
    p = np.ones_like(x) if density is None else np.asarray(density(x), float)
    if p.shape != x.shape or not (np.isfinite(p).all() and (p >= 0).all() and p.any()):
        remedy = "Write e.g. density=lambda x: np.exp(-x**2)"
        raise InputError("density", "finite values, 0 or more, one a point", f"{p}", remedy)
    p = p / (weights @ p)
    c = _slopes(network, x, STEP * (high - low))
    return float(2 / math.pi**2 * (weights @ np.sqrt(np.maximum(c, 0.0) * p)) ** 2)


def asymptote(
    t: Times, nu: float, kappa: float, eigenvalue_constant: float, tail_constant: float
) -> Float64[np.ndarray, " t"]:
    r"""$L(t) \sim \frac{\mathcal K}{2}\,\Gamma(\kappa/\nu + 1)\,(2\Lambda t)^{-\kappa/\nu}$, if
    $\lambda_n \sim \Lambda n^{-\nu}$ and $\sum_{k \ge n} |c_k|^2 \sim \mathcal K n^{-\kappa}$.

    >>> import lnkernel as lnk
    >>> lnk.asymptotics.asymptote([1.0, 4.0], 2.0, 2.0, 0.5, 1.0).tolist()              # 1/2 · Γ(2)/t
    [0.5, 0.125]
    """
    for name, value in (
        ("nu", nu),
        ("kappa", kappa),
        ("eigenvalue_constant", eigenvalue_constant),
        ("tail_constant", tail_constant),
    ):
        if not 0 < plain_number(name, value, "a positive number") < math.inf:
            raise InputError(name, "a positive number", repr(value), "A law has all four")
    times = as_times(t)
    if not (times > 0).all():
        raise InputError("t", "positive times", f"{t!r}", "The law is one of large times")
    xi = kappa / nu
    return tail_constant / 2 * math.gamma(xi + 1) * (2 * eigenvalue_constant * times) ** -xi


def _slopes(arch: Architecture, x: np.ndarray, step: float) -> np.ndarray:
    """c(x) = -lim (Θ(x, x + h) - 2Θ(x, x) + Θ(x, x - h))/2h, by Richardson's extrapolation in powers of h."""
    theta = ntk(arch)
    found = []
    for halving in range(HALVINGS + 1):
        h = step * 0.5**halving
        parts = []
        for some in np.split(x[:, None], len(x) // TOGETHER):
            below, there, above = (np.diag(theta(some, some + s)) for s in (-h, 0.0, h))
            parts.append((2 * there - below - above) / (2 * h))
        found.append(np.concatenate(parts))
    previous = found
    for order in range(1, HALVINGS + 1):
        previous = found
        found = [
            (2**order * fine - rough) / (2**order - 1) for rough, fine in itertools.pairwise(found)
        ]
    error, size = np.abs(previous[1] - found[0]).max(), np.abs(found[0]).max()
    if not error <= TOLERANCE * size:
        raise InputError(
            "interval",
            "one on which float64 resolves the kernel beside its diagonal",
            f"an error of {error:.1g} beside {size:.1g}",
            "Choose an interval nearer to 0, not much narrower than its distance from it",
        )
    return found[0]
