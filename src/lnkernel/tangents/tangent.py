r"""Any network through its tangent: $f(\theta_0) + J\,(\theta - \theta_0)$ and all that follows from it."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
from jax.typing import DTypeLike

from lnkernel.check.numbers import as_number, as_seed, positive_integer
from lnkernel.errors import InputError
from lnkernel.tangents.anisotropy import Anisotropy, anisotropy_of
from lnkernel.tangents.differential import Differential
from lnkernel.tangents.eigen import spectrum_of
from lnkernel.tangents.ella import as_pair, as_subsample, directions, nystrom_laplace
from lnkernel.tangents.laplace import Laplace, exact_laplace
from lnkernel.tangents.likelihoods import as_likelihood
from lnkernel.tangents.linear import Linearized
from lnkernel.tangents.local_structure import LocalStructure, local_of
from lnkernel.tangents.model import Tree
from lnkernel.tangents.read import read_model
from lnkernel.tangents.ridge import FineTuned, Ridge, ridge_of
from lnkernel.tangents.selection import Wrt
from lnkernel.tangents.spectrum import Spectrum
from lnkernel.types import Inputs, Number, Points, Targets

BATCH = 256  # inputs at a time, in products


class Tangent(Differential):
    r"""A network to first order in its chosen parameters, as `tangent` makes it.

    Rows are inputs, or pairs of an input and an output: of one output n rows, of k outputs n · k.
    The loss is half the SUM of the squared errors, as in `Posterior`.

    >>> import numpy as np, lnkernel as lnk
    >>> x = np.linspace(-1, 1, 6)[:, None]
    >>> t = lnk.tangent(lnk.finite.network(lnk.mlp(hidden=1), in_dim=1, width=32, rngs=0))
    >>> t
    Tangent(parameters=97, arrays=4, dtype=float32)
    >>> bool(np.allclose(t.matvec(x)(np.ones(6)), t.gram(x).sum(1)))
    True
    """

    def __repr__(self) -> str:
        return f"Tangent(parameters={self.size}, arrays={len(self.paths)}, dtype={self.dtype})"

    def spectrum(
        self,
        x: Inputs,
        k: int | None = None,
        *,
        method: str = "auto",
        outputs: str = "full",
        landmarks: int | None = None,
        seed: int = 0,
    ) -> Spectrum:
        r"""The eigenvalues and eigenvectors of K on the inputs x, the largest first.

        Args:
            x: inputs, (n, ...).
            k: how many; by default all by "dense", and 20 otherwise.
            method: "dense" makes the matrix, of 4,000 rows at most if left to "auto". "lanczos" needs
                products with K only. "nystrom" makes the matrix of some of the inputs (`landmarks`)
                and extends its eigenvectors to all, $\lambda \approx \frac nm \lambda_m$; their errors,
                the `residuals`, are those on all inputs.
            outputs: "full" has a row for every input and output, "mean" one for every input, of the
                mean of $K_{oo}$ over the outputs.
            landmarks: the number of inputs for "nystrom".
            seed: for the start of Lanczos and the choice of inputs.

        >>> import numpy as np, lnkernel as lnk
        >>> x = np.linspace(-1, 1, 6)[:, None]
        >>> t = lnk.tangent(lnk.finite.network(lnk.mlp(hidden=1), in_dim=1, width=32, rngs=0))
        >>> s, few = t.spectrum(x), t.spectrum(x, 2, method="lanczos")
        >>> bool(np.allclose(s.values[:2], few.values, rtol=1e-5))
        True
        >>> bool(np.isclose(s.alignment(s.vectors[:, 0]), s.values[0]))
        True
        """
        return spectrum_of(self, x, k, method, outputs, landmarks, seed)

    @property
    def linear(self) -> Linearized:
        r"""$\bar f(\theta, x) = f(\theta_0, x) + J(x)\,(\theta - \theta_0)$, the linearized model.

        >>> import jax, numpy as np, optax, lnkernel as lnk
        >>> x = np.linspace(-1, 1, 6)[:, None]
        >>> t = lnk.tangent(lnk.finite.network(lnk.mlp(hidden=1), in_dim=1, width=32, rngs=0))
        >>> bool(np.allclose(t.linear(t.params, x), t.value(x)))
        True
        >>> module = t.linear.module()
        >>> result = lnk.finite.train(module, x, np.sin(x[:, 0]), optax.sgd(1e-2), steps=100)
        >>> after = t.ridge(x, np.sin(x[:, 0])).after(100, 1e-2)
        >>> bool(np.allclose(t.linear(module.params, x), after.mean(x), atol=1e-5))
        True
        """
        return Linearized(self, with_start=True)

    @property
    def linear_without_start(self) -> Linearized:
        r"""$J(x)\,(\theta - \theta_0)$: the linearized model that starts at the function 0.

        >>> import jax.numpy as jnp, lnkernel as lnk
        >>> t = lnk.tangent(lambda w, x: x @ w, jnp.array([1.0, 2.0]))
        >>> t.linear_without_start(jnp.array([2.0, 2.0]), [[1.0, 0.0], [5.0, 1.0]])
        array([1., 5.], dtype=float32)
        """
        return Linearized(self, with_start=False)

    def ridge(self, X: Inputs, y: Targets, strength: Number = 0.0) -> Ridge:
        r"""What fine-tuning from θ₀ converges to, linearized: the minimum of

            1/2 Σ (f̄(x_i) - y_i)² + strength/2 |θ - θ₀|²,    θ - θ₀ = Jᵀ (K + strength)⁻¹ (y - f(X)).

        The result has `mean(x)`, `params`, `change` and `distance`, and `at(time)` and
        `after(steps, learning_rate)` for training that stops, with the conventions of `posterior`,
        where `noise` is what `strength` is here.

        Args:
            X: inputs, (n, ...).
            y: targets, (n,) or, for k outputs, (n, k).
            strength: the weight of the ridge term; nothing else is added to K.

        >>> import jax.numpy as jnp, lnkernel as lnk
        >>> t = lnk.tangent(lambda w, x: x @ w, jnp.array([0.0, 0.0]))
        >>> fit = t.ridge([[1.0, 0.0]], [2.0], strength=1.0)           # 2 · 1/(1 + 1)
        >>> fit.params, fit.mean([[3.0, 5.0]])
        (Array([1., 0.], dtype=float32), array([3.]))
        >>> fit.after(1, learning_rate=0.25).params                    # one step: 0.25 · 2
        Array([0.5, 0. ], dtype=float32)
        """
        return ridge_of(self, X, y, strength)

    def at(self, X: Inputs, y: Targets, t: float, strength: Number = 0.0) -> FineTuned:
        r"""The linearized model after gradient flow for a time t: `ridge(X, y, strength).at(t)`.

        For several times, ask the `ridge` for each: it computes the kernel once.

        >>> import math, jax.numpy as jnp, lnkernel as lnk
        >>> t = lnk.tangent(lambda w, x: x @ w, jnp.array([0.0, 0.0]))
        >>> t.at([[1.0, 0.0]], [2.0], t=math.log(2)).mean([[1.0, 0.0]])       # 2 (1 - exp(-t))
        array([1.])
        """
        return self.ridge(X, y, strength).at(t)

    def after(
        self,
        X: Inputs,
        y: Targets,
        steps: int,
        learning_rate: Number,
        strength: Number = 0.0,
    ) -> FineTuned:
        r"""The linearized model after so many steps of gradient descent on half the sum of squares and
        the ridge term: `ridge(X, y, strength).after(steps, learning_rate)`.

        >>> import jax.numpy as jnp, lnkernel as lnk
        >>> t = lnk.tangent(lambda w, x: x @ w, jnp.array([0.0, 0.0]))
        >>> t.after([[1.0, 0.0]], [2.0], steps=2, learning_rate=0.5).mean([[1.0, 0.0]])
        array([1.5])
        """
        return self.ridge(X, y, strength).after(steps, learning_rate)

    def laplace(
        self,
        X: Inputs,
        y: Targets,
        likelihood: str = "gaussian",
        prior_precision: Number | None = None,
        rank: int | None = None,
        subsample: int | None = None,
        *,
        noise: Number = 1.0,
        prior_mean: float = 0.0,
        validation: tuple[Inputs, Targets] | None = None,
        check_every: int = 1000,
        seed: int = 0,
    ) -> Laplace:
        r"""Laplace's approximation of the linearized model around θ₀, the mode of its posterior:

            f(x) ~ N(f(θ₀, x), J (Jᵀ Λ J + τ)⁻¹ Jᵀ).

        The result has `mean(x)`, `covariance(x)`, `probabilities(x)`, `log_marginal_likelihood()`
        and `prior_precision`.

        Args:
            X: training inputs, (n, ...).
            y: targets, (n,) or (n, k); for "categorical" the classes, integers (n,).
            likelihood: "gaussian", with the variance `noise`, or "categorical", by softmax.
            prior_precision: τ of the prior N(prior_mean, 1/τ) of every chosen parameter; None takes
                the one with the largest marginal likelihood.
            rank: None is exact, by the kernel of all n · k training outputs. A number of directions
                is ELLA, whose covariance is below the exact one in the order of matrices. There are
                fewer where the kernel of the subsample has no more eigenvalues above rounding.
            subsample: for ELLA the number of training inputs that the directions come from, one output
                each; by default ten for every direction, as far as there are so many.
            noise: the variance of the targets, for "gaussian".
            prior_mean: the prior mean of every parameter.
            validation: inputs and targets that tell ELLA when to stop taking in training inputs:
                every `check_every` of them, and where −log p is least.
            seed: for the choice and the order of the inputs.

        >>> import numpy as np, lnkernel as lnk
        >>> x = np.linspace(-1, 1, 8)[:, None]
        >>> t = lnk.tangent(lnk.finite.network(lnk.mlp(hidden=1), in_dim=1, width=32, rngs=0))
        >>> exact = t.laplace(x, np.sin(x[:, 0]), prior_precision=1.0, noise=0.1)
        >>> few = t.laplace(x, np.sin(x[:, 0]), prior_precision=1.0, noise=0.1, rank=3)
        >>> exact.covariance(x).shape, bool((few.covariance(x) < exact.covariance(x)).all())
        ((8, 1, 1), True)
        """
        law = as_likelihood(likelihood, noise)
        tau = None if prior_precision is None else as_number(prior_precision)
        if prior_precision is not None and (tau is None or not 0 < tau < math.inf):
            raise InputError(
                "prior_precision",
                "a positive number, or None",
                repr(prior_precision),
                "Write 1/variance",
            )
        mean = as_number(prior_mean)
        if mean is None or not math.isfinite(mean):
            raise InputError(
                "prior_mean", "a number", repr(prior_mean), "It is the mean of every parameter"
            )
        with self.open(("X", X)) as (function, (points,)):
            k = function.outputs
        targets = law.as_targets(y, len(points), k)
        if rank is None:
            if subsample is not None or validation is not None:
                raise InputError(
                    "rank", "a number with subsample or validation", "None", "ELLA has a rank"
                )
            return exact_laplace(self, points, targets, law, tau, mean)
        size = positive_integer("rank", rank)
        some = as_subsample(subsample, size, len(points))
        held = None
        if validation is not None:
            x, labels = as_pair("validation", validation)
            with self.open(("validation", x)) as (_, (inputs,)):
                held = inputs, law.as_targets(labels, len(inputs), k)
        every = positive_integer("check_every", check_every)
        basis = directions(self, points, targets, k, size, some, as_seed(seed))
        return nystrom_laplace(self, points, targets, law, tau, mean, basis, held, every, seed)

    def anisotropy(self, x0: Any, k: int | None = None, *, method: str = "auto") -> Anisotropy:
        r"""Neural anisotropy directions: the directions v of the input at x0 in which the gradient
        $g(x) = \partial f/\partial\theta$ changes most, by $|\partial g/\partial x\;v|^2$, summed
        over the outputs.

        Args:
            x0: one input, without an axis for n.
            k, method: as in `spectrum`, of a matrix with a row for every coordinate of the input.

        At a kink of the activations (ReLU without bias at 0) the derivative is the one JAX has there.

        >>> import jax.numpy as jnp, lnkernel as lnk
        >>> t = lnk.tangent(lambda w, x: x @ (jnp.array([3.0, 1.0]) * w), jnp.ones(2))
        >>> t.anisotropy([0.0, 0.0]).values                            # the gradient is (3 x, x')
        array([9., 1.])
        """
        return anisotropy_of(self, x0, k, method)

    def local(self, x: Points, *, output: int | None = None) -> LocalStructure:
        r"""The kernel near its diagonal: $a = |g|$, $D = G^T g$ and $H = \tfrac12 G^T G$ at every input,
        with the gradient $g = \nabla_\theta f(x)$ and $G = \partial g/\partial x$.

        The result has these, and from them `cauchy(u)`, the cosine of the gradients at x and x + u;
        `length(c_inf)`, the correlation length; `min_cosine`; and `mag_ma` (Castiglione, Buckley and
        Simpson 2025). For networks with smooth activations: at a kink the gradient jumps, and no
        derivative knows that.

        Args:
            x: inputs, (n, d).
            output: which one, of several.

        >>> import jax.numpy as jnp, lnkernel as lnk
        >>> def f(w, x):
        ...     return w[0] + w[1] * x[:, 0]                           # the gradient is (1, x)
        >>> t = lnk.tangent(f, jnp.ones(2), dtype=jnp.float64)
        >>> here = t.local([[0.0], [1.0]])
        >>> (here.a**2).round(6), here.D[:, 0], here.H[:, 0, 0]
        (array([1., 2.]), array([0., 1.]), array([0.5, 0.5]))
        >>> here.cauchy([0.1]).round(4), t.cosine([[0.0], [0.1]])[0, 1].round(4)
        (array([0.995 , 0.9976]), np.float64(0.995))
        >>> here.length().round(3), here.min_cosine.round(3)[1]
        (array([1.414, 2.236]), np.float64(-0.333))
        """
        return local_of(self, x, output)


def tangent(
    model: Any,
    params: Tree | None = None,
    wrt: Wrt = None,
    *,
    dtype: DTypeLike | None = None,
    batch_size: int = BATCH,
) -> Tangent:
    r"""Any network through its derivative $J = \partial f/\partial\theta$ at the parameters that it has.

    Args:
        model: a `flax.nnx.Module`, a `flax.linen.Module`, or a function f(params, x). It maps inputs
            (n, ...) to outputs (n, k) or (n,), each input on its own: BatchNorm and Dropout in
            training mode are refused; call `model.eval()` first.
        params: the parameters of a function, the variables of a Linen module (what `model.init`
            made). Not needed for a module of NNX, whose own they are; another state of it is taken
            instead.
        wrt: which parameters. A filter of NNX, such as `nnx.LoRAParam`; a predicate on the path,
            such as `lambda path: path[-1] == "kernel"`; a path, such as "layers/0" or
            ("layers", 0), with all beneath it; or a list of paths. By default every `nnx.Param`,
            all of "params", or all floating-point arrays.
        dtype: jnp.float64 converts the parameters first, and all is computed in float64. By default
            all is computed in the precision of the parameters, whatever JAX's setting: the result is
            the kernel of the network as it is. Linear algebra behind it is always in float64. A
            module that was told its own `dtype` computes in that one.
        batch_size: inputs at a time in products; their activations are what needs memory.

    >>> import jax.numpy as jnp, lnkernel as lnk
    >>> t = lnk.tangent(lambda w, x: x @ w, jnp.array([1.0, 2.0]))
    >>> t.gram([[1.0, 0.0], [1.0, 1.0]])                     # x·x' of a linear model
    array([[1., 1.],
           [1., 2.]], dtype=float32)
    """
    return make_tangent(model, params, wrt, dtype, batch_size, "model")


def make_tangent(
    model: Any, params: Any, wrt: Wrt, dtype: DTypeLike | None, batch_size: int, name: str
) -> Tangent:
    """`tangent`, with the name that messages have for the model."""
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise InputError("dtype", "float32 or float64", repr(dtype), "Write dtype=jnp.float64")
    wide = dtype is not None and np.dtype(dtype) == np.float64
    leaves = jax.tree.leaves(params)
    with jax.enable_x64(wide or any(getattr(leaf, "dtype", None) == np.float64 for leaf in leaves)):
        read = read_model(model, params, wrt, dtype, name)
    return Tangent(read, positive_integer("batch_size", batch_size), name)
