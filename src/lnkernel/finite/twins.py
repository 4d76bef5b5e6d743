"""One twin per layer: what stands for it in a network of finite width."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from lnkernel.arch import (
    Abs,
    Dense,
    GroupNorm,
    Homogeneous,
    Identity,
    LayerNorm,
    LeakyRelu,
    Node,
    Parallel,
    RectifiedPower,
    Relu,
    RMSNorm,
    Serial,
)
from lnkernel.check import known_zero
from lnkernel.errors import ArchitectureError
from lnkernel.finite import modules
from lnkernel.precision import is_traced

Layer = Callable[[Any], Any]


@dataclass(frozen=True)
class Plan:
    """What a twin is built from besides its layer."""

    n_in: int
    width: int | None  # of the hidden Dense layers; None: their own
    output: bool  # whether what is built here is the network's output, up to its last norm
    parameterization: str
    dtype: Any
    rngs: nnx.Rngs
    here: str = ""  # the position, for messages


@singledispatch
def twin(layer: Node, plan: Plan) -> tuple[Layer, int]:
    """The layer at finite width, and the number of features behind it."""
    raise ArchitectureError(
        type(layer).__name__,
        plan.here,
        "this type of layer has no twin of finite width",
        "Register one in lnkernel.finite.twins",
    )


@twin.register
def _(layer: Dense, plan: Plan) -> tuple[Layer, int]:
    width = layer.width if plan.output or plan.width is None else plan.width
    W_std, b_std = _number(layer.W_std), _number(layer.b_std)
    use_bias = not known_zero(b_std)
    if plan.parameterization == "ntk":
        return modules.NTKLinear(
            plan.n_in,
            width,
            W_std=W_std,
            b_std=b_std,
            use_bias=use_bias,
            dtype=plan.dtype,
            rngs=plan.rngs,
        ), width
    return nnx.Linear(
        plan.n_in,
        width,
        use_bias=use_bias,
        kernel_init=jax.nn.initializers.normal(W_std / math.sqrt(plan.n_in)),
        bias_init=jax.nn.initializers.normal(b_std),
        dtype=plan.dtype,
        param_dtype=plan.dtype,
        rngs=plan.rngs,
    ), width


@twin.register
def _(layer: Relu, plan: Plan) -> tuple[Layer, int]:
    return jax.nn.relu, plan.n_in


@twin.register
def _(layer: Abs, plan: Plan) -> tuple[Layer, int]:
    return jnp.abs, plan.n_in


@twin.register
def _(layer: Identity, plan: Plan) -> tuple[Layer, int]:
    return jax.nn.identity, plan.n_in


@twin.register
def _(layer: LeakyRelu, plan: Plan) -> tuple[Layer, int]:
    return modules.LeakyRelu(_number(layer.slope)), plan.n_in


@twin.register(RectifiedPower)
@twin.register(Homogeneous)
def _(layer: RectifiedPower | Homogeneous, plan: Plan) -> tuple[Layer, int]:
    a, b = _number(layer.a), _number(layer.b)
    return modules.HomogeneousActivation(layer.degree, a, b), plan.n_in


@twin.register
def _(layer: LayerNorm, plan: Plan) -> tuple[Layer, int]:
    if plan.n_in == 1:
        raise ArchitectureError(
            "LayerNorm",
            plan.here,
            "it acts on a single feature, which it turns into 0 whatever its value",
            "Choose a width of at least 3 (with 2 only a sign is left); for points on a line put a "
            "Dense before it",
        )
    norm = nnx.LayerNorm(plan.n_in, use_bias=layer.bias, **_settings(layer, plan))
    return _exact(norm, layer.eps, plan.n_in, centred=True), plan.n_in


@twin.register
def _(layer: RMSNorm, plan: Plan) -> tuple[Layer, int]:
    norm = nnx.RMSNorm(plan.n_in, **_settings(layer, plan))
    return _exact(norm, layer.eps, plan.n_in, centred=False), plan.n_in


@twin.register
def _(layer: GroupNorm, plan: Plan) -> tuple[Layer, int]:
    size = layer.group_size
    if plan.n_in % size:
        raise ArchitectureError(
            "GroupNorm",
            plan.here,
            f"its groups of {size} features do not divide the {plan.n_in} features before it",
            f"Choose a width that is a multiple of {size}, e.g. {max(1, plan.n_in // size) * size}",
        )
    norm: Any
    if layer.centre:
        norm = nnx.GroupNorm(
            plan.n_in,
            num_groups=None,
            group_size=size,
            use_bias=layer.bias,
            **_settings(layer, plan),
        )
    else:  # Flax's GroupNorm always subtracts the mean
        norm = modules.GroupRMSNorm(
            plan.n_in, size, use_scale=layer.scale, use_bias=layer.bias, dtype=plan.dtype
        )
    return _exact(norm, layer.eps, size, centred=layer.centre), plan.n_in


@twin.register
def _(layer: Serial, plan: Plan) -> tuple[Layer, int]:
    made, width = serial_twins(layer, plan)
    return nnx.Sequential(*made), width


@twin.register
def _(layer: Parallel, plan: Plan) -> tuple[Layer, int]:
    made = [
        twin(branch, replace(plan, here=f"{plan.here}, branch {number}".lstrip(", ")))
        for number, branch in enumerate(layer.branches)
    ]
    widths = sorted({width for _, width in made})
    if len(widths) > 1:
        raise ArchitectureError(
            repr(layer).split("(")[0],
            plan.here,
            f"its branches have different widths, {widths}, and cannot be added",
            "Give the last Dense of all branches, and the layer before them, the same width",
        )
    return modules.Sum(branch for branch, _ in made), widths[0]


def serial_twins(arch: Serial, plan: Plan) -> tuple[list[Layer], int]:
    """The twins of all layers, and the number of features behind the last one."""
    outputs, last = [], plan.output
    for layer in reversed(arch.layers):
        outputs.append(last)
        last = last and _keeps_width(layer)
    made: list[Layer] = []
    width = plan.n_in
    prefix = f"{plan.here}, " if plan.here else ""
    for place, (layer, output) in enumerate(zip(arch.layers, reversed(outputs), strict=True)):
        here = replace(plan, n_in=width, output=output, here=f"{prefix}layer {place}")
        one, width = twin(layer, here)
        made.append(one)
    return made, width


def _keeps_width(layer: Node) -> bool:
    """Whether the width behind the layer is the width before it, whatever that is."""
    if isinstance(layer, Serial):
        return all(map(_keeps_width, layer.layers))
    if isinstance(layer, Parallel):
        return any(map(_keeps_width, layer.branches))
    return not isinstance(layer, Dense)


def _settings(layer: LayerNorm | RMSNorm | GroupNorm, plan: Plan) -> dict[str, Any]:
    """Flax's fast variance, E u² - (E u)², loses all digits where the mean is large."""
    return {
        "epsilon": _number(layer.eps),
        "use_scale": layer.scale,
        "use_fast_variance": False,
        "dtype": plan.dtype,
        "param_dtype": plan.dtype,
        "rngs": plan.rngs,
    }


def _exact(norm: Any, eps: Any, group_size: int, *, centred: bool) -> Layer:
    """Flax's own norm where epsilon is positive: there the two mean the same."""
    if known_zero(_number(eps)):
        return modules.ExactNorm(norm, group_size, centred=centred)
    layer: Layer = norm
    return layer


def _number(value: Any) -> Any:
    """A hyperparameter as a plain number, unless JAX is differentiating with respect to it."""
    return value if is_traced(value) else float(value)
