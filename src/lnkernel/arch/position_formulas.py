r"""What the recursion of a kernel says of layers on images and sequences.

Here $K_l$ and $\Theta_l$ are blocks: a number for every position $p$ of the one input and $p'$ of the other. What acts
on every position by itself has the formula of `lnkernel.arch.formulas`, for every number of the block.
"""

from __future__ import annotations

import math

from lnkernel.arch.attention import Attention
from lnkernel.arch.convolution import Conv, ConvLocal, ConvTranspose
from lnkernel.arch.crop import Crop
from lnkernel.arch.embedding import PositionalEmbedding
from lnkernel.arch.pooling import Flatten, GlobalAvgPool, GlobalSumPool, SumPool, WindowPool
from lnkernel.arch.recursion import ALL, State, Step, add, brackets, number_text, recursion, times
from lnkernel.arch.resize import SAME, Resize
from lnkernel.arch.window import Window


def operator(letter: str, number: int, what: str) -> str:
    r"""An operator of layer `number` on a block.

    >>> operator("A", 1, "K_{0}")
    '\\mathcal{A}_{1}(K_{0})'
    """
    return rf"\mathcal{{{letter}}}_{{{number}}}({what})"


def window_text(window: Window) -> str:
    """Size, strides that are not 1, and padding.

    >>> window_text(Window((3, 3), (2, 2), "SAME"))
    ',\\\\; 3 \\\\times 3,\\\\; \\\\text{strides } 2 \\\\times 2,\\\\; \\\\text{SAME}'
    """
    parts = [r" \times ".join(map(str, window.size))]
    if any(stride != 1 for stride in window.strides):
        parts.append(r"\text{strides } " + r" \times ".join(map(str, window.strides)))
    return "".join(rf",\; {part}" for part in (*parts, rf"\text{{{window.padding}}}"))


def times_sum(factor: float, terms: str) -> str:
    """The product with a sum, which has brackets where the factor is written."""
    return terms if factor == 1 else times(factor, brackets(terms))


def squared(std: float) -> str | None:
    """The variance of a standard deviation; None where it is 0."""
    return number_text(float(std) ** 2) if float(std) else None


@recursion.register
def _(layer: Conv, before: State, number: int) -> Step:
    return _filtered(layer, before, number, window_text(layer.window))


@recursion.register
def _(layer: ConvTranspose, before: State, number: int) -> Step:
    """The same, where the filter reads the image with zeros between its positions."""
    says = window_text(Window(layer.filter, layer.strides, layer.padding))
    return _filtered(layer, before, number, says + r",\; \text{zeros in between}")


def _filtered(layer: Conv | ConvTranspose, before: State, number: int, says: str) -> Step:
    r"""$K' = \sigma_w^2 \mathcal{A}(K) + \sigma_b^2$ and $\Theta' = K' + \sigma_w^2 \mathcal{A}(\Theta + g K)$."""
    weight, inner = float(layer.W_std) ** 2, before.with_scales()
    through = times(weight, operator("A", number, inner)) if inner else None
    return Step(
        add(times(weight, operator("A", number, before.K)), squared(layer.b_std)),
        add(f"K_{{{number}}}", through),
        says=says,
    )


@recursion.register
def _(layer: ConvLocal, before: State, number: int) -> Step:
    r"""$K' = \mathcal{D}(\sigma_w^2 \mathcal{A}(K) + \sigma_b^2)$ and
    $\Theta' = K' + \sigma_w^2 \mathcal{D}(\mathcal{A}(\Theta + g K))$, where $\mathcal{D}$ keeps $p = p'$ alone."""
    weight, inner = float(layer.W_std) ** 2, before.with_scales()

    def at_equal(terms: str) -> str:
        return operator("D", number, terms)

    mean = operator("A", number, before.K)
    through = times(weight, at_equal(operator("A", number, inner))) if inner else None
    return Step(
        at_equal(add(times(weight, mean), squared(layer.b_std))),
        add(f"K_{{{number}}}", through),
        says=window_text(layer.window),
    )


@recursion.register
def _(layer: Flatten, before: State, number: int) -> Step:
    inner = before.with_scales()
    return Step(
        operator("T", number, before.K),
        operator("T", number, inner) if inner else "0",
        gaussian=before.gaussian,
    )


@recursion.register
def _(layer: WindowPool, before: State, number: int) -> Step:
    return _pool("P", before, number, window_text(layer.slides))


@recursion.register
def _(layer: SumPool, before: State, number: int) -> Step:
    return _pool("S", before, number, window_text(layer.slides))


@recursion.register
def _(layer: GlobalAvgPool, before: State, number: int) -> Step:
    return _pool("P", before, number, ALL)


@recursion.register
def _(layer: GlobalSumPool, before: State, number: int) -> Step:
    return _pool("S", before, number, ALL)


@recursion.register
def _(layer: Crop, before: State, number: int) -> Step:
    parts = ["" if each is None else str(each) for each in (layer.start, layer.stop, layer.step)]
    says = rf",\; \text{{axis {layer.axis}}},\; {':'.join(parts)}"
    return _pool("M", before, number, says)


@recursion.register
def _(layer: Resize, before: State, number: int) -> Step:
    sizes = r" \times ".join(r"\cdot" if n == SAME else str(n) for n in layer.shape)
    method = f"{layer.method}, antialias" if layer.mixes and layer.antialias else layer.method
    return _pool("M", before, number, rf",\; {sizes},\; \text{{{method}}}")


def _pool(letter: str, before: State, number: int, says: str) -> Step:
    """The same for K, Θ and the mean features; trainable scales of the channels stay what they are."""
    theta, mean = before.theta, None if before.means is None else before.means[0]
    return Step(
        operator(letter, number, before.K),
        operator(letter, number, theta) if theta else "0",
        operator(letter, number, mean) if mean else None,
        scales=before.scales,
        gaussian=before.gaussian,
        says=says,
    )


@recursion.register
def _(layer: PositionalEmbedding, before: State, number: int) -> Step:
    r"""$K' = K + \sigma^2 R$ and $\Theta' = \Theta + g K + \sigma^2 R$, because the vectors are trained."""
    added = times(float(layer.std) ** 2, f"R_{{{number}}}")
    mean = None if before.means is None else before.means[0]
    return Step(
        add(before.K, added),
        add(before.with_scales(), added) or "0",
        mean,
        gaussian=before.gaussian,
        says=rf",\; {embedding_text(layer, number)}",
    )


def embedding_text(layer: PositionalEmbedding, number: int) -> str:
    r"""The covariance of the vectors of two positions.

    >>> embedding_text(PositionalEmbedding(decay=2.0), 3)
    "R_{3} = e^{-d/4},\\; d = \\sum_i |p_i - p_i'|^{2}"
    """
    name = f"R_{{{number}}}"
    if layer.decay is None:
        return f"{name} = 1_{{p = p'}}"
    distance = rf"d = \sum_i |p_i - p_i'|^{{{number_text(layer.norm)}}}"
    if callable(layer.decay):
        return rf"{name} = \mathrm{{decay}}(d),\; {distance}"
    return rf"{name} = e^{{-d/{number_text(layer.decay**layer.norm)}}},\; {distance}"


@recursion.register
def _(layer: Attention, before: State, number: int) -> Step:
    embedding, says = None, ""
    if layer.embedding is not None and float(layer.embedding.std):
        embedding = times(float(layer.embedding.std) ** 2, f"R_{{{number}}}")
        says = rf",\; {embedding_text(layer.embedding, number)}"
    if layer.scaling == "sqrt":
        return _of_random_scores(layer, before, embedding, says)
    return _of_fixed_weights(layer, before, number, embedding, says)


def _of_fixed_weights(
    layer: Attention, before: State, number: int, embedding: str | None, says: str
) -> Step:
    r"""$K' = \sigma_{OV}^2 \mathcal{Z}(K) + \sigma_b^2$ and
    $\Theta' = \sigma_{OV}^2 (\mathcal{Z}(\Theta + g K) + 2 \mathcal{Z}(K)) + \sigma_b^2$."""
    keys = add(f"{before.K}(x, x)", embedding)
    scores = times_sum(float(layer.QK_std), keys)
    weights = {
        "softmax": rf"\mathrm{{softmax}}({scores})",
        "identity": scores,
        "relu": rf"\max({scores}, 0)",
        "abs": f"|{scores}|",
    }[layer.weights]
    value, inner = float(layer.OV_std) ** 2, before.with_scales()
    mixed = operator("Z", number, before.K)
    through = operator("Z", number, inner) if inner else None
    return Step(
        add(times(value, mixed), squared(layer.b_std)),
        add(times_sum(value, add(through, times(2, mixed))), squared(layer.b_std)),
        says=rf",\; \zeta_{{{number}}} = {weights}{says}",
    )


def _of_random_scores(layer: Attention, before: State, embedding: str | None, says: str) -> Step:
    r"""$K' = s^2 \langle L, K\rangle L + \sigma_b^2$ with $L = K + \sigma^2 R$, and what each of four layers of weights
    and each of three ways into the layer add to $\Theta$."""
    factor = math.prod(float(std) for std in (layer.QK_std, layer.OV_std)) ** 2
    inner, keys = before.with_scales(), add(before.K, embedding)
    slope = add(inner, embedding)  # of keys and queries
    size = _dot(keys, before.K)
    ways = [_dot(keys, inner) if inner else None, _dot(before.K, slope) if slope else None]
    if inner and not embedding:
        ways = [times(2, _dot(before.K, inner))]
    through = rf"{brackets(add(*ways))}\,{brackets(keys)}" if slope else None
    rest = rf"{size}\,{brackets(add(slope or None, times(4, brackets(keys))))}"
    return Step(
        add(times(factor, rf"{size}\,{brackets(keys)}"), squared(layer.b_std)),
        add(times_sum(factor, add(through, rest)), squared(layer.b_std)),
        says=says,
    )


def _dot(one: str, two: str) -> str:
    return rf"\langle {one}, {two} \rangle"
