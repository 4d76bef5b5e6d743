r"""Kernel matrices of float64 inputs, enclosed entry by entry.

A float64 number is an integer times a power of two, so all inner products are integers, exactly:
with $G = N N^T$ the angle of a pair is

    sin^2 = (G_ii G_jj - G_ij^2)/(G_ii G_jj),   min(w, z) = sin^2/(2 (1 + |cos|)),
    e = (G_ii - G_jj)/(sqrt(G_ii) + sqrt(G_jj))^2,

without any cancellation, however close two inputs are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpz, fmpz_mat

from lnkernel.arch import Node
from lnkernel.arch.facts import reads_centred_input
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.positions import Positions
from lnkernel.calculus.rules import rule
from lnkernel.calculus.state import Kernels, at_input
from lnkernel.evaluate.balls.arithmetic import Balls, exactly
from lnkernel.evaluate.balls.numbers import BITS, balls, working_precision
from lnkernel.evaluate.balls.windows import NoOwn

TILE = 1 << 14  # pairs at a time: a few hundred bytes per number of each


class Enclosed(NamedTuple):
    """Numbers in float64, each with a bound of its distance from the exact number."""

    middle: np.ndarray
    radius: np.ndarray


class Integers(NamedTuple):
    """Inner products of all inputs, as integers; $x_i \\cdot x_j/d$ is `gram` times `unit`."""

    gram: Any  # fmpz, (n, n)
    unit: arb


def gram(
    arch: Node,
    x: np.ndarray,
    bits: int = BITS,
    progress: Callable[[int], object] | None = None,
) -> Kernels:
    """The symmetric matrices K and Θ of the points x (n, d), as `Enclosed`; also of images (n, ..., d), for networks
    that compare equal positions alone.

    `progress` is called with the number of pairs just finished.
    """
    n = len(x)
    out = [Enclosed(np.empty((n, n)), np.empty((n, n))) for _ in range(2)]
    with working_precision(bits):
        raw, centred = _inputs(arch, x)
        network, num = exactly(arch), Balls(bits)
        for rows in _rows(n, math.prod(inputs_shape(raw))):
            columns = slice(rows.start, n)
            values = _through(network, num, raw, centred, rows, columns)
            for enclosed, value in zip(out, values, strict=True):
                shape = rows.stop - rows.start, n - rows.start
                middle, radius = in_float64(np.broadcast_to(value, shape))
                for target, source in zip(enclosed, (middle, radius), strict=True):
                    target[rows, columns] = source
                    target[columns, rows] = source.T
            if progress is not None:
                height = rows.stop - rows.start
                progress(height * (n - rows.start) - height * (height - 1) // 2)
    return Kernels(*out)


def diagonal(arch: Node, x: np.ndarray, bits: int = BITS) -> Kernels:
    """K(x, x) and Θ(x, x) of every point, as `Enclosed`."""
    with working_precision(bits):
        raw, centred = _inputs(arch, x)
        network, num = exactly(arch), Balls(bits)
        total = _itself(raw)
        start = at_input(total, total if centred is None else _itself(centred))
        values = rule(network, start, num).kernels(num)
        shape = (len(x),)
        return Kernels(*(Enclosed(*in_float64(np.broadcast_to(k, shape))) for k in values))


def in_float64(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Midpoints rounded to float64, and radii that cover that rounding as well."""
    middle, radius = _parts(values)
    return middle.astype(float), radius.astype(float)


def _part(ball: arb) -> tuple[float, float]:
    middle = float(ball)
    if not (ball.is_finite() and math.isfinite(middle)):  # beyond 1.8e308, or not known at all
        return middle, math.inf
    distance = float(abs(ball - middle).upper())
    return middle, distance * (1 + 2.0**-50) + 2.0**-1074  # float() rounds to nearest


_parts = np.frompyfunc(_part, 1, 2)


def _rows(n: int, positions: int = 1) -> Iterator[slice]:
    """Blocks of rows, of TILE pairs of positions each; a block begins at the diagonal."""
    start = 0
    while start < n:
        stop = min(n, start + max(1, TILE // ((n - start) * positions)))
        yield slice(start, stop)
        start = stop


def _inputs(arch: Node, x: np.ndarray) -> tuple[Integers, Integers | None]:
    return _integers(x, False), _integers(x, True) if reads_centred_input(arch) else None


def _integers(x: np.ndarray, centre: bool, least: int | None = None) -> Integers:
    """Inner products of inputs (n, d), or of images (n, ..., d) at equal positions: then (n, n, ...)."""
    if x.ndim > 2:
        return _at_positions(x, centre)
    n, d = x.shape
    mantissa, exponent = np.frexp(x)
    if least is None:
        least = _least(x)
    whole = (mantissa * 2.0**53).astype(np.int64)
    shifts = np.where(x == 0, 0, exponent - least)
    rows = [
        [int(m) << int(s) for m, s in zip(*row, strict=True)]
        for row in zip(whole, shifts, strict=True)
    ]
    if centre:  # d (x - mean) is an integer as well
        rows = [[d * k - sum(row) for k in row] for row in rows]
    matrix = fmpz_mat(rows)
    products = np.array((matrix * matrix.transpose()).entries(), dtype=object).reshape(n, n)
    return Integers(products, _two_to(2 * (least - 53)) / (d**3 if centre else d))


def _least(x: np.ndarray) -> int:
    """The least exponent of all numbers: in units of it times 2^-53 they are integers."""
    return int(np.frexp(x)[1][x != 0].min()) if (x != 0).any() else 0


def _at_positions(x: np.ndarray, centre: bool) -> Integers:
    n, *shape, d = x.shape
    rows, least = x.reshape(n, -1, d), _least(x)
    each = [_integers(rows[:, p], centre, least) for p in range(rows.shape[1])]
    products = np.stack([one.gram for one in each], axis=-1)
    return Integers(products.reshape(n, n, *shape), each[0].unit)


def _two_to(exponent: int) -> arb:
    return arb(fmpz(1) << exponent) if exponent >= 0 else 1 / arb(fmpz(1) << -exponent)


def _through(
    network: Any,
    num: Balls,
    raw: Integers,
    centred: Integers | None,
    rows: slice,
    columns: slice,
) -> Kernels:
    total = _pairs(raw, rows, columns)
    middle = total if centred is None else _pairs(centred, rows, columns)
    shape = inputs_shape(raw)
    at = Positions(shape, False, NoOwn()) if shape else None
    start = at_input(total, middle, at)
    return rule(network, start, num).kernels(num)


def inputs_shape(inputs: Integers) -> tuple[int, ...]:
    """The positions of images; nothing of inputs without."""
    return tuple(inputs.gram.shape[2:])


def _pairs(inputs: Integers, rows: slice, columns: slice) -> Covariance:
    own = np.arange(len(inputs.gram))
    squares = inputs.gram[own, own]
    first, second = squares[rows][:, None], squares[columns][None, :]
    w, z, c, e = (balls(part) for part in _angle(inputs.gram[rows, columns], first, second))
    return Covariance(_length(inputs, first), _length(inputs, second), w, z, c, e)


def _itself(inputs: Integers) -> Covariance:
    length = _length(inputs, inputs.gram.diagonal())
    return Covariance(length, length, 0.0, 1.0, 1.0, 0.0)


def _length(inputs: Integers, squares: Any) -> Length:
    live = (squares != 0).astype(bool)
    q = balls(_as_arb(squares)) * inputs.unit
    return Length(q) if live.all() else Length(q, live)


_as_arb = np.frompyfunc(arb, 1, 1)


def _angle_one(product: fmpz, one: fmpz, two: fmpz) -> tuple[arb, arb, arb, arb]:
    """w, z, c and e of a pair, from its inner products."""
    both = arb(one * two)
    root = both.sqrt()
    e = arb(one - two) / (arb(one + two) + 2 * root) if one or two else arb(0)
    if not one and not two:
        return arb(0), arb(1), arb(1), e
    if both.is_zero():  # a zero vector has no direction: a right angle is the symmetric choice
        return arb(0.5), arb(0.5), arb(0), e
    c = arb(product) / root
    m = arb(one * two - product * product) / (2 * (both + arb(abs(product)) * root))
    return (m, 1 - m, c, e) if product >= 0 else (1 - m, m, c, e)


_angle = np.frompyfunc(_angle_one, 3, 4)


def ntk_balls(arch: Node, x: np.ndarray, bits: int) -> np.ndarray:
    """Θ of the points x (n, d) as an array of balls of `bits` bits, (n, n)."""
    n = len(x)
    out = np.empty((n, n), dtype=object)
    with working_precision(bits):
        raw, centred = _inputs(arch, x)
        network, num = exactly(arch), Balls(bits)
        for rows in _rows(n, math.prod(inputs_shape(raw))):
            columns = slice(rows.start, n)
            values = _through(network, num, raw, centred, rows, columns).ntk
            shape = rows.stop - rows.start, n - rows.start
            out[rows, columns] = np.broadcast_to(np.asarray(values), shape)
            out[columns, rows] = out[rows, columns].T
    return out
