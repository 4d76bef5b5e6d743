"""Kernels of small images to 50 digits, by the textbook's recursion over all pairs of positions.

It shares nothing with the library but the descriptions of the layers: every number is an mpmath number, and a pair of
inputs is three matrices over positions, K of the first with itself, of both, and of the second with itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import mpmath as mp

import lnkernel as lnk

DIGITS = 50
Place = tuple[int, ...]
Block = dict[tuple[Place, Place], Any]


class Pair:
    """K and Θ between all positions: blocks[i, j] for inputs i and j; the means of the features of each."""

    def __init__(
        self,
        shape: Place,
        K: dict[tuple[int, int], Block],
        T: Block,
        mean: list[dict[Place, Any]] | None,
    ):
        self.shape, self.K, self.T, self.mean = shape, K, T, mean


def kernels(arch: lnk.Serial, x: Any, y: Any) -> tuple[Any, Any]:
    """K and Θ of two images (height, width, channels) or sequences (length, channels)."""
    with mp.workdps(DIGITS):
        shape = x.shape[:-1]
        inputs = [
            {p: [mp.mpf(float(v)) for v in image[p]] for p in places(shape)} for image in (x, y)
        ]

        def dot(i: int, j: int) -> Block:
            return {
                (p, q): mp.fsum(a * b for a, b in zip(inputs[i][p], inputs[j][q], strict=True))
                / x.shape[-1]
                for p in places(shape)
                for q in places(shape)
            }

        K = {(i, j): dot(i, j) for i, j in ((0, 0), (0, 1), (1, 1))}
        pair = Pair(shape, K, {key: mp.mpf(0) for key in K[0, 1]}, None)
        for layer in arch.layers:
            pair = STEPS[type(layer)](layer, pair)
        return pair.K[0, 1][(), ()], pair.T[(), ()]


def places(shape: Place) -> Iterator[Place]:
    return itertools.product(*map(range, shape))


def taps(
    shape: Place, size: Place, strides: Place, padding: str
) -> tuple[Place, Callable[[Place], list[Place | None]]]:
    """The shape behind a window, and the positions that it reads for each of its steps; None is a zero."""
    lows, counts = [], []
    for n, k, s in zip(shape, size, strides, strict=True):
        count = (n - k) // s + 1 if padding == "VALID" else (n + s - 1) // s
        added = 0 if padding == "VALID" else max((count - 1) * s + k - n, 0)
        lows.append(added // 2)
        counts.append(count)

    def read(P: Place) -> list[Place | None]:
        found: list[Place | None] = []
        for f in places(size):
            at = [a * s + b - low for a, s, b, low in zip(P, strides, f, lows, strict=True)]
            if padding == "CIRCULAR":
                at = [a % n for a, n in zip(at, shape, strict=True)]
            inside = all(0 <= a < n for a, n in zip(at, shape, strict=True))
            found.append(tuple(at) if inside else None)
        return found

    return tuple(counts), read


def everywhere(
    pair: Pair, change: Callable[[Block], Block], T: Block, shape: Place, mean: Any = None
) -> Pair:
    return Pair(shape, {key: change(block) for key, block in pair.K.items()}, T, mean)


def dense(layer: Any, pair: Pair) -> Pair:
    W, b = mp.mpf(layer.W_std) ** 2, mp.mpf(layer.b_std) ** 2
    made = everywhere(pair, lambda K: {k: W * v + b for k, v in K.items()}, {}, pair.shape)
    made.T = {k: made.K[0, 1][k] + W * v for k, v in pair.T.items()}
    return made


def conv(layer: Any, pair: Pair) -> Pair:
    shape, read = taps(pair.shape, layer.filter, layer.strides, layer.padding)

    def patches(block: Block) -> Block:
        made = {}
        for P in places(shape):
            for Q in places(shape):
                both = zip(read(P), read(Q), strict=True)
                terms = [block[p, q] for p, q in both if p is not None and q is not None]
                made[P, Q] = mp.fsum(terms) / len(read(P))
        return made

    return dense(layer, everywhere(pair, patches, patches(pair.T), shape))


def conv_local(layer: lnk.ConvLocal, pair: Pair) -> Pair:
    """Different positions have weights and biases of their own, and nothing in common."""
    made = conv(layer, pair)

    def alone(block: Block) -> Block:
        return {(p, q): v if p == q else mp.mpf(0) for (p, q), v in block.items()}

    return everywhere(made, alone, alone(made.T), made.shape)


def conv_transpose(layer: lnk.ConvTranspose, pair: Pair) -> Pair:
    """Every position is written to all places of the filter; what is outside is cut, or comes in at the other end."""
    shape, read = [], []
    for n, k, s in zip(pair.shape, layer.filter, layer.strides, strict=True):
        whole, more = n * s, max(k - s, 0)
        count = whole + more if layer.padding == "VALID" else whole
        cut = 0 if layer.padding == "VALID" else more // 2  # of the first places
        shape.append(count)
        found: list[dict[int, int]] = [{} for _ in range(count)]  # position by place of the filter
        for p in range(n):
            for f in range(k):
                at = p * s + f - cut
                at = at % whole if layer.padding == "CIRCULAR" else at
                if 0 <= at < count:
                    found[at][f] = p
        read.append(found)

    def patches(block: Block) -> Block:
        made = {}
        for P in places(tuple(shape)):
            for Q in places(tuple(shape)):
                terms = []
                for f in places(layer.filter):
                    both = [
                        tuple(axis[at].get(g) for axis, at, g in zip(read, R, f, strict=True))
                        for R in (P, Q)
                    ]
                    if not any(None in one for one in both):
                        terms.append(block[both[0], both[1]])
                made[P, Q] = mp.fsum(terms) / len(list(places(layer.filter)))
        return made

    return dense(layer, everywhere(pair, patches, patches(pair.T), tuple(shape)))


def crop(layer: lnk.Crop, pair: Pair) -> Pair:
    kept = [list(range(n)) for n in pair.shape]
    kept[layer.axis] = kept[layer.axis][slice(layer.start, layer.stop, layer.step)]
    return interpolated(pair, [{(i, p): mp.mpf(1) for i, p in enumerate(one)} for one in kept])


def resize(layer: lnk.Resize, pair: Pair) -> Pair:
    """As jax.image.resize says it: "nearest", or "linear", which looks further where the image gets smaller."""
    weights = []
    for n, m in zip(pair.shape, layer.shape, strict=True):
        m = n if m == -1 else m
        made = {}
        for i in range(m):
            centre = (i + mp.mpf(1) / 2) * n / m - mp.mpf(1) / 2
            if layer.method == "nearest":
                made[i, int(mp.floor(centre + mp.mpf(1) / 2))] = mp.mpf(1)
                continue
            wide = max(mp.mpf(n) / m, 1) if layer.antialias else 1
            row = {p: max(mp.mpf(0), 1 - abs(centre - p) / wide) for p in range(n)}
            made |= {(i, p): w / mp.fsum(row.values()) for p, w in row.items()}
        weights.append(made)
    return interpolated(pair, weights)


def interpolated(pair: Pair, weights: list[dict[tuple[int, int], Any]]) -> Pair:
    """Sums over positions with weights (place behind, place before) along each axis."""
    shape = tuple(1 + max(i for i, _ in one) for one in weights)

    def rows(P: Place) -> dict[Place, Any]:
        along = [
            {p: w for (i, p), w in one.items() if i == at}
            for one, at in zip(weights, P, strict=True)
        ]
        return {
            p: mp.fprod(one[k] for one, k in zip(along, p, strict=True))
            for p in itertools.product(*along)
        }

    def mixed(block: Block) -> Block:
        return {
            (P, Q): mp.fsum(
                v * w * block[p, q] for p, v in rows(P).items() for q, w in rows(Q).items()
            )
            for P in places(shape)
            for Q in places(shape)
        }

    mean = pair.mean and [
        {P: mp.fsum(w * m[p] for p, w in rows(P).items()) for P in places(shape)} for m in pair.mean
    ]
    return everywhere(pair, mixed, mixed(pair.T), shape, mean)


def flatten(layer: lnk.Flatten, pair: Pair) -> Pair:
    def mean(block: Block) -> Block:
        here = [block[p, p] for p in places(pair.shape)]
        return {((), ()): mp.fsum(here) / len(here)}

    return everywhere(pair, mean, mean(pair.T), ())


def pool(layer: Any, pair: Pair) -> Pair:
    if isinstance(layer, lnk.GlobalAvgPool | lnk.GlobalSumPool):
        mean = isinstance(layer, lnk.GlobalAvgPool)
        shape, factor = (), mp.mpf(1) / (len(list(places(pair.shape))) if mean else 1)

        def read(P: Place) -> list[Place | None]:
            return list(places(pair.shape))
    else:
        window = layer.slides
        shape, read = taps(pair.shape, window.size, window.strides, window.padding)
        factor = (
            mp.mpf(1) / len(read(next(places(shape))))
            if isinstance(layer, lnk.AvgPool)
            else mp.mpf(1)
        )

    def summed(block: Block) -> Block:
        return {
            (P, Q): factor**2
            * mp.fsum(block[p, q] for p in read(P) for q in read(Q) if None not in (p, q))
            for P in places(shape)
            for Q in places(shape)
        }

    mean = pair.mean and [
        {P: factor * mp.fsum(m[p] for p in read(P) if p is not None) for P in places(shape)}
        for m in pair.mean
    ]
    return everywhere(pair, summed, summed(pair.T), shape, mean)


def relu(layer: lnk.Relu, pair: Pair) -> Pair:
    """Cho and Saul's arc-cosine kernels of degrees 1 and 0."""

    def of(q1: Any, q2: Any, k: Any) -> tuple[Any, Any]:
        root = mp.sqrt(q1 * q2)
        if root == 0:
            return mp.mpf(0), mp.mpf(1) / 4
        angle = mp.acos(max(-1, min(1, k / root)))
        value = root * (mp.sin(angle) + (mp.pi - angle) * mp.cos(angle)) / (2 * mp.pi)
        return value, (mp.pi - angle) / (2 * mp.pi)

    def square(i: int, p: Place) -> Any:
        return pair.K[i, i][p, p]

    K: dict[tuple[int, int], Block] = {key: {} for key in pair.K}
    T = {}
    for (i, j), block in pair.K.items():
        for (p, q), k in block.items():
            value, slope = of(square(i, p), square(j, q), k)
            K[i, j][p, q] = value
            if (i, j) == (0, 1):
                T[p, q] = slope * pair.T[p, q]
    mean = [{p: mp.sqrt(square(i, p) / (2 * mp.pi)) for p in places(pair.shape)} for i in (0, 1)]
    return Pair(pair.shape, K, T, mean)


def layer_norm(layer: lnk.LayerNorm, pair: Pair) -> Pair:
    zero = {p: mp.mpf(0) for p in places(pair.shape)}
    means = pair.mean or [zero, zero]
    taken = means
    if layer.axes == "all":
        taken = [dict.fromkeys(m, mp.fsum(m.values()) / len(m)) for m in means]
    eps = mp.mpf(layer.eps)

    def centred(i: int, j: int) -> Block:
        mi, mj = means[i], means[j]
        return {
            (p, q): k - taken[i][p] * mj[q] - mi[p] * taken[j][q] + taken[i][p] * taken[j][q]
            for (p, q), k in pair.K[i, j].items()
        }

    K = {key: centred(*key) for key in pair.K}
    norms = []
    for i in (0, 1):
        own = {p: K[i, i][p, p] for p in places(pair.shape)}
        if layer.axes == "all":
            own = dict.fromkeys(own, mp.fsum(own.values()) / len(own))
        norms.append({p: mp.sqrt(v + eps) for p, v in own.items()})
    K = {
        (i, j): {(p, q): k / norms[i][p] / norms[j][q] for (p, q), k in block.items()}
        for (i, j), block in K.items()
    }
    T = {(p, q): t / norms[0][p] / norms[1][q] for (p, q), t in pair.T.items()}
    mean = None
    if pair.mean is not None and layer.axes == "all":
        mean = [{p: (m - taken[i][p]) / norms[i][p] for p, m in means[i].items()} for i in (0, 1)]
    return Pair(pair.shape, K, T, mean)


def position_covariance(layer: lnk.PositionalEmbedding, shape: Place) -> Block:
    def R(p: Place, q: Place) -> Any:
        if layer.decay is None:
            return mp.mpf(p == q)
        distance = mp.fsum(mp.mpf(abs(a - b)) ** layer.norm for a, b in zip(p, q, strict=True))
        return mp.exp(-distance / mp.mpf(layer.decay) ** layer.norm)

    return {(p, q): mp.mpf(layer.std) ** 2 * R(p, q) for p in places(shape) for q in places(shape)}


def plus(block: Block, other: Block) -> Block:
    return {key: value + other[key] for key, value in block.items()}


def embedding(layer: lnk.PositionalEmbedding, pair: Pair) -> Pair:
    R = position_covariance(layer, pair.shape)
    return everywhere(pair, lambda K: plus(K, R), plus(pair.T, R), pair.shape, pair.mean)


def attention(layer: lnk.Attention, pair: Pair) -> Pair:
    """Hron et al. 2020, sum by sum."""
    all_places = list(places(pair.shape))
    QK, OV, b = (mp.mpf(x) for x in (layer.QK_std, layer.OV_std, layer.b_std))
    zero = {key: mp.mpf(0) for key in pair.T}
    R = zero if layer.embedding is None else position_covariance(layer.embedding, pair.shape)
    both = 0, 1
    if layer.scaling == "sqrt":
        return random_scores(pair, R, (QK * OV) ** 2, b**2)

    def weights(i: int) -> dict[tuple[Place, Place], Any]:
        own = {key: QK * value for key, value in plus(pair.K[i, i], R).items()}
        made = {}
        for p in all_places:
            row = {a: own[p, a] for a in all_places}
            if layer.weights == "softmax":
                powers = {a: mp.exp(score - max(row.values())) for a, score in row.items()}
                row = {a: value / mp.fsum(powers.values()) for a, value in powers.items()}
            elif layer.weights != "identity":
                row = {a: max(v, 0) if layer.weights == "relu" else abs(v) for a, v in row.items()}
            made |= {(p, a): weight for a, weight in row.items()}
        return made

    zeta = [weights(i) for i in both]

    def mixed(i: int, j: int, block: Block) -> Block:
        half = {
            (p, b): mp.fsum(zeta[i][p, a] * block[a, b] for a in all_places)
            for p in all_places
            for b in all_places
        }
        return {
            (p, q): mp.fsum(half[p, b] * zeta[j][q, b] for b in all_places)
            for p in all_places
            for q in all_places
        }

    M = {key: mixed(*key, block) for key, block in pair.K.items()}
    K = {key: {k: OV**2 * v + b**2 for k, v in block.items()} for key, block in M.items()}
    T = {k: OV**2 * (v + 2 * M[0, 1][k]) + b**2 for k, v in mixed(0, 1, pair.T).items()}
    return Pair(pair.shape, K, T, None)


def random_scores(pair: Pair, R: Block, s2: Any, b2: Any) -> Pair:
    def dot(A: Block, B: Block) -> Any:
        return mp.fsum(A[key] * B[key] for key in A)

    def mixed(K: Block) -> Block:
        size = dot(plus(K, R), K)
        return {key: s2 * size * value + b2 for key, value in plus(K, R).items()}

    V, W = pair.K[0, 1], pair.T
    K, T = plus(V, R), plus(W, R)
    by_two = dot(K, W) + dot(V, T)  # the values' way and the keys'
    made = {k: s2 * (by_two * K[k] + dot(K, V) * (T[k] + 4 * K[k])) + b2 for k in K}
    return Pair(pair.shape, {key: mixed(block) for key, block in pair.K.items()}, made, None)


STEPS: dict[type, Callable[[Any, Pair], Pair]] = {
    lnk.Dense: dense,
    lnk.Conv: conv,
    lnk.ConvLocal: conv_local,
    lnk.ConvTranspose: conv_transpose,
    lnk.Crop: crop,
    lnk.Resize: resize,
    lnk.Flatten: flatten,
    lnk.AvgPool: pool,
    lnk.SumPool: pool,
    lnk.GlobalAvgPool: pool,
    lnk.GlobalSumPool: pool,
    lnk.Relu: relu,
    lnk.LayerNorm: layer_norm,
    lnk.Attention: attention,
    lnk.PositionalEmbedding: embedding,
}
