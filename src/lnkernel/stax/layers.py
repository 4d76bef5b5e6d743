"""The layers that neural-tangents and this library have in common, with the arguments of its `stax`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lnkernel import arch
from lnkernel.check.plain import known_zero
from lnkernel.errors import ArchitectureError
from lnkernel.stax.triple import Layer, layer_of

PARAMETERIZATIONS = ("ntk", "standard")


def Dense(
    out_dim: int,
    W_std: float = 1.0,
    b_std: float | None = None,
    batch_axis: int = 0,
    channel_axis: int = -1,
    parameterization: str = "ntk",
    s: tuple[int, int] = (1, 1),
) -> Layer:
    r"""$h = \frac{W_{std}}{\sqrt{n_{in}}}\, W a + b_{std}\, b$, with $W, b \sim N(0, 1)$: `lnkernel.Dense`.

    Args:
        out_dim: number of outputs.
        W_std: standard deviation of the weights.
        b_std: standard deviation of the biases; None means no bias.
        batch_axis, channel_axis: 0 and -1, because inputs are of shape (points, features).
        parameterization: "standard" is $h = W a + b$ with $W \sim N(0, W_{std}^2/n_{in})$ and
            $b \sim N(0, b_{std}^2)$, the same for all layers: for `init_fn`, `apply_fn` and the
            NNGP kernel, which is the same. Its NTK, which grows with the width, is not here.
        s: (1, 1).

    >>> from lnkernel import stax
    >>> stax.Dense(512, W_std=1.5, b_std=0.05).arch
    Dense(width=512, W_std=1.5, b_std=0.05)
    """
    check_axes("Dense", batch_axis, channel_axis)
    chosen = check_parameterization("Dense", parameterization, s, b_std)
    bias = 0.0 if b_std is None else b_std
    return layer_of(arch.Dense(out_dim, W_std=W_std, b_std=bias), chosen)


def Relu(do_stabilize: bool = False) -> Layer:
    r"""$\max(u, 0)$: `lnkernel.Relu`.

    `do_stabilize` divides and multiplies there, lest deep networks leave the range of float32;
    here lengths are carried apart anyway, so it changes nothing.

    >>> from lnkernel import stax
    >>> stax.Relu().arch
    Relu()
    """
    return layer_of(arch.Relu())


def LeakyRelu(alpha: float, do_stabilize: bool = False) -> Layer:
    r"""$\alpha \min(u, 0) + \max(u, 0)$: `lnkernel.LeakyRelu`. `do_stabilize`: see `Relu`.

    >>> from lnkernel import stax
    >>> stax.LeakyRelu(0.1).arch
    LeakyRelu(slope=0.1)
    """
    return layer_of(arch.LeakyRelu(alpha))


def ABRelu(a: float, b: float, do_stabilize: bool = False) -> Layer:
    r"""$a \min(u, 0) + b \max(u, 0)$: `lnkernel.Homogeneous`. `do_stabilize`: see `Relu`.

    >>> from lnkernel import stax
    >>> stax.ABRelu(0.5, 2.0).arch  # a u₊ + b (-u)₊
    Homogeneous(degree=1, a=2.0, b=-0.5)
    """
    return layer_of(arch.Homogeneous(1, a=b, b=-a))


def Abs(do_stabilize: bool = False) -> Layer:
    r"""$|u|$: `lnkernel.Abs`. `do_stabilize`: see `Relu`.

    >>> from lnkernel import stax
    >>> stax.Abs().arch
    Abs()
    """
    return layer_of(arch.Abs())


def RectifiedMonomial(degree: float) -> Layer:
    r"""$\max(u, 0)^{\mathrm{degree}}$: `lnkernel.RectifiedPower`, for every real degree above 1/2.

    >>> from lnkernel import stax
    >>> stax.RectifiedMonomial(2).arch
    RectifiedPower(degree=2)
    """
    return layer_of(arch.RectifiedPower(degree))


def Gelu(approximate: bool = False) -> Layer:
    r"""$u\,\Phi(u)$: `lnkernel.Gelu`.

    >>> from lnkernel import stax
    >>> stax.Gelu().arch
    Gelu(approximate=False)
    """
    return layer_of(arch.Gelu(approximate=approximate))


def Monomial(degree: int) -> Layer:
    r"""$u^{\mathrm{degree}}$, for a positive integer: `lnkernel.Homogeneous`.

    >>> from lnkernel import stax
    >>> stax.Monomial(3).arch
    Homogeneous(degree=3, a=1.0, b=-1.0)
    """
    if isinstance(degree, bool) or not isinstance(degree, int) or degree < 1:
        raise ArchitectureError(
            "stax.Monomial",
            "",
            f"degree must be an integer, at least 1, got {degree!r}",
            "For other powers take RectifiedMonomial, or lnkernel.Homogeneous",
        )
    return layer_of(arch.Homogeneous(degree, a=1.0, b=(-1.0) ** degree))


def Polynomial(coef: Sequence[float]) -> Layer:
    r"""$\sum_j \mathrm{coef}_j\,u^j$: `lnkernel.Polynomial`.

    >>> from lnkernel import stax
    >>> stax.Polynomial((0.0, 1.0, 0.5)).arch
    Polynomial(coefficients=(0.0, 1.0, 0.5))
    """
    return layer_of(arch.Polynomial(tuple(float(c) for c in coef)))


def Hermite(degree: int) -> Layer:
    r"""The Hermite polynomial $\mathit{He}_n/\sqrt{n!}$: `lnkernel.Hermite`. There, too, inputs must have unit length
    for its kernel to be $\rho^n$; here every length is right.

    >>> from lnkernel import stax
    >>> stax.Hermite(3).arch
    Hermite(degree=3)
    """
    return layer_of(arch.Hermite(degree))


def Sign() -> Layer:
    r"""$\mathrm{sign}(u)$: `lnkernel.Sign`. There the derivative counts as zero; here the NTK is refused.

    >>> from lnkernel import stax
    >>> stax.Sign().arch
    Sign()
    """
    return layer_of(arch.Sign())


def Identity() -> Layer:
    """Nothing: `lnkernel.Identity`. The skip of a residual block.

    >>> from lnkernel import stax
    >>> stax.Identity().arch
    Identity()
    """
    return layer_of(arch.Identity())


def LayerNorm(
    axis: int | Sequence[int] = -1, eps: float = 1e-12, batch_axis: int = 0, channel_axis: int = -1
) -> Layer:
    r"""$(u_i - \bar u)/\sqrt{\mathrm{var}(u) + \epsilon}$ over the features: `lnkernel.LayerNorm`.

    Args:
        axis: -1, the features; or of images all axes but the first, (1, 2, 3), of sequences (1, 2).
        eps: added to the variance.
        batch_axis, channel_axis: 0 and -1, because inputs are of shape (points, features).

    There it may stand directly behind a Dense only. Here it may stand anywhere.

    >>> from lnkernel import stax
    >>> stax.LayerNorm().arch
    LayerNorm(eps=1e-12, scale=False, bias=False)
    """
    check_axes("LayerNorm", batch_axis, channel_axis)
    axes = sorted([axis] if isinstance(axis, int) else axis)
    if axes in ([-1], [1]):
        return layer_of(arch.LayerNorm(eps))
    if len(axes) < 2 or axes != list(range(1, len(axes) + 1)):
        raise ArchitectureError(
            "stax.LayerNorm",
            "",
            f"axis must be -1, the features, or all axes but the first, got {axis!r}",
            "Write axis=(1, 2, 3) for images, (1, 2) for sequences; inputs are not normalised together, nor images "
            "along one axis",
        )
    return layer_of(arch.LayerNorm(eps, axes="all"))


def check_parameterization(layer: str, parameterization: Any, s: Any, b_std: Any) -> str:
    """The parametrisation, in lower case; what is not here is refused."""
    name = f"stax.{layer}"
    if not isinstance(parameterization, str) or parameterization.lower() not in PARAMETERIZATIONS:
        raise ArchitectureError(
            name, "", f"parameterization={parameterization!r} is not known", 'Take "ntk"'
        )
    chosen = parameterization.lower()
    if tuple(s) != (1, 1):
        raise ArchitectureError(
            name,
            "",
            f"s={s!r} scales the widths of the standard parametrisation, which is not here",
            "Omit it, and put the factor into the width",
        )
    if chosen == "standard" and b_std is not None and known_zero(b_std):
        raise ArchitectureError(
            name,
            "",
            'with parameterization="standard", b_std=0 is a bias that starts at zero and is '
            "trained, which is not here",
            "Take b_std=None for no bias, or a small b_std",
        )
    return chosen


def check_axes(layer: str, batch_axis: Any, channel_axis: Any) -> None:
    """The first of two axes (0 or -2) counts the points, and the last one (-1 or 1) the features."""
    if batch_axis not in (0, -2) or channel_axis not in (-1, 1):
        raise ArchitectureError(
            f"stax.{layer}",
            "",
            f"batch_axis must be 0 and channel_axis -1, got {batch_axis!r} and {channel_axis!r}: "
            "inputs are of shape (points, features), or images with the channels last",
            "Transpose the data; images are (n, height, width, channels)",
        )
