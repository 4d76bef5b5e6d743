"""The Flax modules that Flax itself does not have: what a twin is made of besides its own layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from lnkernel.arch import Hermite, Piecewise, Smooth
from lnkernel.evaluate.float64.functions import function_of
from lnkernel.tangents.structure import register_linear, register_sum

WIDEST_POWER = 120  # 2^±120 is a normal number in float32


class NTKLinear(nnx.Module):
    r"""$h = \frac{W_{std}}{\sqrt{n_{in}}}\, W a + b_{std}\, b$ with standard normal parameters.

    Without `use_bias` there is no $b$.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        W_std: Any,
        b_std: Any,
        use_bias: bool,
        dtype: DTypeLike,
        rngs: nnx.Rngs,
    ):
        normal = jax.random.normal
        self.kernel = nnx.Param(normal(rngs.params(), (in_features, out_features), dtype))
        self.bias: nnx.Param[jax.Array] | None = (
            nnx.Param(normal(rngs.params(), (out_features,), dtype)) if use_bias else nnx.data(None)
        )
        self.in_features, self.out_features = in_features, out_features
        self.W_std, self.b_std = W_std, b_std

    def __call__(self, x: Float[Array, "n inputs"]) -> Float[Array, "n outputs"]:
        h = self.W_std / math.sqrt(self.in_features) * (x @ self.kernel[...])
        return h if self.bias is None else h + self.b_std * self.bias[...]


register_linear(NTKLinear, lambda layer: (layer.W_std / math.sqrt(layer.in_features), layer.b_std))


class HomogeneousActivation(nnx.Module):
    r"""$\phi(u) = a\, u_+^p + b\, (-u)_+^p$, zero with derivative zero at zero.

    The derivative is finite everywhere, also for degrees below 1, where it has no limit at zero.
    """

    def __init__(self, degree: float, a: Any, b: Any):
        self.degree, self.a, self.b = degree, a, b

    def __call__(self, u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return self.a * _rectified_power(u, self.degree) + self.b * _rectified_power(
            -u, self.degree
        )


class ScaledBy(nnx.Module):
    """Every coordinate times one number, which is not trained."""

    def __init__(self, factor: Any):
        self.factor = factor

    def __call__(self, u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return self.factor * u


class ShiftedBy(nnx.Module):
    """Every coordinate plus one number, which is not trained."""

    def __init__(self, offset: Any):
        self.offset = offset

    def __call__(self, u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return u + self.offset


class LeakyReluActivation(nnx.Module):
    r"""$\phi(u) = \max(u, 0) + \mathrm{slope} \cdot \min(u, 0)$, with derivative zero at zero."""

    def __init__(self, slope: Any):
        self.slope = slope

    def __call__(self, u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return jax.nn.relu(u) - self.slope * jax.nn.relu(-u)


class SmoothActivation(nnx.Module):
    """An activation that is analytic but for kinks, as the function that the kernels are those of."""

    def __init__(self, layer: Smooth | Piecewise):
        self.layer = nnx.static(layer)

    def __call__(self, u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return function_of(self.layer)(u)


class StepActivation(nnx.Module):
    """1 for u > 0, and 0 otherwise."""

    def __call__(self, u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return jnp.where(u > 0, 1.0, 0.0).astype(u.dtype)


class PolynomialActivation(nnx.Module):
    r"""$c_0 + c_1 u + \dots + c_k u^k$."""

    def __init__(self, coefficients: tuple[Any, ...]):
        self.coefficients = nnx.static(coefficients)

    def __call__(self, u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return _horner(self.coefficients, u)


class HermiteActivation(nnx.Module):
    r"""$\mathit{He}_n(u)/\sqrt{n!}$."""

    def __init__(self, layer: Hermite):
        self.layer = nnx.static(layer)

    def __call__(self, u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return _horner(self.layer.integers, u) / math.sqrt(math.factorial(self.layer.degree))


def _horner(coefficients: tuple[Any, ...], u: Array) -> Array:
    total = jnp.zeros_like(u)
    for c in reversed(coefficients):
        total = total * u + c
    return total


class GroupRMSNorm(nnx.Module):
    r"""$\hat u_i = u_i/\sqrt{\mathrm{mean}(u^2)}$ over groups of features, then scale and bias."""

    def __init__(
        self,
        num_features: int,
        group_size: int,
        *,
        use_scale: bool,
        use_bias: bool,
        dtype: DTypeLike,
    ):
        self.group_size = group_size
        self.scale: nnx.Param[jax.Array] | None = (
            nnx.Param(jnp.ones(num_features, dtype)) if use_scale else nnx.data(None)
        )
        self.bias: nnx.Param[jax.Array] | None = (
            nnx.Param(jnp.zeros(num_features, dtype)) if use_bias else nnx.data(None)
        )

    def __call__(self, u: Float[Array, "n features"]) -> Float[Array, "n features"]:
        groups = u.reshape(len(u), -1, self.group_size)
        unit = groups * jax.lax.rsqrt(jnp.mean(groups**2, -1, keepdims=True))
        out = unit.reshape(u.shape)
        out = out if self.scale is None else out * self.scale[...]
        return out if self.bias is None else out + self.bias[...]


class ExactNorm(nnx.Module):
    """A normalisation without epsilon, where it has a meaning; zero (or the bias) elsewhere.

    Where the features of a group are all equal (all zero, if their mean stays) there is nothing to
    normalise: Flax divides 0 by 0 there, the limit of small epsilon is zero with derivative zero.
    The result does not depend on the length of a group, which is therefore brought to about 1, by
    an exact power of 2, lest its square leave the range of float32 (beyond 1e±19).

    Args:
        norm: a normalisation of Flax's with `epsilon=0`, or one like it, with its scale and bias.
        group_size: number of features that are normalised together.
        centred: whether the norm subtracts the mean.
    """

    def __init__(self, norm: Any, group_size: int, *, centred: bool):
        self.norm, self.group_size, self.centred = norm, group_size, centred

    def __call__(self, u: Float[Array, "n features"]) -> Float[Array, "n features"]:
        groups = u.reshape(len(u), -1, self.group_size)
        largest = jnp.max(jnp.abs(groups), -1, keepdims=True)
        origin = groups[..., :1] if self.centred else 0
        nothing = (groups == origin).all(-1, keepdims=True)
        exponent = jnp.clip(jnp.frexp(largest)[1], -WIDEST_POWER, WIDEST_POWER)
        factor = jax.lax.stop_gradient(jnp.ldexp(jnp.ones_like(largest), -exponent))
        signs = jnp.where(jnp.arange(self.group_size) % 2 == 0, 1, -1).astype(u.dtype)
        out = self.norm(jnp.where(nothing, signs, groups * factor).reshape(u.shape))
        bias = getattr(self.norm, "bias", None)
        nowhere = jnp.zeros((), u.dtype) if bias is None else bias[...]
        undefined = jnp.repeat(nothing[..., 0], self.group_size, axis=1).reshape(u.shape)
        return jnp.where(undefined, nowhere, out)


class Sum(nnx.Module):
    """The sum of branches that start from the same features."""

    def __init__(self, branches: Iterable[Callable[[Array], Array]]):
        self.branches = nnx.List(branches)

    def __call__(self, x: Float[Array, "n inputs"]) -> Float[Array, "n outputs"]:
        first, *others = (branch(x) for branch in self.branches)
        return sum(others, start=first)


register_sum(Sum, "branches")


def _rectified_power(u: Array, degree: float) -> Array:
    """max(u, 0)^degree; the inner `where` keeps infinities out of the gradient."""
    positive = u > 0
    power = int(degree) if float(degree).is_integer() else degree
    return jnp.where(positive, jnp.where(positive, u, 1) ** power, 0)
