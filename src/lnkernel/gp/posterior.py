r"""The posterior of infinitely wide networks: Gaussian processes, and networks trained in time."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import overload

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.arch.text import Architecture, as_architecture
from lnkernel.check import as_array, as_float, as_inputs, as_key, as_shape
from lnkernel.errors import InputError, LearningRateError
from lnkernel.gp import dynamics, traced
from lnkernel.gp.dynamics import Curve, Filter, Stopped, gradient_descent, gradient_flow
from lnkernel.gp.fit import Fit, fit
from lnkernel.gp.noise import noise_in_words
from lnkernel.gp.traced import TracedPosterior
from lnkernel.gram.memory import demand_memory
from lnkernel.precision import handed_out, inside_jit, is_traced, x64_is_on
from lnkernel.types import (
    Covariance,
    Key,
    MorePoints,
    Noise,
    Number,
    Outputs,
    Points,
    Samples,
    Targets,
    Times,
    Values,
)

KERNELS = ("ntk", "nngp")


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    r"""A Gaussian process given data, and at the same time the training of wide networks.

    `posterior` makes it. With $A = k(X, X) + \mathrm{noise}\cdot I$, where $k$ is the NTK $\Theta$ or
    the NNGP kernel $K$:

        mean(x)     = k(x, X) A^-1 y
        variance(x) = k(x, x) - k(x, X) A^-1 k(X, x)

    All numbers are float64. Targets of shape (n, k) are k independent problems with one kernel.

    >>> import lnkernel as lnk
    >>> lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0])
    Posterior(kernel='ntk', points=2, dimension=1, outputs=1, noise=0.0)
    """

    _fit: Fit

    def __repr__(self) -> str:
        (n, d), k = self._fit.data.x.shape, self._fit.data.y.shape[1]
        return (
            f"Posterior(kernel={self._fit.which!r}, points={n}, dimension={d}, outputs={k}, "
            f"noise={noise_in_words(self._fit.noise)})"
        )

    def mean(self, x: MorePoints) -> Outputs:
        r"""$k(x, X)\,A^{-1} y$ at the points x (m, d): (m,) or, for several outputs, (m, k); float64.

        For the NTK without noise it is the mean, over random initialisations, of the outputs of
        infinitely wide networks trained to convergence by gradient descent on the squared error.

        >>> import lnkernel as lnk
        >>> post = lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0])
        >>> post.mean([[2.0], [1e9]]).round(3).tolist()      # bounded, by LayerNorm
        [1.0, 1.038]
        """
        return dynamics.mean(self._fit, self._fit.coefficients, x)

    def variance(self, x: MorePoints) -> Values:
        r"""$k(x, x) - k(x, X)\,A^{-1} k(X, x)$ at the points x (m, d): (m,), float64.

        It is the variance of the noiseless function under the Gaussian-process prior with
        kernel $k$. For the NTK this is not the spread of trained networks, whose prior is
        another: that is `ensemble_variance`. Where the exact value is 0, at the data, it is 0
        up to rounding, and never negative.

        >>> import lnkernel as lnk
        >>> post = lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0], kernel="nngp")
        >>> post.variance([[2.0], [0.0]]).round(3).tolist()     # none at the data
        [0.0, 0.643]
        """
        if is_traced(x) or inside_jit():
            return traced.variance(self._fit, x)
        was_on = x64_is_on()
        return handed_out(self._fit.variance(self._inputs(x)), was_on)

    def std(self, x: MorePoints) -> Values:
        """The square root of `variance`: (m,), float64.

        >>> import lnkernel as lnk
        >>> post = lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0], kernel="nngp")
        >>> (post.std([[0.0]]) ** 2 - post.variance([[0.0]])).round(12).tolist()
        [0.0]
        """
        variance = self.variance(x)
        return jnp.sqrt(variance) if isinstance(variance, jax.Array) else np.sqrt(variance)

    def covariance(self, x: MorePoints) -> Covariance:
        r"""$k(x, x') - k(x, X)\,A^{-1} k(X, x')$ for all pairs of the points x: (m, m), float64.

        >>> import numpy as np, lnkernel as lnk
        >>> post = lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0], kernel="nngp")
        >>> x = [[-1.0], [0.0], [3.0]]
        >>> bool(np.allclose(np.diagonal(post.covariance(x)), post.variance(x)))
        True
        """
        was_on = x64_is_on()
        return handed_out(self._fit.covariance(self._inputs(x)), was_on)

    def sample(self, key: Key, x: MorePoints, shape: int | tuple[int, ...] = ()) -> Samples:
        r"""Functions drawn from the Gaussian process, at the points x: (\*shape, m) or
        (\*shape, m, k), float64.

        Args:
            key: of `jax.random`, e.g. `jax.random.key(0)`; the same key gives the same functions.
            x: points, (m, d).
            shape: that of the set of functions, or their number; () is one function.

        >>> import jax, lnkernel as lnk
        >>> post = lnk.posterior(lnk.mlp(), [[1.0], [2.0]], [0.0, 1.0], kernel="nngp")
        >>> post.sample(jax.random.key(0), [[1.0], [3.0]], (5,)).shape
        (5, 2)
        """
        was_on = x64_is_on()
        points, sizes = self._inputs(x), as_shape("shape", shape)
        known = as_key("key", key)
        demand_memory(math.prod(sizes), self._fit.data.y.shape[1], "The functions", len(points))
        demand_memory(len(points), 4, "The eigenvectors of the covariance")
        values, vectors = np.linalg.eigh(self._fit.covariance(points))
        root = vectors * np.sqrt(np.maximum(values, 0.0))  # exact zeros come with either sign
        mean = self._fit.mean(self._fit.coefficients, points)
        with jax.enable_x64(True):
            normal = np.asarray(jax.random.normal(known, (*sizes, *mean.shape), jnp.float64))
        return handed_out(self._columns(mean + root @ normal), was_on)

    def log_marginal_likelihood(self) -> float:
        r"""$\log p(y \mid X) = -\frac12 y^T A^{-1} y - \frac12 \log\det A - \frac n2 \log 2\pi$,
        summed over the outputs.

        >>> import math, lnkernel as lnk
        >>> arch = lnk.serial(lnk.Dense(8), lnk.Relu(), lnk.Dense(1, W_std=2**0.5))
        >>> post = lnk.posterior(arch, [[1.0]], [1.0], kernel="nngp")          # A = 1
        >>> round(post.log_marginal_likelihood() + 0.5 + math.log(2 * math.pi) / 2, 12)
        0.0
        """
        y, factor = self._fit.data.y, self._fit.factor
        n, k = y.shape
        misfit = float(np.einsum("ik,ik->", y, self._fit.coefficients))
        return -0.5 * (misfit + k * (factor.log_determinant() + n * math.log(2 * math.pi)))

    def ensemble_variance(self, x: MorePoints) -> Values:
        r"""The variance, over random initialisations, of the output at x (m, d) of infinitely wide
        networks trained to convergence: (m,), float64; the same for every output.

        A trained network is $f(x) = f_0(x) + w\,(y - f_0(X))$ with $w = \Theta(x, X) A^{-1}$, and
        $f_0$ is Gaussian with kernel $K$, so the variance is

            K(x, x) - 2 w K(X, x) + w K(X, X) w^T        (Lee et al. 2019, equation 16).

        For kernel="nngp" only the last layer is trained, $w = K(x, X) A^{-1}$, and without noise
        it is `variance`.

        >>> import lnkernel as lnk
        >>> post = lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0])
        >>> post.ensemble_variance([[2.0], [-1.0]]).round(3).tolist()     # they agree at the data
        [0.0, 0.96]
        """
        return dynamics.ensemble_variance(self._fit, self._fit.factor.solve_roughly, x)

    def ensemble_covariance(self, x: MorePoints) -> Covariance:
        """The covariance of those outputs for all pairs of the points x: (m, m), float64.

            K(x, x') - w K(X, x') - K(x, X) w'^T + w K(X, X) w'^T

        >>> import numpy as np, lnkernel as lnk
        >>> post = lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0])
        >>> x = [[-1.0], [0.0], [3.0]]
        >>> bool(np.allclose(np.diagonal(post.ensemble_covariance(x)), post.ensemble_variance(x)))
        True
        """
        return dynamics.ensemble_covariance(self._fit, self._fit.factor.solve_roughly, x)

    @overload
    def at(self, t: float) -> Stopped: ...

    @overload
    def at(self, t: Sequence[float] | np.ndarray) -> Curve: ...

    def at(self, t: Times) -> Stopped | Curve:
        r"""Networks after gradient flow for a time t, from 0 (untrained) to infinity (converged).

        The loss is $\frac12\sum_i (f(x_i) - y_i)^2$, so that $\dot f = -\Theta\,(f - y)$ at the data:

            mean(x) = k(x, X) A^-1 (1 - exp(-t A)) y.

        For another loss rescale the time: $\frac1n\sum_i (f(x_i) - y_i)^2$ needs n/2 times as long.
        With a list of times the results have one more axis, the first, of its length.

        >>> import math, lnkernel as lnk
        >>> post = lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0])
        >>> post.at(1).mean([[2.0]]).round(3).tolist()
        [0.516]
        >>> post.at([0, 1, math.inf]).mean([[2.0]]).round(3).tolist()
        [[0.0], [0.516], [1.0]]
        """
        if isinstance(t, list | tuple) or np.ndim(t):
            times = np.asarray(as_array("t", t))
            if times.ndim != 1 or not times.size:
                raise InputError(
                    "t", "a time, or a list of times", f"shape {times.shape}", "Write e.g. [1, 10]"
                )
            return Curve(tuple(self._at(each) for each in times))
        return self._at(t)

    def _at(self, t: object) -> Stopped:
        time = _number("t", t, "a time from 0 to infinity")
        if not time >= 0:
            raise InputError("t", "a time from 0 to infinity", repr(t), "Time runs forwards")
        if math.isinf(time):
            return Stopped(self._fit, self._fit.solver.solve, f"{self!r} at t = {time}")
        return self._stopped(gradient_flow(time), f"at t = {time}")

    def after(self, steps: int, learning_rate: Number) -> Stopped:
        r"""Networks after so many steps of gradient descent on $\frac12\sum_i (f(x_i) - y_i)^2$:

            mean(x) = k(x, X) A^-1 (1 - (1 - learning_rate A)^steps) y.

        It converges if the learning rate is below `max_learning_rate`; otherwise this raises. For
        the loss $\frac1n\sum_i (f(x_i) - y_i)^2$ multiply your learning rate by 2/n.

        >>> import lnkernel as lnk
        >>> post = lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0])
        >>> post.after(1000, learning_rate=0.3).mean([[2.0]]).round(3).tolist()
        [1.0]
        """
        if isinstance(steps, bool) or not isinstance(steps, Integral) or steps < 0:
            raise InputError("steps", "an integer, at least 0", repr(steps), "Count whole steps")
        if as_float(steps) is None:
            came = reprlib.repr(steps)
            raise InputError(
                "steps", "at most 1e308 steps", came, "Infinitely many are at(math.inf)"
            )
        rate = _number("learning_rate", learning_rate, "a positive number")
        if not 0 < rate < math.inf:
            raise InputError(
                "learning_rate", "a positive number", repr(learning_rate), "Descend, not ascend"
            )
        if rate >= self.max_learning_rate:
            raise LearningRateError(rate, self.max_learning_rate, len(self._fit.data.x))
        said = f"after {steps} steps of {rate}"
        return self._stopped(gradient_descent(int(steps), rate), said)

    @property
    def max_learning_rate(self) -> float:
        r"""$2/\lambda_{\max}(A)$: gradient descent on $\frac12\sum_i (f(x_i) - y_i)^2$ diverges above.

        >>> import lnkernel as lnk
        >>> arch = lnk.serial(lnk.Dense(8), lnk.Relu(), lnk.Dense(1, W_std=2**0.5))
        >>> lnk.posterior(arch, [[1.0]], [1.0], kernel="nngp").max_learning_rate       # A = 1
        2.0
        """
        return 2 / float(self._fit.eigen.values[-1])

    def _stopped(self, to_eigenvalue: Filter, said: str) -> Stopped:
        eigen = self._fit.eigen
        return Stopped(self._fit, lambda b: eigen.applied(to_eigenvalue, b), f"{self!r} {said}")

    def _inputs(self, x: MorePoints) -> np.ndarray:
        return as_inputs(x, self._fit.data.x.shape[1])

    def _columns(self, values: np.ndarray) -> np.ndarray:
        return values[..., 0] if self._fit.data.one_output else values


def posterior(
    arch: Architecture, X: Points, y: Targets, kernel: str = "ntk", noise: Noise = 0.0
) -> Posterior | TracedPosterior:
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

    Nothing else is added: where float64 cannot tell the Gram matrix from a singular one, a
    `SingularGramError` says so, and equal inputs are named by a `DuplicateInputsError`. The
    matrix is factorised in place, so n points take 8 n² bytes (from 1,000 to 10,000 points up to
    12 n², for a factor in single precision that solves as exactly in less time).

    With a tracer of `jax.grad` in `arch` or in the data, the result has `mean`, `variance`,
    `std` and `log_marginal_likelihood`, and no such checks.

    >>> import numpy as np, lnkernel as lnk
    >>> x = np.linspace(-5, 5, 100)[:, None]
    >>> post = lnk.posterior(lnk.mlp(hidden=2, norm="first"), x, np.sin(x[:, 0]))
    >>> post.mean([[0.5], [1e6]]).round(3).tolist()
    [0.484, -0.974]
    >>> post.std(x[:2]).round(6).tolist()
    [0.0, 0.0]
    >>> noisy = lnk.posterior(lnk.mlp(), [[1.0], [2.0]], [0.0, 1.0], noise=[0.0, 9.0])
    >>> noisy.mean([[1.0]]).round(6).tolist()                # the first target is exact
    [0.0]
    """
    if is_traced(arch, X, y, noise) or inside_jit():
        return traced.posterior(as_architecture(arch), X, y, _known(kernel), noise)
    return concrete_posterior(arch, X, y, kernel, noise)


def concrete_posterior(
    arch: Architecture, X: Points, y: Targets, kernel: str = "ntk", noise: Noise = 0.0
) -> Posterior:
    """`posterior` of plain numbers, outside of the user's own JAX transformations."""
    variance: Noise = noise
    if not isinstance(noise, list | tuple) and np.ndim(noise) == 0:
        variance = _number("noise", noise, "a variance, at least 0")
        if not 0 <= variance < math.inf:
            raise InputError("noise", "a variance, at least 0", repr(noise), "Square a deviation")
    return Posterior(fit(as_architecture(arch), _known(kernel), X, y, variance, mean_first=True))


def _known(kernel: str) -> str:
    if kernel not in KERNELS:
        raise InputError("kernel", '"ntk" or "nngp"', repr(kernel), 'The default is "ntk"')
    return kernel


def _number(name: str, value: object, expected: str) -> float:
    """A plain number out of whatever holds one."""
    if isinstance(value, (np.ndarray, jax.Array)) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(name, expected, repr(value), "Give one number")
    plain = as_float(value)
    if plain is None:
        least = "Give a number in the range of float64, up to 1.8e308"
        raise InputError(name, expected, reprlib.repr(value), least)
    return plain
