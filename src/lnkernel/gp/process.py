r"""`Posterior`: a Gaussian process given data, and the training of infinitely wide networks."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, overload

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.check.arrays import as_array
from lnkernel.check.numbers import as_key, as_shape, demand_static, plain_number, traced_number
from lnkernel.check.plain import as_float
from lnkernel.errors import InputError, LearningRateError, TransformationError
from lnkernel.gp.dynamics import Curve, Stopped
from lnkernel.gp.everywhere import supremum_of_diagonal
from lnkernel.gp.filters import Filter, gradient_descent, gradient_flow
from lnkernel.gp.fit import Fit
from lnkernel.gp.iterative import Iterative
from lnkernel.gp.large_targets import longest
from lnkernel.gp.noise import noise_in_words
from lnkernel.gp.predictor import Predictor
from lnkernel.gp.traced import TracedFit, as_traced, seen_with
from lnkernel.gram.memory import demand_memory
from lnkernel.gram.structure import assemble, dissect
from lnkernel.precision import as_leaf, demand_float64, inside_jit, is_traced
from lnkernel.types import (
    Array,
    Covariance,
    Key,
    MorePoints,
    Number,
    Outputs,
    Samples,
    Scalar,
    Times,
    Values,
)


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    r"""A Gaussian process given data, and at the same time the training of wide networks.

    `posterior` makes it. With $A = k(X, X) + \mathrm{noise}\cdot I$, where $k$ is the NTK $\Theta$ or
    the NNGP kernel $K$:

        mean(x)     = k(x, X) A^-1 y
        variance(x) = k(x, x) - k(x, X) A^-1 k(X, x)

    All numbers are float64. Targets of shape (n, k) are k independent problems with one kernel.
    Every method works inside `jax.jit`, `jax.grad` and `jax.vmap` where 64-bit mode is on, and the
    posterior is a pytree, so that it can be an argument of a program.

    >>> import lnkernel as lnk
    >>> lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0])
    Posterior(kernel='ntk', points=2, dimension=1, outputs=1, noise=0.0)
    """

    _held: Fit | TracedFit

    def __repr__(self) -> str:
        fit = self._held
        shape, count = fit.shape_of_inputs(), np.ndim(fit.targets) - 2
        stack, (n, *one) = shape[:count], shape[count:]
        d = one[0] if len(one) == 1 else tuple(one)
        many = f"stack={tuple(stack)}, " if stack else ""
        # what bounds the error is no part of a program
        iterated = isinstance(fit, Fit) and fit.iterated is not None and not inside_jit()
        near = f", error={self.error:.2g}" if iterated else ""
        return (
            f"Posterior({many}kernel={fit.which!r}, points={n}, dimension={d}, "
            f"outputs={np.shape(fit.targets)[-1]}, noise={noise_in_words(fit.noise)}{near})"
        )

    def __str__(self) -> str:
        fit = self._held
        if not isinstance(fit, Fit) or fit.iterated is None:
            return repr(self)
        return (
            f"{self!r}\n  At every input, however far from the data, the mean is within {self.error:.3g} of the exact "
            f"one: √C·|r|/σ after {fit.iterated.iterations} iterations, in float64."
        )

    @property
    def error(self) -> float:
        r"""How far `mean` is off at most, at every input at once, by what its linear system lacks:
        $\sqrt C\,|r|/\sigma$ with $r = y - A a$, $\sigma^2$ the least noise, and $C = \sup_x \Theta(x, x)$.

        It requires noise, and a network with a finite C. The residual is computed in float64; rounding errors of the
        kernel are not accounted for.

        >>> import numpy as np, lnkernel as lnk
        >>> arch, x = lnk.mlp(norm="first"), np.linspace(-3, 3, 40)[:, None]
        >>> post = lnk.posterior(arch, x, np.sin(x[:, 0]), noise=0.01, tolerance=1e-2, rank=1)
        >>> exact = lnk.posterior(arch, x, np.sin(x[:, 0]), noise=0.01)
        >>> bool(abs(post.mean([[5.0]]) - exact.mean([[5.0]]))[0] <= post.error <= 1e-2)
        True
        """
        fit = self._plain("error")
        least = float(np.min(fit.noise))
        if not least > 0:
            raise InputError(
                "error",
                "a posterior with noise at every point, which bounds the smallest eigenvalue",
                f"noise={noise_in_words(fit.noise)}",
                "lnk.bound(post) has the smallest eigenvalue without noise",
            )
        return math.sqrt(supremum_of_diagonal(fit.arch) / least) * longest(fit.residual)

    def eigenvalue_floor(self) -> float:
        r"""A number that $\lambda_{\min}(A)$ is not below: by a second factorisation, of $A - sI$, and a bound of its
        rounding errors (Rump 2006), or by the noise. It is as rigorous as the kernel's entries, whose error of 2e-15 is
        measured; `bound(post, certify=True)` proves these too.

        >>> import lnkernel as lnk
        >>> post = lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0])
        >>> floor, found = post.eigenvalue_floor(), lnk.bound(post).lambda_min
        >>> 0.999 * found < floor < found
        True
        """
        return self._plain("eigenvalue_floor").eigenvalue_floor

    def log_marginal_likelihood_bounds(self) -> tuple[float, float]:
        r"""Numbers that `log_marginal_likelihood` lies between, of a posterior with tolerance=... as well.

        Of $\hat K \preceq K$ from randomly pivoted Cholesky, $\log\det(\hat K + D) \le \log\det A$, which is at most
        $\sum_i\log(1 + (K - \hat K)_{ii}/D_{ii})$ larger; and with $r = y - Aa$, $y^T A^{-1} y$ lies between
        $a^T(y + r)$ and $|r|^2/\sigma^2$ more.

        >>> import lnkernel as lnk
        >>> post = lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0], noise=0.1, tolerance=1e-3)
        >>> exact = lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0], noise=0.1)
        >>> low, high = post.log_marginal_likelihood_bounds()
        >>> low <= exact.log_marginal_likelihood() <= high
        True
        """
        fit = self._plain("log_marginal_likelihood_bounds")
        if not isinstance(fit.solver, Iterative):
            value = float(self.log_marginal_likelihood())
            return value, value
        n, k = fit.targets.shape
        misfits, volumes = fit.misfit_bounds(), fit.solver.log_determinant_bounds()
        least, most = (
            -0.5 * (misfit + k * (volume + n * math.log(2 * math.pi)))
            for misfit, volume in zip(reversed(misfits), reversed(volumes), strict=True)
        )
        return least, most

    @property
    def _fit(self) -> Fit:
        return self._plain("posterior")

    def _plain(self, what: str) -> Fit:
        """The fit of plain numbers, for what is computed with them only."""
        fit = self._seen_with()
        if not isinstance(fit, Fit):
            raise TransformationError(what)
        return fit

    def _seen_with(self, *values: object) -> Predictor:
        """The fit that the posterior is computed with beside these values. If JAX has put it together from
        plain numbers, they are checked when first needed, and kept."""
        fit = seen_with(self._held, *values)
        if isinstance(fit, Fit) and fit is not self._held:
            object.__setattr__(self, "_held", fit)
        return fit

    def mean(self, x: MorePoints) -> Outputs:
        r"""$k(x, X)\,A^{-1} y$ at the points x (m, d): (m,) or, for several outputs, (m, k); float64.

        For the NTK without noise it is the mean, over random initialisations, of the outputs of
        infinitely wide networks trained to convergence by gradient descent on the squared error.

        >>> import lnkernel as lnk
        >>> post = lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0])
        >>> post.mean([[2.0], [1e9]]).round(3).tolist()      # bounded, by LayerNorm
        [1.0, 1.038]
        """
        fit = self._seen_with(x)
        return fit.columns(fit.predictions(fit.inputs(x)))

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
        fit = self._seen_with(x)
        return fit.variance(fit.inputs(x))

    def std(self, x: MorePoints) -> Values:
        """The square root of `variance`: (m,), float64.

        >>> import lnkernel as lnk
        >>> post = lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0], kernel="nngp")
        >>> abs(post.std([[0.0]]) ** 2 - post.variance([[0.0]])).round(12).tolist()
        [0.0]
        """
        variance = self.variance(x)
        if isinstance(variance, np.ndarray):
            return np.sqrt(variance)
        some = (
            variance > 0
        )  # where it is 0 it has a kink; the mean of its slopes on both sides is 0
        root = jnp.where(some, jnp.sqrt(jnp.where(some, variance, 1.0)), 0.0)
        return jnp.where(jnp.isnan(variance), variance, root)  # a failure is no certainty

    def covariance(self, x: MorePoints) -> Covariance:
        r"""$k(x, x') - k(x, X)\,A^{-1} k(X, x')$ for all pairs of the points x: (m, m), float64.

        >>> import numpy as np, lnkernel as lnk
        >>> post = lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0], kernel="nngp")
        >>> x = [[-1.0], [0.0], [3.0]]
        >>> bool(np.allclose(np.diagonal(post.covariance(x)), post.variance(x)))
        True
        """
        fit = self._seen_with(x)
        return fit.covariance(fit.inputs(x))

    def sample(self, key: Key, x: MorePoints, shape: int | tuple[int, ...] = ()) -> Samples:
        r"""Functions drawn from the Gaussian process, at the points x: (\*shape, m) or
        (\*shape, m, k), float64.

        Args:
            key: a key of `jax.random`, e.g. `jax.random.key(0)`; the same key gives the same functions.
            x: points, (m, d).
            shape: the shape of the set of functions, or their number; () is one function.

        >>> import jax, lnkernel as lnk
        >>> post = lnk.posterior(lnk.mlp(), [[1.0], [2.0]], [0.0, 1.0], kernel="nngp")
        >>> post.sample(jax.random.key(0), [[1.0], [3.0]], (5,)).shape
        (5, 2)
        """
        sizes, known = as_shape("shape", shape), as_key("key", key)
        fit = self._seen_with(x, key)
        points = fit.inputs(x)
        functions = math.prod(sizes)
        demand_memory(
            functions,
            fit.targets.shape[1],
            f"A set of {functions} functions at {len(points)} points",
            len(points),
            remedy="Draw fewer at a time",
        )
        root = fit.covariance_root(points)
        mean = fit.predictions(points)
        with jax.enable_x64(True):
            normal: Array = jax.random.normal(known, (*sizes, *mean.shape), jnp.float64)
        if isinstance(fit, Fit):
            normal = np.asarray(normal)
        return fit.columns(mean + root @ normal)

    def log_marginal_likelihood(self) -> float | Scalar:
        r"""$\log p(y \mid X) = -\frac12 y^T A^{-1} y - \frac12 \log\det A - \frac n2 \log 2\pi$,
        summed over the outputs.

        >>> import math, lnkernel as lnk
        >>> arch = lnk.serial(lnk.Dense(8), lnk.Relu(), lnk.Dense(1, W_std=2**0.5))
        >>> post = lnk.posterior(arch, [[1.0]], [1.0], kernel="nngp")          # A = 1
        >>> round(post.log_marginal_likelihood() + 0.5 + math.log(2 * math.pi) / 2, 12)
        0.0
        """
        fit = self._seen_with()
        n, k = fit.targets.shape
        volume = fit.log_determinant() + n * math.log(2 * math.pi)
        return -0.5 * (fit.misfit() + k * volume)

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
        fit = self._seen_with(x)
        return fit.ensemble_variance(fit.solve_roughly, fit.inputs(x))

    def ensemble_covariance(self, x: MorePoints) -> Covariance:
        """The covariance of those outputs for all pairs of the points x: (m, m), float64.

            K(x, x') - w K(X, x') - K(x, X) w'^T + w K(X, X) w'^T

        >>> import numpy as np, lnkernel as lnk
        >>> post = lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0])
        >>> x = [[-1.0], [0.0], [3.0]]
        >>> bool(np.allclose(np.diagonal(post.ensemble_covariance(x)), post.ensemble_variance(x)))
        True
        """
        fit = self._seen_with(x)
        return fit.ensemble_covariance(fit.solve_roughly, fit.inputs(x))

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
        if isinstance(t, Iterator):
            came = f"a {type(t).__name__}"
            raise InputError("t", "a time, or a list of times", came, "Write list(...) around it")
        if isinstance(t, list | tuple) or np.ndim(t):
            times = as_array("t", t) if is_traced(t) else np.asarray(as_array("t", t))
            if times.ndim != 1 or not times.size:
                raise InputError(
                    "t", "a time, or a list of times", f"shape {times.shape}", "Write e.g. [1, 10]"
                )
            fit, said = self._seen_with(), repr(self)  # once for all times
            return Curve(tuple(self._at(each, fit, said) for each in times))
        return self._at(t, self._seen_with(), repr(self))

    def _at(self, t: Any, fit: Predictor, said: str) -> Stopped:
        expected = "a time from 0 to infinity"
        if is_traced(t):
            chosen = gradient_flow(traced_number("t", t, expected))
            return Stopped(fit, chosen, f"{said} at a time that is traced")
        time = plain_number("t", t, expected)
        if not time >= 0:
            raise InputError(
                "t", expected, repr(time), "Give 0 for the start of training, or a later time"
            )
        flow = None if math.isinf(time) else gradient_flow(time)
        return Stopped(fit, flow, f"{said} at t = {time}")

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
        demand_static("steps", steps)
        if isinstance(steps, bool) or not isinstance(steps, Integral) or steps < 0:
            raise InputError("steps", "an integer, at least 0", repr(steps), "Count whole steps")
        if as_float(steps) is None:
            came = reprlib.repr(steps)
            raise InputError(
                "steps", "at most 1e308 steps", came, "Infinitely many are at(math.inf)"
            )
        if is_traced(learning_rate):
            traced = traced_number("learning_rate", learning_rate, "a positive number")
            return self._stop(gradient_descent(int(steps), traced), f"after {steps} steps")
        rate = plain_number("learning_rate", learning_rate, "a positive number")
        if not 0 < rate < math.inf:
            raise InputError(
                "learning_rate",
                "a positive number",
                repr(learning_rate),
                "Gradient descent takes a finite rate above 0, e.g. 0.1",
            )
        most = self.max_learning_rate
        if not is_traced(most) and rate >= most:
            raise LearningRateError(rate, float(most), len(self._fit.data.x))
        said = f"after {steps} steps of {rate}"
        return self._stop(gradient_descent(int(steps), rate), said)

    @property
    def max_learning_rate(self) -> float | Scalar:
        r"""$2/\lambda_{\max}(A)$: gradient descent on $\frac12\sum_i (f(x_i) - y_i)^2$ diverges above.

        >>> import lnkernel as lnk
        >>> arch = lnk.serial(lnk.Dense(8), lnk.Relu(), lnk.Dense(1, W_std=2**0.5))
        >>> lnk.posterior(arch, [[1.0]], [1.0], kernel="nngp").max_learning_rate       # A = 1
        2.0
        """
        return 2 / self._seen_with().largest_eigenvalue()

    def _stop(self, chosen: Filter | None, said: str) -> Stopped:
        return Stopped(self._seen_with(), chosen, f"{self!r} {said}")


def _flatten(post: Posterior) -> tuple[tuple[Any, ...], Any]:
    fit = as_traced(post._held) if isinstance(post._held, Fit) else post._held
    structure, varying = dissect(fit.arch)
    leaves = (list(map(as_leaf, varying)), fit.x, fit.y, fit.noise, fit.both, fit.diagonal)
    return leaves, (structure, fit.which, fit.one_output)


def _unflatten(fixed: Any, leaves: Any) -> Posterior:
    demand_float64(leaves)
    structure, which, one_output = fixed
    varying, x, y, *rest = leaves
    return Posterior(TracedFit(assemble(structure, varying), which, x, y, one_output, *rest))


jax.tree_util.register_pytree_node(Posterior, _flatten, _unflatten)
