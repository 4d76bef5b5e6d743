"""neural-tangents' `predict`, as far as `lnkernel.posterior` says the same."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

from lnkernel.errors import InputError, missing_layer
from lnkernel.gp.posterior import Posterior, posterior
from lnkernel.gram.kernel import Kernel
from lnkernel.stax.kernel import names_of
from lnkernel.stax.triple import Layer
from lnkernel.types import Array, MorePoints, Points, Targets

KERNELS = ("nngp", "ntk")  # in the order of the namedtuple for get=None
IN_OTHER_WORDS = {
    "gp_inference": "lnkernel.posterior(arch, X, y, kernel, noise): its mean(x), covariance(x)",
    "gradient_descent": "lnkernel.finite.train_ensemble(arch, X, y, optimizer=...), of finite width",
    "gradient_descent_mse": "lnkernel.posterior(arch, X, y), with at(t) or after(steps, rate)",
    "max_learning_rate": "lnkernel.posterior(arch, X, y).max_learning_rate",
    "ODEState": "lnkernel.finite.train_ensemble(arch, X, y, optimizer=...), of finite width",
}


class Gaussian(NamedTuple):
    """A prediction with `compute_cov=True`: mean (m, k) and covariance (m, m) of every output."""

    mean: Float64[Array, "*t m"] | Float64[Array, "*t m k"]
    covariance: Float64[Array, "*t m m"]


Times = float | Float[Array, "*t"] | ArrayLike
Prediction = Float64[Array, "*t m"] | Float64[Array, "*t m k"] | Gaussian


def gradient_descent_mse_ensemble(
    kernel_fn: Callable[..., Any],
    x_train: Points,
    y_train: Targets,
    learning_rate: float = 1.0,
    diag_reg: float = 0.0,
    diag_reg_absolute_scale: bool = False,
    trace_axes: tuple[int, ...] = (-1,),
) -> Callable[..., Any]:
    r"""Predictions of infinitely wide networks trained on the squared error, by `lnkernel.posterior`.

    Args:
        kernel_fn: the `kernel_fn` of a network of `stax`.
        x_train, y_train: the data, (n, d) and (n, k).
        learning_rate: by which times are multiplied.
        diag_reg: added to the diagonal of the Gram matrix, times its mean.
        diag_reg_absolute_scale: whether it is added as it is, as `noise` of `lnkernel.posterior`.
        trace_axes: (-1,), the axis of the outputs, which have one kernel in common.

    The result is `predict_fn(t=None, x_test=None, get=None, compute_cov=False)`, which gives the
    mean (m, k) at the points x_test (m, d), float64:

    - `t` is the time of gradient flow on $\frac{1}{2nk}\sum (f(x_i) - y_i)^2$, one or an array of
      several; None means convergence.
    - `x_test`: None means x_train, and is for diag_reg=0.
    - `get` is "ntk", "nngp" or a tuple of these, which gives a namedtuple; None means both.
    - `compute_cov` gives a `Gaussian`: with the mean the covariance (m, m), for "ntk" that of
      trained networks over their random starts, for "nngp" that of the Bayesian network (at a
      time `t` that of networks of which the last layer is trained, for diag_reg=0).

    >>> from lnkernel import stax
    >>> layer = stax.serial(stax.Dense(64, b_std=1.0), stax.LayerNorm(), stax.Relu(), stax.Dense(1))
    >>> predict_fn = stax.predict.gradient_descent_mse_ensemble(
    ...     layer.kernel_fn, [[1.0], [2.0]], [[0.0], [1.0]]
    ... )
    >>> predict_fn(x_test=[[2.0], [1e9]], get="ntk").round(3).tolist()
    [[1.0], [1.36]]
    """
    layer = getattr(kernel_fn, "__self__", None)
    if not isinstance(layer, Layer):
        raise InputError(
            "kernel_fn",
            "the kernel_fn of a network of lnkernel.stax",
            repr(kernel_fn),
            "Take the third of init_fn, apply_fn, kernel_fn = stax.serial(...)",
        )
    if tuple(trace_axes) not in ((-1,), (1,)):
        raise InputError(
            "trace_axes",
            "(-1,), because the k outputs have one kernel (n, n) in common",
            repr(trace_axes),
            "Omit it",
        )

    @cache
    def fitted(which: str) -> Posterior:
        arch = layer.stack.arch_with_ntk if which == "ntk" else layer.arch
        mean = 1.0 if diag_reg_absolute_scale else np.mean(Kernel(arch, (which,)).diagonal(x_train))
        return posterior(arch, x_train, y_train, which, diag_reg * float(mean))

    def predict_fn(
        t: Times | None = None,
        x_test: MorePoints | None = None,
        get: str | tuple[str, ...] | None = None,
        compute_cov: bool = False,
    ) -> Prediction | tuple[Prediction, ...]:
        names = names_of(KERNELS if get is None else get, KERNELS)
        if x_test is None and diag_reg:
            raise InputError(
                "x_test", "points, because diag_reg is not 0", "None", "Give x_test=x_train"
            )
        if compute_cov and diag_reg and t is not None and "nngp" in names:
            raise InputError(
                "compute_cov",
                'False for get="nngp" at a time t with diag_reg, which is no covariance',
                "True",
                'Take t=None, diag_reg=0, or get="ntk"',
            )
        points = x_train if x_test is None else x_test
        rate = learning_rate / np.size(y_train)
        made = [_predict(fitted(name), name, t, rate, points, compute_cov) for name in names]
        if isinstance(get, str):
            return made[0]
        return namedtuple("Gaussians", names)(*made)

    return predict_fn


def _predict(
    post: Posterior, which: str, t: Times | None, rate: float, x: MorePoints, compute_cov: bool
) -> Prediction:
    """The mean, and the covariance if asked for; for an array of times stacked in its shape."""
    if t is None:
        spread = post.covariance if which == "nngp" else post.ensemble_covariance
        return Gaussian(post.mean(x), spread(x)) if compute_cov else post.mean(x)
    times = np.asarray(t, float)
    stopped = [post.at(time) for time in rate * times.ravel()]

    def stacked(arrays: list[Any]) -> Any:
        return np.stack(arrays).reshape(*times.shape, *arrays[0].shape)

    mean = stacked([one.mean(x) for one in stopped])
    if not compute_cov:
        return mean
    return Gaussian(mean, stacked([one.ensemble_covariance(x) for one in stopped]))


def __getattr__(name: str) -> Any:
    if name in IN_OTHER_WORDS:
        reason, remedy = (
            "this library does the same by other functions",
            f"Use {IN_OTHER_WORDS[name]}",
        )
        raise missing_layer(name, reason, remedy, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
