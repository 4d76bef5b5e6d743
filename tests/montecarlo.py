r"""Finite random networks in float64: an oracle that knows the layers but no kernel.

Each draw samples the hidden parameters of one network of finite width and yields
its two kernels, averaged over the readout given the features $a$ before it:

- NNGP: $W_{std}^2\, \frac1n \sum_i a_i a'_i + b_{std}^2$;
- NTK: that, plus $W_{std}^2\, \frac1n \sum_{ij} r_i r_j \langle \nabla a_i, \nabla a'_j \rangle$.
  The mean over the readout $r$ needs $E\, r_i r_j = \delta_{ij}$ only, so its entries are
  random signs: they make the least noise.

The gradients come from backpropagation, and their products are summed on the way:
the gradient in a weight matrix is the outer product of the error and the layer's
input, so it need not be formed. The networks are plain NumPy, without compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray
Normals = Callable[[int], tuple[Array, Array]]  # fan-in -> weights and biases of the next Dense
Pullback = Callable[[Array], tuple[Array, Any]]  # error behind -> error before, part of the NTK


class Empirical(NamedTuple):
    """Means over the draws and their standard errors, each of shape (n, n)."""

    nngp: Array
    nngp_se: Array
    ntk: Array
    ntk_se: Array


def sample(arch: Any, x: Any, width: int, draws: int, seed: int = 0) -> Empirical:
    """The kernels of networks whose hidden layers all have `width` features.

    Args:
        arch: the architecture. Its own widths are ignored. If it does not end in a Dense,
            the kernels are those of its last features, averaged over the features.
        x: inputs, shape (n, d).
        width: a multiple of every group size.
        draws: number of independent networks.
        seed: of the random numbers.
    """
    return _summary(
        _kernels(arch, np.asarray(x, float), _fresh(rng, count, width, []))
        for rng, count in _batches(width, draws, seed)
    )


def extrapolate(
    arch: Any, x: Any, widths: tuple[int, int] = (128, 256), draws: int = 800, seed: int = 0
) -> Empirical:
    """The kernels at infinite width, up to O(1/width^2): Richardson on two widths, (w, m w).

    The m narrow networks of a draw are the diagonal blocks of the wide one. Most of
    the noise is then common to both widths, and the extrapolation hardly amplifies it.
    As a rule, standard errors below 0.5 % take 800 draws with one hidden layer, 3200 with two.
    """
    narrow, wide = widths
    ratio, rest = divmod(wide, narrow)
    if ratio < 2 or rest:
        raise ValueError(f"the second width must be a multiple of the first, got {widths}")
    x = np.asarray(x, float)

    def batches() -> Iterator[Array]:
        for rng, count in _batches(wide, draws, seed):
            drawn: list[tuple[Array, Array]] = []
            whole = _kernels(arch, x, _fresh(rng, count, wide, drawn))
            cuts = [slice(k * narrow, (k + 1) * narrow) for k in range(ratio)]
            blocks = sum(_kernels(arch, x, _block(iter(drawn), cut)) for cut in cuts)
            yield (ratio * whole - blocks / ratio) / (ratio - 1)

    return _summary(batches())


def of_one(arch: Any, x: Any, parameters: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Outputs (n, 1) and NTK (n, n) of the one network with these (weights, biases) of its Dense
    layers, in their order; it has one output."""
    given = iter(parameters)

    def normals(fan_in: int) -> tuple[Array, Array]:
        weights, biases = next(given)
        return weights[None], biases[None, None]

    outputs, back = _run(arch, np.asarray(x, float)[None], normals)
    return outputs[0], back(np.ones_like(outputs))[1][0]


def _summary(batches: Iterator[Array]) -> Empirical:
    kernels = np.concatenate(list(batches))
    mean, error = kernels.mean(0), kernels.std(0, ddof=1) / len(kernels) ** 0.5
    return Empirical(mean[0], error[0], mean[1], error[1])


def _batches(width: int, draws: int, seed: int) -> Iterator[tuple[np.random.Generator, int]]:
    """A generator and a number of draws, again and again; a weight matrix takes 8 MB a batch."""
    rng, size = np.random.default_rng([seed, width]), max(1, 2**20 // width**2)
    for start in range(0, draws, size):
        yield rng, min(size, draws - start)


def _fresh(
    rng: np.random.Generator, count: int, width: int, drawn: list[tuple[Array, Array]]
) -> Normals:
    """New parameters for `count` networks, which `drawn` records."""

    def normals(fan_in: int) -> tuple[Array, Array]:
        shapes = (count, fan_in, width), (count, 1, width)
        drawn.append((rng.standard_normal(shapes[0]), rng.standard_normal(shapes[1])))
        return drawn[-1]

    return normals


def _block(drawn: Iterator[tuple[Array, Array]], cut: slice) -> Normals:
    """The parameters that lead from the features in `cut` to those in `cut`."""

    def normals(fan_in: int) -> tuple[Array, Array]:
        weights, biases = next(drawn)
        rows = slice(None) if fan_in == weights.shape[1] else cut  # all rows: the raw input
        return weights[:, rows, cut], biases[..., cut]

    return normals


def _kernels(arch: Any, x: Array, normals: Normals) -> Array:
    """NNGP and NTK of each draw, shape (draws, 2, n, n)."""
    layers = arch.layers if type(arch).__name__ == "Serial" else (arch,)
    readout = layers[-1] if type(layers[-1]).__name__ == "Dense" else None
    signs = np.sign(normals(0)[1])
    inputs = np.broadcast_to(x, (len(signs), *x.shape))
    features, back = _serial(layers[:-1] if readout else layers, inputs, normals)
    size = features.shape[-1]
    nngp = _products(features) / size
    ntk = np.zeros_like(nngp)
    if size == signs.shape[-1]:  # else no Dense comes before the readout: nothing to train
        ntk = ntk + back(np.broadcast_to(signs, features.shape))[1] / size
    if readout:
        nngp = readout.W_std**2 * nngp + readout.b_std**2
        ntk = nngp + readout.W_std**2 * ntk
    return np.stack([nngp, ntk], 1)


def _products(h: Array) -> Array:
    """The inner products of the rows."""
    products: Array = h @ h.swapaxes(-1, -2)
    return products


def _serial(layers: Sequence[Any], h: Array, normals: Normals) -> tuple[Array, Pullback]:
    pullbacks = []
    for layer in layers:
        h, pullback = _run(layer, h, normals)
        pullbacks.append(pullback)

    def back(error: Array) -> tuple[Array, Any]:
        total = 0.0
        for pullback in reversed(pullbacks):
            error, ntk = pullback(error)
            total = total + ntk
        return error, total

    return h, back


def _parallel(branches: Sequence[Any], h: Array, normals: Normals) -> tuple[Array, Pullback]:
    outputs, pullbacks = zip(*(_run(branch, h, normals) for branch in branches), strict=True)

    def back(error: Array) -> tuple[Array, Any]:
        errors, ntks = zip(*(pullback(error) for pullback in pullbacks), strict=True)
        return np.sum(errors, 0), sum(ntks)

    return np.sum(outputs, 0), back


def _run(layer: Any, h: Array, normals: Normals) -> tuple[Array, Pullback]:
    """The output of a layer for the features `h`, shape (draws, n, features), and its pullback."""
    match type(layer).__name__:
        case "Serial":
            return _serial(layer.layers, h, normals)
        case "Parallel":
            return _parallel(layer.branches, h, normals)
        case "Identity":
            return h, lambda error: (error, 0.0)
        case "Scale":
            return layer.factor * h, lambda error: (layer.factor * error, 0.0)
        case "Shift":
            return h + layer.offset, lambda error: (error, 0.0)
        case "Dense":
            return _dense(layer, h, normals)
        case "LayerNorm":
            return _normalise(layer, h, h.shape[-1], centre=True)
        case "RMSNorm":
            return _normalise(layer, h, h.shape[-1], centre=False)
        case "GroupNorm":
            return _normalise(layer, h, layer.group_size, centre=layer.centre)
        case _:
            return _activate(layer, h)


def _dense(layer: Any, h: Array, normals: Normals) -> tuple[Array, Pullback]:
    weights, biases = normals(h.shape[-1])
    factor = layer.W_std / h.shape[-1] ** 0.5
    gradients = factor**2 * _products(h) + layer.b_std**2

    def back(error: Array) -> tuple[Array, Array]:
        return factor * error @ weights.swapaxes(-1, -2), _products(error) * gradients

    return factor * h @ weights + layer.b_std * biases, back


def _normalise(layer: Any, h: Array, size: int, *, centre: bool) -> tuple[Array, Pullback]:
    """Zero, with zero derivative, where there is nothing to normalise."""

    def mean(grouped: Array) -> Array:
        means: Array = grouped.mean(-1, keepdims=True)
        return means

    def group(features: Array) -> Array:
        return features.reshape(*features.shape[:-1], -1, size)

    def centred(grouped: Array) -> Array:
        return grouped - mean(grouped) if centre else grouped

    grouped = centred(group(h))
    rms = np.sqrt(mean(grouped**2) + layer.eps)
    inverse = np.divide(1.0, rms, out=np.zeros_like(rms), where=rms > 0)
    unit = grouped * inverse
    output = unit.reshape(h.shape)

    def back(error: Array) -> tuple[Array, Array]:
        ntk = layer.scale * _products(error * output) + layer.bias * _products(error)
        raw = group(error)
        return centred(inverse * (raw - unit * mean(raw * unit))).reshape(error.shape), ntk

    return output, back


def _activate(layer: Any, h: Array) -> tuple[Array, Pullback]:
    """Zero, with zero derivative, at zero."""
    side = np.where(h > 0, layer.a, np.where(h < 0, layer.b, 0.0))
    slope = layer.degree * side * np.where(h == 0, 1.0, np.abs(h)) ** (layer.degree - 1)
    return slope * np.abs(h) / layer.degree, lambda error: (error * np.sign(h) * slope, 0.0)
