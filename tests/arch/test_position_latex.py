"""`lnkernel.latex` of networks on images and sequences: what a reader of the lines computes is what the kernels are."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import jax
import numpy as np
import pytest
from formula_reader import compute

import lnkernel as lnk
from lnkernel import (
    Attention,
    AvgPool,
    Conv,
    ConvLocal,
    ConvTranspose,
    Crop,
    Dense,
    Flatten,
    GlobalAvgPool,
    GlobalSumPool,
    LayerNorm,
    PositionalEmbedding,
    Relu,
    Resize,
    RMSNorm,
    SumPool,
    residual,
    serial,
)

C, OUT = partial(Conv, 8, W_std=1.25, b_std=0.5), Dense(1, 0.75, 0.25)
LARGER = partial(ConvTranspose, 8, W_std=1.25, b_std=0.5)
LOCAL, D = partial(ConvLocal, 8, W_std=1.25, b_std=0.5), Dense(8, 1.25, 0.5)
EMBEDDING = PositionalEmbedding(0.5, decay=2.0)
NETWORKS: dict[str, tuple[lnk.Node, tuple[int, ...]]] = {
    "flattened": (
        serial(C((3, 3)), Relu(), C((3, 3), padding="VALID"), Relu(), Flatten(), OUT),
        (4, 4),
    ),
    "strides": (
        serial(C((3, 2), 2), Relu(), C((2, 2), padding="CIRCULAR"), Flatten(), OUT),
        (5, 4),
    ),
    "local": (
        serial(
            *(LOCAL(3), LayerNorm(scale=True), Relu(), C(2), Relu(), LOCAL(2, 2, "CIRCULAR")),
            *(Relu(), GlobalAvgPool(), OUT),
        ),
        (5,),
    ),
    "transposed": (
        serial(C(3), LayerNorm(scale=True), Relu(), LARGER(3, 2), Relu(), GlobalAvgPool(), OUT),
        (4,),
    ),
    "transposed, cut": (
        serial(
            LARGER((2, 3), (2, 1), "VALID"), Relu(), LARGER((3, 1), 2, "CIRCULAR"), Flatten(), OUT
        ),
        (3, 2),
    ),
    "crop": (
        serial(C((2, 2)), LayerNorm(scale=True), Crop(1, None, 2, -1), Relu(), Flatten(), OUT),
        (2, 4),
    ),
    "another size": (
        serial(
            *(C((2, 2)), Relu(), Resize((5, -1)), LayerNorm(), C((2, 2)), Relu()),
            *(Resize((2, 5), "nearest"), GlobalAvgPool(), OUT),
        ),
        (3, 4),
    ),
    "volumes": (serial(C((2, 1, 2)), Relu(), Flatten(), OUT), (2, 2, 3)),
    "norms": (
        serial(C(3), LayerNorm(), Relu(), C(3), RMSNorm(0.5, scale=True), Relu(), Flatten(), OUT),
        (4,),
    ),
    "raw input": (serial(LayerNorm(), C(3), Flatten(), OUT), (4,)),
    "pooled": (serial(C((3, 3)), LayerNorm(), Relu(), GlobalAvgPool(), OUT), (3, 3)),
    "pooled inside": (
        serial(C(3), Relu(), AvgPool(2), C(2), Relu(), SumPool(2, 1, "SAME"), Flatten(), OUT),
        (6,),
    ),
    "norm behind a pooling": (
        serial(C(3), Relu(), AvgPool(2, padding="SAME"), LayerNorm(), C(1), GlobalSumPool(), OUT),
        (5,),
    ),
    "scales behind a pooling": (
        serial(C(3), LayerNorm(scale=True, bias=True), AvgPool(2), C(2), Relu(), Flatten(), OUT),
        (4,),
    ),
    "scale at the end": (serial(C(3), LayerNorm(scale=True), Flatten()), (4,)),
    "norm of all": (serial(C(3), LayerNorm(0.25, axes="all"), Relu(), Flatten(), OUT), (4,)),
    "norm of all, means": (
        serial(
            C(3),
            Relu(),
            LayerNorm(axes="all", scale=True, bias=True),
            LayerNorm(),
            C(2),
            GlobalAvgPool(),
            OUT,
        ),
        (4,),
    ),
    "residual": (
        serial(C(3), residual(Relu(), C(3)), LayerNorm(), Relu(), GlobalAvgPool(), OUT),
        (4,),
    ),
    "cos": (serial(C(3), lnk.Cos(0.5), C(2), Flatten(), OUT), (3,)),
    "embedding": (
        serial(D, LayerNorm(scale=True), EMBEDDING, C(1), Relu(), GlobalAvgPool(), OUT),
        (4,),
    ),
    "own vectors": (serial(D, PositionalEmbedding(0.5), Relu(), GlobalAvgPool(), OUT), (2, 2)),
    "softmax": (
        serial(
            D,
            LayerNorm(scale=True),
            Attention(8, QK_std=1.5, OV_std=0.5, b_std=0.25),
            GlobalAvgPool(),
            OUT,
        ),
        (4,),
    ),
    "softmax of the input": (serial(Attention(8), Flatten(), OUT), (4,)),
    "identity": (
        serial(
            D, Attention(8, weights="identity", QK_std=0.5, embedding=EMBEDDING), Flatten(), OUT
        ),
        (4,),
    ),
    "relu": (serial(D, Attention(8, weights="relu", OV_std=1.5), Relu(), Flatten(), OUT), (4,)),
    "abs": (serial(D, Attention(8, weights="abs", QK_std=0.5), Flatten(), OUT), (4,)),
    "sqrt": (
        serial(
            D,
            Attention(8, weights="identity", scaling="sqrt", QK_std=0.5, b_std=0.5),
            Flatten(),
            OUT,
        ),
        (4,),
    ),
    "sqrt, embedding": (
        serial(
            D,
            Attention(8, weights="identity", scaling="sqrt", OV_std=0.5, embedding=EMBEDDING),
            Flatten(),
            OUT,
        ),
        (3,),
    ),
    "sqrt of the input": (
        serial(Attention(8, weights="identity", scaling="sqrt"), Flatten(), OUT),
        (3,),
    ),
    "sqrt of the input, embedding": (
        serial(
            D,
            LayerNorm(bias=True),
            Attention(8, weights="identity", scaling="sqrt", embedding=EMBEDDING),
            GlobalAvgPool(),
        ),
        (3,),
    ),
}
LINE = re.compile(r"\\text\{(.*?)\}(.*?) &\\quad & K(\S*) &= (.*?) &\\quad \\Theta\S* &= (.*)")
Block = np.ndarray


def images(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(3).normal(size=(2, *shape, 3))


def selections(says: str, shape: tuple[int, ...]) -> tuple[list[np.ndarray], tuple[int, ...]]:
    """For every place of a window the matrix (windows, positions) that picks its position, and the windows' shape."""
    if "all positions" in says:
        count = int(np.prod(shape))
        return list(np.eye(count)[:, None]), (1,)
    texts = [part.strip(" ,") for part in says.split(r"\;") if part.strip(" ,")]
    numbers = [[int(n) for n in re.findall(r"\d+", text)] for text in texts]
    size, strides = numbers[0], numbers[1] if "strides" in says else [1] * len(shape)
    along = [
        _along(length, k, stride, texts[-1])
        for length, k, stride in zip(shape, size, strides, strict=True)
    ]
    places = [reduce(np.kron, combination) for combination in itertools.product(*along)]
    return places, tuple(len(one[0]) for one in along)


def _along(length: int, size: int, stride: int, padding: str) -> list[np.ndarray]:
    steps = (length - size) // stride + 1 if "VALID" in padding else -(-length // stride)
    low = 0 if "VALID" in padding else max((steps - 1) * stride + size - length, 0) // 2
    made = []
    for place in range(size):
        matrix = np.zeros((steps, length))
        for step in range(steps):
            at = step * stride + place - low
            if "CIRCULAR" in padding or 0 <= at < length:
                matrix[step, at % length] = 1.0
        made.append(matrix)
    return made


def operators(
    layer: str, says: str, shape: tuple[int, ...], weights: list[np.ndarray]
) -> dict[str, Any]:
    """What the letters of a line stand for, and the shape of the positions behind it."""
    if layer in ("Conv", "ConvLocal", "AvgPool", "SumPool", "GlobalAvgPool", "GlobalSumPool"):
        places, after = selections(says, shape)
        total = sum(places)

        def pool(block: Block) -> Block:
            return total @ block if block.shape[1] == 1 else total @ block @ total.T

        def means(block: Block) -> Block:
            return pool(block) / len(places) ** (1 if block.shape[1] == 1 else 2)

        def filters(block: Block) -> Block:
            return sum(one @ block @ one.T for one in places) / len(places)

        def equal(block: Block) -> Block:
            return np.diag(np.diag(block))

        return {"A": filters, "D": equal, "P": means, "S": pool, "shape": after}
    if layer == "ConvTranspose":
        writes, after = written(says, shape)
        return {
            "A": lambda block: sum(one @ block @ one.T for one in writes) / len(writes),
            "shape": after,
        }
    if layer in ("Crop", "Resize"):
        move, after = moved(layer, says, shape)
        return {
            "M": lambda block: move @ block if block.shape[1] == 1 else move @ block @ move.T,
            "shape": after,
        }
    if layer == "Flatten":
        return {"T": lambda block: np.full((1, 1), np.trace(block) / len(block)), "shape": (1,)}
    if layer == "Attention" and weights:
        return {"Z": lambda block: weights[0] @ block @ weights[1].T, "shape": shape}
    return {"shape": shape}


def moved(layer: str, says: str, shape: tuple[int, ...]) -> tuple[Block, tuple[int, ...]]:
    """The matrix (positions behind, positions before) of a Crop or a Resize, and the shape behind it."""
    texts = [part.strip(" ,") for part in says.split(r"\;") if part.strip(" ,")]
    along = [np.eye(length) for length in shape]
    if layer == "Crop":
        parts = [int(text) if text else None for text in texts[1].split(":")]
        axis = int(re.search(r"-?\d+", texts[0])[0])  # type: ignore[index]
        along[axis] = along[axis][slice(*parts)]
    else:
        method, _, smooth = texts[1].removeprefix(r"\text{").removesuffix("}").partition(", ")
        sizes = [None if text == r"\cdot" else int(text) for text in texts[0].split(r" \times ")]
        for axis, size in enumerate(sizes):
            form = (size or shape[axis], shape[axis])
            along[axis] = np.asarray(
                jax.image.resize(along[axis], form, method, antialias=bool(smooth)), float
            )
    return reduce(np.kron, along), tuple(len(one) for one in along)


def written(says: str, shape: tuple[int, ...]) -> tuple[list[np.ndarray], tuple[int, ...]]:
    """For every place of a filter the matrix (places behind, positions) of a transposed convolution: it writes what
    stands at a position to so many places, some of which are cut off."""
    texts = [part.strip(" ,") for part in says.split(r"\;") if part.strip(" ,")]
    size = [int(n) for n in re.findall(r"\d+", texts[0])]
    strides = [int(n) for n in re.findall(r"\d+", texts[1])]
    along = []
    for n, k, s in zip(shape, size, strides, strict=True):
        more = max(k - s, 0)
        cut = 0 if "VALID" in says else more // 2
        made = []
        for f in range(k):
            full = np.zeros((n * s + more, n))
            full[np.arange(n) * s + f, np.arange(n)] = 1.0
            if "CIRCULAR" in says:
                full = np.roll(full, -cut, axis=0)
                full = np.add(full[: n * s], np.pad(full[n * s :], ((0, n * s - more), (0, 0))))
            made.append(
                full if "VALID" in says else full[cut : cut + n * s] if "SAME" in says else full
            )
        along.append(made)
    places = [reduce(np.kron, combination) for combination in itertools.product(*along)]
    return places, tuple(len(one[0]) for one in along)


def embedding(says: str, shape: tuple[int, ...]) -> Block:
    """R as the line says it."""
    places = np.indices(shape).reshape(len(shape), -1)
    apart = np.abs(places[:, :, None] - places[:, None])
    if "1_{p = p'}" in says:
        return (apart.sum(0) == 0).astype(float)
    scale, power = (float(n) for n in re.search(r"e\^\{-d/(\S+)\}.*\|\^\{(\S+)\}", says).groups())  # type: ignore[union-attr]
    return np.exp(-(apart**power).sum(0) / scale)


def attention_weights(text: str, names: dict[str, Any]) -> Block:
    """ζ of one input as the line says it."""
    function = {r"\mathrm{softmax}(": "softmax", r"\max(": "relu", "|": "abs"}
    kind, inner = next(
        (
            (name, text[len(start) : -1])
            for start, name in function.items()
            if text.startswith(start)
        ),
        ("identity", text),
    )
    scores = compute(inner.removesuffix(", 0").replace("(x, x)", ""), names)
    exponentials = np.exp(scores)
    return {
        "softmax": exponentials / exponentials.sum(1, keepdims=True),
        "identity": scores,
        "relu": np.maximum(scores, 0),
        "abs": np.abs(scores),
    }[kind]


def by_hand(text: str, X: np.ndarray) -> tuple[float, float]:
    """K and Θ of two images, line by line, for all positions of both."""
    rows = X.reshape(2, -1, X.shape[-1])
    sides = ((0, 0), (1, 1), (0, 1))
    known: list[dict[str, Any]] = [{}, {}, {}]
    shapes: dict[str, tuple[int, ...]] = {}
    for line in text.splitlines():
        found = LINE.match(line.removesuffix(r" \\"))
        if found is None:
            continue
        layer, says, at, formula, rest = found.groups()
        theta_formula, _, mean = rest.partition(r" &\quad m")
        mean = mean.partition("&= ")[2]
        if layer == "input":
            blocks = [rows[i] @ rows[j].T / X.shape[-1] for i, j in sides]
            means: list[Any] = [row.mean(1, keepdims=True) for row in rows]
            shapes[at] = X.shape[1:-1]
        else:
            before = re.search(r"(?:K|q|\\theta|E\})(_\{\d+\})", formula)[1]  # type: ignore[index]
            _define(known, layer, says, at, shapes[before])
            shapes[at] = known[0].pop("shape")
            blocks = [compute(formula, names) for names in known]
            means = [compute(mean, names) for names in known[:2]] if mean else [0.0, 0.0]
        lengths = [np.diag(block)[:, None] for block in blocks[:2]]
        for names, block, (i, j) in zip(known, blocks, sides, strict=True):
            names |= {f"K{at}": block, f"q{at}": lengths[i], f"q{at}'": lengths[j].T}
            names |= {f"m{at}": means[i], f"m{at}'": np.transpose(means[j])}
            cosine = block / np.sqrt(lengths[i] * lengths[j].T)
            names[rf"\theta{at}"] = np.arccos(np.clip(cosine, -1, 1))
            names[rf"\Theta{at}"] = 0.0
            if layer != "input":
                names[rf"\Theta{at}"] = compute(theta_formula, names)
    return float(np.squeeze(blocks[2])), float(np.squeeze(known[2][rf"\Theta{at}"]))


def _define(
    known: list[dict[str, Any]], layer: str, says: str, at: str, shape: tuple[int, ...]
) -> None:
    """Put what the line says of its layer among the names of all three pairs of inputs."""
    if r"\phi" in says:
        for names in known:
            names[f"phi {at[2:-1]}"] = says.partition(" = ")[2]
    if f"R{at}" in says:
        for names in known:
            names[f"R{at}"] = embedding(says, shape)
    weights: list[np.ndarray] = []
    if r"\zeta" in says:
        definition = says.partition(rf"\zeta{at} = ")[2].partition(rf",\; R{at}")[0]
        weights = [attention_weights(definition, names) for names in known[:2]]
    for names, (i, j) in zip(known, ((0, 0), (1, 1), (0, 1)), strict=True):
        made: dict[str, Callable[[Block], Block]] = operators(
            layer, says, shape, [weights[i], weights[j]] if weights else []
        )
        names["shape"] = made.pop("shape")
        names |= {rf"\mathcal{{{letter}}}{at}": function for letter, function in made.items()}


@pytest.mark.parametrize("name", NETWORKS)
def test_lines_give_the_kernels(name: str) -> None:
    arch, shape = NETWORKS[name]
    X = images(shape)
    K, theta = by_hand(lnk.latex(arch), X)
    exact = lnk.kernels(arch)(X[:1], X[1:])
    assert pytest.approx(float(exact.nngp[0, 0]), rel=3e-6) == K  # of numbers with six digits
    assert theta == pytest.approx(float(exact.ntk[0, 0]), rel=3e-6)


@pytest.mark.parametrize(
    "name, old, new",
    [
        ("flattened", "SAME", "CIRCULAR"),
        ("flattened", r"\text{VALID}", r"\text{SAME}"),
        ("strides", r"2 \times 2,\; \text{SAME}", r"2 \times 1,\; \text{SAME}"),
        ("local", r"\mathcal{D}_{6}(1.5625", r"(1.5625"),
        ("transposed", r"\text{SAME},\; \text{zeros", r"\text{CIRCULAR},\; \text{zeros"),
        ("crop", "1::2", "0::2"),
        ("another size", "linear, antialias", "nearest"),
        ("pooled inside", r"\mathcal{S}", r"\mathcal{P}"),
        ("pooled", r"\mathcal{P}_{4}(\Theta_{3})", r"\mathcal{P}_{4}(K_{3})"),
        ("norm of all, means", r"- \overline{m_{2}}\,m_{2}'", r"+ \overline{m_{2}}\,m_{2}'"),
        ("softmax", r"2\,\mathcal{Z}", r"3\,\mathcal{Z}"),
        ("softmax", "1.5", "1.6"),
        ("sqrt", r"4\,", r"3\,"),
        ("sqrt, embedding", r"+ \langle K_{1}, \Theta_{1}", r"- \langle K_{1}, \Theta_{1}"),
        ("embedding", "e^{-d/4}", "e^{-d/2}"),
    ],
)
def test_a_wrong_line_is_caught(name: str, old: str, new: str) -> None:
    arch, shape = NETWORKS[name]
    text, X = lnk.latex(arch), images(shape)
    assert old in text
    assert by_hand(text.replace(old, new), X) != pytest.approx(by_hand(text, X), rel=1e-5)


def test_positions_are_explained_where_there_are_some() -> None:
    assert "positions" not in lnk.latex(lnk.mlp(hidden=1))
    text = lnk.latex(lnk.cnn(hidden=1, norm="first"))
    assert (
        r"q_l = K_l(x, x)_{pp}" in text and r"\mathcal{A}_l" in text and r"\mathcal{P}" not in text
    )


def test_a_function_of_the_distance_is_named() -> None:
    arch = serial(D, PositionalEmbedding(decay=lambda d: 1 / (1 + d)), GlobalAvgPool(), OUT)
    assert r"\mathrm{decay}(d)" in lnk.latex(arch)
