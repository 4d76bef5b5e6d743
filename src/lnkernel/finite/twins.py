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
from jax.typing import DTypeLike

from lnkernel.arch import (
    Abs,
    Dense,
    GroupNorm,
    Hermite,
    Homogeneous,
    Identity,
    LayerNorm,
    LeakyRelu,
    Node,
    Parallel,
    Piecewise,
    Polynomial,
    RectifiedPower,
    Relu,
    RMSNorm,
    Scale,
    Serial,
    Shift,
    Sign,
    Smooth,
    Step,
)
from lnkernel.arch.shapes import shape_behind
from lnkernel.check.plain import known_zero
from lnkernel.errors import ArchitectureError
from lnkernel.finite import modules
from lnkernel.precision import is_traced

Layer = Callable[[jax.Array], jax.Array]


@dataclass(frozen=True)
class TwinSettings:
    """What a twin is built from besides its layer."""

    n_in: int
    width: int | None  # of the hidden Dense layers; None: their own
    output: bool  # whether what is built here is the network's output, up to its last norm
    parameterization: str
    dtype: DTypeLike
    rngs: nnx.Rngs
    here: str = ""  # the position in the network, for messages
    positions: tuple[int, ...] = ()  # the shape of the image or sequence before it


@singledispatch
def twin(layer: Node, settings: TwinSettings) -> tuple[Layer, int]:
    """The layer at finite width, and the number of features behind it."""
    raise ArchitectureError(
        type(layer).__name__,
        settings.here,
        "this type of layer has no twin of finite width",
        "Register one in lnkernel.finite.twins",
    )


@twin.register
def _(layer: Dense, settings: TwinSettings) -> tuple[Layer, int]:
    width = layer.width if settings.output or settings.width is None else settings.width
    W_std, b_std = plain_number(layer.W_std), plain_number(layer.b_std)
    use_bias = not known_zero(b_std)
    if settings.parameterization == "ntk":
        return modules.NTKLinear(
            settings.n_in,
            width,
            W_std=W_std,
            b_std=b_std,
            use_bias=use_bias,
            dtype=settings.dtype,
            rngs=settings.rngs,
        ), width
    return nnx.Linear(
        settings.n_in,
        width,
        use_bias=use_bias,
        kernel_init=jax.nn.initializers.normal(W_std / math.sqrt(settings.n_in)),
        bias_init=jax.nn.initializers.normal(b_std),
        dtype=settings.dtype,
        param_dtype=settings.dtype,
        rngs=settings.rngs,
    ), width


@twin.register
def _(layer: Relu, settings: TwinSettings) -> tuple[Layer, int]:
    return jax.nn.relu, settings.n_in


@twin.register
def _(layer: Abs, settings: TwinSettings) -> tuple[Layer, int]:
    return jnp.abs, settings.n_in


@twin.register
def _(layer: Identity, settings: TwinSettings) -> tuple[Layer, int]:
    return jax.nn.identity, settings.n_in


@twin.register
def _(layer: Scale, settings: TwinSettings) -> tuple[Layer, int]:
    return modules.ScaledBy(plain_number(layer.factor)), settings.n_in


@twin.register
def _(layer: Shift, settings: TwinSettings) -> tuple[Layer, int]:
    return modules.ShiftedBy(plain_number(layer.offset)), settings.n_in


@twin.register
def _(layer: LeakyRelu, settings: TwinSettings) -> tuple[Layer, int]:
    return modules.LeakyReluActivation(plain_number(layer.slope)), settings.n_in


@twin.register(RectifiedPower)
@twin.register(Homogeneous)
def _(layer: RectifiedPower | Homogeneous, settings: TwinSettings) -> tuple[Layer, int]:
    a, b = plain_number(layer.a), plain_number(layer.b)
    return modules.HomogeneousActivation(layer.degree, a, b), settings.n_in


@twin.register(Smooth)
@twin.register(Piecewise)
def _(layer: Smooth | Piecewise, settings: TwinSettings) -> tuple[Layer, int]:
    return modules.SmoothActivation(jax.tree.map(plain_number, layer)), settings.n_in


@twin.register
def _(layer: Sign, settings: TwinSettings) -> tuple[Layer, int]:
    return jnp.sign, settings.n_in


@twin.register
def _(layer: Step, settings: TwinSettings) -> tuple[Layer, int]:
    return modules.StepActivation(), settings.n_in


@twin.register
def _(layer: Polynomial, settings: TwinSettings) -> tuple[Layer, int]:
    return modules.PolynomialActivation(tuple(map(plain_number, layer.coefficients))), settings.n_in


@twin.register
def _(layer: Hermite, settings: TwinSettings) -> tuple[Layer, int]:
    return modules.HermiteActivation(layer), settings.n_in


@twin.register
def _(layer: LayerNorm, settings: TwinSettings) -> tuple[Layer, int]:
    if settings.n_in == 1:
        raise ArchitectureError(
            "LayerNorm",
            settings.here,
            "it acts on a single feature, which it turns into 0 whatever its value",
            "Choose a width of at least 3 (with 2 only a sign is left); for points on a line put a "
            "Dense before it",
        )
    over: dict[str, Any] = {}
    together = settings.n_in
    if layer.axes == "all" and settings.positions:
        over = {"reduction_axes": tuple(range(1, len(settings.positions) + 2)), "feature_axes": -1}
        together *= math.prod(settings.positions)
    norm = nnx.LayerNorm(
        settings.n_in, use_bias=layer.bias, **over, **_norm_arguments(layer, settings)
    )
    return _exact(norm, layer.eps, together, centred=True), settings.n_in


@twin.register
def _(layer: RMSNorm, settings: TwinSettings) -> tuple[Layer, int]:
    norm = nnx.RMSNorm(settings.n_in, **_norm_arguments(layer, settings))
    return _exact(norm, layer.eps, settings.n_in, centred=False), settings.n_in


@twin.register
def _(layer: GroupNorm, settings: TwinSettings) -> tuple[Layer, int]:
    size = layer.group_size
    if settings.n_in % size:
        raise ArchitectureError(
            "GroupNorm",
            settings.here,
            f"its groups of {size} features do not divide the {settings.n_in} features before it",
            f"Choose a width that is a multiple of {size}, e.g. {max(1, settings.n_in // size) * size}",
        )
    norm: Any
    if layer.centre:
        norm = nnx.GroupNorm(
            settings.n_in,
            num_groups=None,
            group_size=size,
            use_bias=layer.bias,
            **_norm_arguments(layer, settings),
        )
    else:  # Flax's GroupNorm always subtracts the mean
        norm = modules.GroupRMSNorm(
            settings.n_in, size, use_scale=layer.scale, use_bias=layer.bias, dtype=settings.dtype
        )
    return _exact(norm, layer.eps, size, centred=layer.centre), settings.n_in


@twin.register
def _(layer: Serial, settings: TwinSettings) -> tuple[Layer, int]:
    made, width = serial_twins(layer, settings)
    return nnx.Sequential(*made), width


@twin.register
def _(layer: Parallel, settings: TwinSettings) -> tuple[Layer, int]:
    made = [
        twin(branch, replace(settings, here=f"{settings.here}, branch {number}".lstrip(", ")))
        for number, branch in enumerate(layer.branches)
    ]
    widths = sorted({width for _, width in made})
    if len(widths) > 1:
        raise ArchitectureError(
            repr(layer).split("(")[0],
            settings.here,
            f"its branches have different widths, {widths}, and cannot be added",
            "Give the last Dense of all branches, and the layer before them, the same width",
        )
    return modules.Sum(branch for branch, _ in made), widths[0]


def serial_twins(arch: Serial, settings: TwinSettings) -> tuple[list[Layer], int]:
    """The twins of all layers, and the number of features behind the last one."""
    outputs, last = [], settings.output
    for layer in reversed(arch.layers):
        outputs.append(last)
        last = last and keeps_width(layer)
    made: list[Layer] = []
    width, positions = settings.n_in, settings.positions
    prefix = f"{settings.here}, " if settings.here else ""
    for place, (layer, output) in enumerate(zip(arch.layers, reversed(outputs), strict=True)):
        name = f"{prefix}layer {place}"
        here = replace(settings, n_in=width, output=output, here=name, positions=positions)
        one, width = twin(layer, here)
        positions = shape_behind(layer, positions) if positions else ()
        made.append(one)
    return made, width


@singledispatch
def keeps_width(layer: Node) -> bool:
    """Whether the width behind the layer is the width before it, whatever that is.

    A layer that has a width of its own registers False.
    """
    return True


@keeps_width.register
def _(layer: Dense) -> bool:
    return False


@keeps_width.register
def _(layer: Serial) -> bool:
    return all(map(keeps_width, layer.layers))


@keeps_width.register
def _(layer: Parallel) -> bool:
    return any(map(keeps_width, layer.branches))


def _norm_arguments(
    layer: LayerNorm | RMSNorm | GroupNorm, settings: TwinSettings
) -> dict[str, Any]:
    """Flax's fast variance, E u² - (E u)², loses all digits where the mean is large."""
    return {
        "epsilon": plain_number(layer.eps),
        "use_scale": layer.scale,
        "use_fast_variance": False,
        "dtype": settings.dtype,
        "param_dtype": settings.dtype,
        "rngs": settings.rngs,
    }


def _exact(norm: Any, eps: Any, group_size: int, *, centred: bool) -> Layer:
    """Flax's own norm where epsilon is positive: there the two mean the same."""
    if known_zero(plain_number(eps)):
        return modules.ExactNorm(norm, group_size, centred=centred)
    layer: Layer = norm
    return layer


def plain_number(value: Any) -> Any:
    """A hyperparameter as a plain number, unless JAX is differentiating with respect to it."""
    return value if is_traced(value) else float(value)
