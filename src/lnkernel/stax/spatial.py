"""The layers of neural-tangents' `stax` that act on images and sequences, with its arguments.

Channels come last: (n, height, width, channels). What says otherwise is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from lnkernel import arch
from lnkernel.errors import ArchitectureError
from lnkernel.stax.layers import check_axes, check_parameterization
from lnkernel.stax.triple import Layer, layer_of
from lnkernel.stax.words import Padding

LAST = "Move the channels to the end: images are (n, height, width, channels)"


def Conv(
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: str = "VALID",
    W_std: float = 1.0,
    b_std: float | None = None,
    dimension_numbers: Sequence[str] | None = None,
    parameterization: str = "ntk",
    s: tuple[int, int] = (1, 1),
) -> Layer:
    r"""A convolution: `lnkernel.Conv`. Without a padding it is "VALID", as there.

    Args:
        out_chan: number of channels behind it.
        filter_shape: size of the filter, e.g. (3, 3).
        strides: by default 1 along each axis.
        padding: "VALID", "SAME" or "CIRCULAR".
        W_std: standard deviation of the weights.
        b_std: standard deviation of the biases; None means no bias.
        dimension_numbers: ("NHWC", "HWIO", "NHWC") or None, which is the same.
        parameterization: as in `Dense`.
        s: (1, 1).

    >>> from lnkernel import stax
    >>> stax.Conv(64, (3, 3), padding="SAME", b_std=0.05).arch
    Conv(channels=64, filter=(3, 3), strides=(1, 1), padding='SAME', W_std=1.0, b_std=0.05)
    """
    return _convolution(
        arch.Conv,
        (out_chan, filter_shape, strides, padding, W_std, b_std),
        dimension_numbers,
        parameterization,
        s,
    )


def ConvLocal(
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: str = "VALID",
    W_std: float = 1.0,
    b_std: float | None = None,
    dimension_numbers: Sequence[str] | None = None,
    parameterization: str = "ntk",
    s: tuple[int, int] = (1, 1),
) -> Layer:
    r"""A convolution with weights and biases of its own at every position: `lnkernel.ConvLocal`.

    Args:
        out_chan, filter_shape, strides, padding, W_std, b_std, dimension_numbers, parameterization, s: as in `Conv`.

    >>> from lnkernel import stax
    >>> stax.ConvLocal(64, (3, 3), b_std=0.05).arch
    ConvLocal(channels=64, filter=(3, 3), strides=(1, 1), padding='VALID', W_std=1.0, b_std=0.05)
    """
    return _convolution(
        arch.ConvLocal,
        (out_chan, filter_shape, strides, padding, W_std, b_std),
        dimension_numbers,
        parameterization,
        s,
    )


def ConvTranspose(
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: str = "VALID",
    W_std: float = 1.0,
    b_std: float | None = None,
    dimension_numbers: Sequence[str] | None = None,
    parameterization: str = "ntk",
    s: tuple[int, int] = (1, 1),
) -> Layer:
    r"""The transpose of a convolution: `lnkernel.ConvTranspose`.

    Args:
        out_chan, filter_shape, strides, padding, W_std, b_std, dimension_numbers, parameterization, s: as in `Conv`.

    >>> from lnkernel import stax
    >>> stax.ConvTranspose(64, (3, 3), (2, 2), "SAME").arch
    ConvTranspose(channels=64, filter=(3, 3), strides=(2, 2), padding='SAME', W_std=1.0, b_std=0.0)
    """
    return _convolution(
        arch.ConvTranspose,
        (out_chan, filter_shape, strides, padding, W_std, b_std),
        dimension_numbers,
        parameterization,
        s,
    )


def AvgPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: str = "VALID",
    normalize_edges: bool = False,
    batch_axis: int = 0,
    channel_axis: int = -1,
) -> Layer:
    """The mean over a window: `lnkernel.AvgPool`. Without strides they are 1, as there.

    Args:
        window_shape: size of the window, e.g. (2, 2).
        strides: by default 1 along each axis.
        padding: "VALID", "SAME" or "CIRCULAR".
        normalize_edges: False: zeros around an image count in the mean.
        batch_axis, channel_axis: 0 and -1.

    >>> from lnkernel import stax
    >>> stax.AvgPool((2, 2), (2, 2)).arch
    AvgPool(window=(2, 2), strides=(2, 2), padding='VALID')
    """
    if normalize_edges and str(padding).upper() == "SAME":
        _refuse(
            "AvgPool",
            "normalize_edges=True divides by the pixels that are there, which is not in this library",
            "Take padding='VALID' or 'CIRCULAR', or normalize_edges=False",
        )
    window = _window("AvgPool", window_shape, strides, batch_axis, channel_axis)
    return layer_of(arch.AvgPool(*window, _word(padding)))


def SumPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: str = "VALID",
    batch_axis: int = 0,
    channel_axis: int = -1,
) -> Layer:
    """The sum over a window: `lnkernel.SumPool`. Without strides they are 1, as there.

    >>> from lnkernel import stax
    >>> stax.SumPool((2,)).arch
    SumPool(window=(2,), strides=(1,), padding='VALID')
    """
    window = _window("SumPool", window_shape, strides, batch_axis, channel_axis)
    return layer_of(arch.SumPool(*window, _word(padding)))


def GlobalAvgPool(batch_axis: int = 0, channel_axis: int = -1) -> Layer:
    """The mean over all positions: `lnkernel.GlobalAvgPool`.

    >>> from lnkernel import stax
    >>> stax.GlobalAvgPool().arch
    GlobalAvgPool()
    """
    check_axes("GlobalAvgPool", batch_axis, channel_axis)
    return layer_of(arch.GlobalAvgPool())


def GlobalSumPool(batch_axis: int = 0, channel_axis: int = -1) -> Layer:
    """The sum over all positions: `lnkernel.GlobalSumPool`.

    >>> from lnkernel import stax
    >>> stax.GlobalSumPool().arch
    GlobalSumPool()
    """
    check_axes("GlobalSumPool", batch_axis, channel_axis)
    return layer_of(arch.GlobalSumPool())


def Flatten(batch_axis: int = 0, batch_axis_out: int = 0) -> Layer:
    """All positions side by side: `lnkernel.Flatten`. Points without positions are flat: omit it there.

    >>> from lnkernel import stax
    >>> stax.serial(stax.Conv(8, (2, 2)), stax.Relu(), stax.Flatten(), stax.Dense(1)).arch.layers[2]
    Flatten()
    """
    if (batch_axis, batch_axis_out) != (0, 0):
        _refuse(
            "Flatten",
            f"batch_axis={batch_axis!r} and batch_axis_out={batch_axis_out!r} are not 0",
            "Move the axis of the inputs to the front",
        )
    return layer_of(arch.Flatten())


def GlobalSelfAttention(
    n_chan_out: int,
    n_chan_key: int,
    n_chan_val: int,
    n_heads: int,
    linear_scaling: bool = True,
    W_key_std: float = 1.0,
    W_value_std: float = 1.0,
    W_query_std: float = 1.0,
    W_out_std: float = 1.0,
    b_std: float | None = None,
    attention_mechanism: str = "SOFTMAX",
    pos_emb_type: str = "NONE",
    pos_emb_p_norm: float = 2,
    pos_emb_decay_fn: Callable[[Any], Any] | None = None,
    n_chan_pos_emb: int | None = None,
    W_pos_emb_std: float = 1.0,
    val_pos_emb: bool = False,
    batch_axis: int = 0,
    channel_axis: int = -1,
) -> Layer:
    r"""Self-attention: `lnkernel.Attention`, with `lnkernel.PositionalEmbedding`.

    Args:
        n_chan_out: channels behind it.
        n_chan_key, n_chan_val: size of a head; of the network of finite width it is n_chan_out/n_heads here.
        n_heads: number of heads, which divides n_chan_out.
        linear_scaling: `scaling="linear"` or `"sqrt"`.
        W_key_std, W_query_std: their product is `QK_std`.
        W_value_std, W_out_std: their product is `OV_std`.
        b_std: standard deviation of the biases; None means no bias.
        attention_mechanism: "SOFTMAX", "IDENTITY", "ABS" or "RELU".
        pos_emb_type: "NONE", "SUM" or "CONCAT", of as many channels as there are before it.
        pos_emb_p_norm, pos_emb_decay_fn, W_pos_emb_std: the covariance of the embeddings.
        n_chan_pos_emb: None.
        val_pos_emb: whether values see the embeddings, too.
        batch_axis, channel_axis: 0 and -1.

    A softmax without linear scaling has no kernel, there or here. Embeddings need a Dense or Conv before them:
    channels of the raw input are few.

    >>> from lnkernel import stax
    >>> stax.GlobalSelfAttention(64, 16, 16, 4, W_key_std=2.0, b_std=0.1).arch
    Attention(channels=64, heads=4, weights='softmax', scaling='linear', QK_std=2.0, OV_std=1.0, b_std=0.1,
              embedding=None)
    """
    check_axes("GlobalSelfAttention", batch_axis, channel_axis)
    kind, mechanism = str(pos_emb_type).upper(), str(attention_mechanism).lower()
    if kind not in ("NONE", "SUM", "CONCAT"):
        _refuse("GlobalSelfAttention", f"pos_emb_type={pos_emb_type!r} is not known", 'Take "SUM"')
    if kind != "NONE" and n_chan_pos_emb is not None:
        _refuse(
            "GlobalSelfAttention",
            f"n_chan_pos_emb={n_chan_pos_emb!r} is a share of channels whose number is not known here",
            "Omit it, and put the share into W_pos_emb_std",
        )
    QK_std, OV_std, std = W_key_std * W_query_std, W_out_std * W_value_std, W_pos_emb_std
    if kind == "CONCAT":
        # side by side, inputs and embeddings have one half of the channels each: half of K + σ² R, the kernel of a sum
        QK_std = 0.5 * QK_std
        OV_std = 0.5**0.5 * OV_std if val_pos_emb else OV_std
    embedding = (
        None if kind == "NONE" else arch.PositionalEmbedding(std, pos_emb_decay_fn, pos_emb_p_norm)
    )
    made = arch.Attention(
        n_chan_out,
        n_heads,
        mechanism,
        "linear" if linear_scaling else "sqrt",
        QK_std,
        OV_std,
        0.0 if b_std is None else b_std,
        None if val_pos_emb else embedding,
    )
    if val_pos_emb and embedding is not None:
        return layer_of(arch.serial(embedding, made))
    return layer_of(made)


def _convolution(
    kind: type[arch.Conv] | type[arch.ConvLocal] | type[arch.ConvTranspose],
    given: tuple[int, Sequence[int], Sequence[int] | None, str, float, float | None],
    dimension_numbers: Sequence[str] | None,
    parameterization: str,
    s: tuple[int, int],
) -> Layer:
    """The layer of this kind, with strides of 1 and no bias where none are given."""
    out_chan, filter_shape, strides, padding, W_std, b_std = given
    chosen = check_parameterization(kind.__name__, parameterization, s, b_std)
    size = tuple(filter_shape)
    _check_layout(kind.__name__, dimension_numbers, len(size))
    steps = (1,) * len(size) if strides is None else tuple(strides)
    bias = 0.0 if b_std is None else b_std
    return layer_of(kind(out_chan, size, steps, _word(padding), W_std=W_std, b_std=bias), chosen)


def _word(given: str) -> str:
    """A member of an enumeration as the word that it is; all else is left to the layer's own check."""
    return given.value if isinstance(given, Padding) else given


def _window(
    name: str,
    shape: Sequence[int],
    strides: Sequence[int] | None,
    batch_axis: int,
    channel_axis: int,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    check_axes(name, batch_axis, channel_axis)
    size = tuple(shape)
    return size, (1,) * len(size) if strides is None else tuple(strides)


def _check_layout(name: str, numbers: Sequence[str] | None, axes: int) -> None:
    """Channels last, in the input and behind it; the letters of the axes in between are free there."""
    if numbers is None:
        return
    given = tuple(numbers)
    plain = len(given) == 3 and all(
        isinstance(each, str) and len(each) == axes + 2 for each in given
    )
    if plain:
        before, kernel, behind = given
        middle = before[1:-1]
        plain = (before, kernel, behind) == (f"N{middle}C", f"{middle}IO", f"N{middle}C")
    if not plain:
        _refuse(name, f"dimension_numbers={numbers!r} does not have the channels last", LAST)


def _refuse(name: str, reason: str, remedy: str) -> NoReturn:
    raise ArchitectureError(f"stax.{name}", "", reason, remedy)
