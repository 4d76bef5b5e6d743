"""An architecture as a Flax network of finite width."""

from __future__ import annotations

import dataclasses
import math
from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.typing import DTypeLike
from jaxtyping import Float

from lnkernel.arch import Node, Serial
from lnkernel.arch.compose import layers_of
from lnkernel.arch.facts import acts_on_positions, position_axes
from lnkernel.arch.flow import check_network
from lnkernel.arch.text import Architecture, as_architecture
from lnkernel.check.arrays import as_array, demand_finite
from lnkernel.check.numbers import as_shape, positive_integer
from lnkernel.errors import InputError, NetworkPrecisionError
from lnkernel.finite import attention as _attention  # noqa: F401  # registers twins
from lnkernel.finite import spatial as _spatial  # noqa: F401  # registers twins
from lnkernel.finite.twins import Layer, TwinSettings, serial_twins
from lnkernel.gram.memory import demand_memory
from lnkernel.precision import is_traced, x64_is_on
from lnkernel.tangents.structure import register_sequence
from lnkernel.types import Inputs

PARAMETERIZATIONS = ("ntk", "standard")
DTYPES = ("float32", "float64")
FEW = 1000  # numbers of inputs, for which asking for memory would take as long as the call


class Network(nnx.Sequential):
    """The finite twin of an architecture, as `network` builds it: (n, in_dim) to (n, outputs)."""

    def __init__(self, layers: list[Layer], in_dim: int | tuple[int, ...], dtype: DTypeLike):
        super().__init__(*layers)
        self.in_dim, self.dtype = in_dim, dtype

    def __call__(self, x: Inputs) -> Float[jax.Array, "n k"]:  # type: ignore[override]  # one argument only
        if self.dtype == jnp.float64 and not x64_is_on():
            raise NetworkPrecisionError()
        given = as_array("x", x)
        if isinstance(self.in_dim, tuple):
            if given.shape[1:] != self.in_dim:
                raise InputError(
                    "x",
                    f"an array of shape (n, {', '.join(map(str, self.in_dim))}), as the network was built for",
                    f"shape {given.shape}",
                    "For one input write x[None]; for other images build the network with in_dim=x.shape[1:]",
                )
        elif given.ndim != 2 or given.shape[1] != self.in_dim:
            raise InputError(
                "x",
                f"a 2-D array of shape (points, {self.in_dim}), as the network was built for",
                f"shape {given.shape}",
                "For one point write x[None, :]; for another dimension build the network with "
                "in_dim=x.shape[1]",
            )
        if not len(given):
            raise InputError(
                "x", "at least one point", f"shape {given.shape}", "Check how it was filtered"
            )
        if not is_traced(given) and given.size > FEW:
            demand_memory_of_features(self, len(given), math.prod(given.shape[1:-1]))
        demand_finite("x", given, self.dtype)
        # NumPy's longer types, which JAX does not know, are rounded by NumPy
        numbers = given.astype(self.dtype) if isinstance(given, np.ndarray) else given
        return super().__call__(jnp.asarray(numbers).astype(self.dtype))


register_sequence(Network)


def network(
    arch: Architecture,
    in_dim: int | tuple[int, ...],
    width: int | None = None,
    *,
    rngs: nnx.Rngs | int | jax.Array,
    parameterization: str = "ntk",
    dtype: DTypeLike = jnp.float32,
) -> Network:
    r"""The network of finite width that `arch` describes, randomly initialised, as a Flax module.

    Args:
        arch: the architecture, or its text.
        in_dim: dimension of the inputs; of images and sequences the shape of one, e.g. `(32, 32, 3)`.
        width: the width of every hidden Dense and Conv; by default their own. `arch` says how many outputs there are.
        rngs: the source of the initial parameters, an `nnx.Rngs`, a seed or a key of `jax.random`.
        parameterization: "ntk" is $h = \frac{W_{std}}{\sqrt{n_{in}}}\, W a + b_{std}\, b$ with all
            of $W, b \sim N(0, 1)$ trained, whose tangent kernel tends to `ntk(arch)`. "standard" is
            $h = W a + b$ with $W \sim N(0, W_{std}^2/n_{in})$ (He's initialisation if
            $W_{std} = \sqrt 2$) and $b \sim N(0, b_{std}^2)$: from the same seed the same function,
            but another training. Without $b_{std}$ there is no bias, in either.
        dtype: float32 or float64, of the parameters and of the arithmetic. float64 networks are
            built and called inside `with jax.enable_x64(True):`.

    >>> import lnkernel as lnk
    >>> arch = lnk.mlp(hidden=2, norm="first")
    >>> f = lnk.finite.network(arch, in_dim=3, width=64, rngs=0)
    >>> f([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]).shape
    (2, 1)
    >>> f.layers[0].kernel.shape, f.layers[-1].kernel.shape
    ((3, 64), (64, 1))
    """
    given = check_network(as_architecture(arch))
    shape = _check_input_shape(given, in_dim)
    if width is not None:
        positive_integer("width", width)
    if parameterization not in PARAMETERIZATIONS:
        raise InputError(
            "parameterization",
            " or ".join(f'"{name}"' for name in PARAMETERIZATIONS),
            repr(parameterization),
            'Use "ntk" to compare with the kernels, "standard" to train as is usual',
        )
    settings = TwinSettings(
        n_in=shape[-1],
        positions=shape[:-1],
        width=None if width is None else int(width),
        output=True,
        parameterization=parameterization,
        dtype=_check_dtype(dtype),
        rngs=as_rngs(rngs),
    )
    whole = Serial(layers_of(given))
    _demand_memory(whole, settings)
    layers, _ = serial_twins(whole, settings)
    return Network(layers, shape if len(shape) > 1 else shape[0], settings.dtype)


def _demand_memory(arch: Serial, settings: TwinSettings) -> None:
    """An error for parameters that do not fit into memory, before they are drawn."""

    def build() -> Any:
        layers, _ = serial_twins(arch, dataclasses.replace(settings, rngs=nnx.Rngs(0)))
        return nnx.state(nnx.Sequential(*layers))

    leaves = jax.tree.leaves(nnx.eval_shape(build))
    sizes = [leaf.size * leaf.dtype.itemsize for leaf in leaves]
    demand_memory(
        sum(sizes) + max(sizes, default=0),  # the largest is there twice while it is drawn
        1,
        f"A network of {sum(leaf.size for leaf in leaves):,} numbers",
        m=1,
        itemsize=1,
        remedy="Take a smaller width",
    )


def demand_memory_of_features(network: nnx.Module, points: int, positions: int = 1) -> None:
    """An error where the features in front of and behind the widest layer do not fit into memory for so many points,
    of so many positions each. The network may be an abstract one, which has shapes and no numbers."""
    leaves = [leaf for leaf in jax.tree.leaves(nnx.state(network, nnx.Param)) if leaf.ndim]
    widest = max((leaf.shape[-1] for leaf in leaves), default=1)
    demand_memory(
        points * positions,
        2,
        f"A network of {widest} features in its widest layer, at {points} points,",
        m=widest,
        itemsize=max((leaf.dtype.itemsize for leaf in leaves), default=4),
        remedy="Take fewer points at a time" if points > widest else "Take a smaller width",
    )


def _check_input_shape(arch: Node, in_dim: Any) -> tuple[int, ...]:
    """The shape of one input: of flat ones the dimension alone."""
    if not acts_on_positions(arch):
        return (positive_integer("in_dim", in_dim),)
    axes = position_axes(arch)
    shape = as_shape("in_dim", in_dim)
    if not (2 <= len(shape) <= 4 if axes is None else len(shape) == axes + 1) or min(shape) < 1:
        raise InputError(
            "in_dim",
            "the shape of one input, positions and channels, because the network acts on positions",
            repr(in_dim),
            "Write e.g. in_dim=(32, 32, 3), or in_dim=x.shape[1:]",
        )
    return shape


def _check_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        name = jnp.dtype(dtype).name
    except TypeError:
        name = repr(dtype)
    if name not in DTYPES:
        raise InputError("dtype", "float32 or float64", name, "Write e.g. dtype=jnp.float64")
    if name == "float64" and not x64_is_on():
        raise NetworkPrecisionError()
    return jnp.dtype(name)


def as_rngs(rngs: Any) -> nnx.Rngs:
    if isinstance(rngs, nnx.Rngs):
        return rngs
    if isinstance(rngs, bool) or not isinstance(rngs, (Integral, jax.Array)):
        raise InputError(
            "rngs",
            "an nnx.Rngs, a seed or a key of jax.random",
            f"{rngs!r} of type {type(rngs).__name__}",
            "Write e.g. rngs=0",
        )
    if isinstance(rngs, jax.Array):
        return nnx.Rngs(rngs)
    seed = int(rngs)
    if not -(2**63) <= seed < 2**63:
        raise InputError("rngs", "a seed of at most 64 bits", repr(rngs), "Write e.g. rngs=0")
    return nnx.Rngs(seed)
