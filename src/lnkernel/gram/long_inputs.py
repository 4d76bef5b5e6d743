"""Matrices of inputs of which some are so long that their pairs have to be integrated.

A smooth activation of moderate vectors is a series, from a table. For long ones the series takes too many terms: their
pairs are integrated, each by itself, which takes a thousand times as long. So the inputs are parted by their lengths.
Moderate ones are compared with one another by series, and only pairs with a long one are integrated.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lnkernel.types import Array

Matrices = tuple[Array, ...]
STEP, MOST = 2.0**0.125, 64  # lengths are tried from the longest on, each shorter by this factor
FEW = 16  # moderate inputs, for which it does not pay


def moderate_among(
    inputs: tuple[np.ndarray, ...], suits: Callable[..., bool]
) -> list[np.ndarray] | None:
    """For each set of inputs (n, d), which of them are no longer than the largest length that `suits`; None where that
    would be too few, or all."""
    lengths = [np.sqrt(np.mean(np.square(x), axis=1)) for x in inputs]
    most = max(float(length.max()) for length in lengths)
    for k in range(1, MOST):
        masks = [length <= most / STEP**k for length in lengths]
        if min(int(mask.sum()) for mask in masks) < FEW:
            return None
        if suits(*(x[mask] for x, mask in zip(inputs, masks, strict=True))):
            return masks
    return None


def symmetric(
    x: np.ndarray,
    moderate: np.ndarray,
    among: Callable[[np.ndarray], tuple[Matrices, Matrices]],
    integrate: Callable[[np.ndarray, np.ndarray], tuple[Matrices, Matrices, Matrices]],
) -> tuple[Matrices, Matrices]:
    """The matrices of all pairs of x, and their diagonals: `among` moderate inputs, the others by `integrate`."""
    n, long = len(x), ~moderate
    inner, inner_ends = among(x[moderate])
    outer, outer_ends, _ = integrate(x[long], x)
    out, ends = [], []
    for within, beyond, end, other_end in zip(inner, outer, inner_ends, outer_ends, strict=True):
        matrix, diagonal = np.empty((n, n)), np.empty(n)
        matrix[np.ix_(moderate, moderate)] = within
        corner = np.asarray(beyond)[:, long]
        matrix[long], matrix[:, long] = beyond, np.asarray(beyond).T
        matrix[np.ix_(long, long)] = 0.5 * (corner + corner.T)
        diagonal[moderate], diagonal[long] = end, other_end
        np.fill_diagonal(matrix, diagonal)
        out.append(matrix)
        ends.append(diagonal)
    return tuple(out), tuple(ends)


def rectangular(
    one: tuple[np.ndarray, np.ndarray],
    two: tuple[np.ndarray, np.ndarray],
    compute: Callable[[np.ndarray, np.ndarray], tuple[Matrices, Matrices, Matrices]],
    integrate: Callable[[np.ndarray, np.ndarray], tuple[Matrices, Matrices, Matrices]],
) -> tuple[Matrices, Matrices, Matrices]:
    """The matrices of all pairs of two sets of inputs, each given with which of them are moderate, and the diagonals of
    both: moderate pairs by `compute`."""
    (x, moderate), (x2, moderate2) = one, two
    inner, ends, ends2 = compute(x[moderate], x2[moderate2])
    parts = [(moderate, moderate2, inner)]
    found = [[(moderate, ends)], [(moderate2, ends2)]]
    if not moderate.all():
        rows, long_ends, _ = integrate(x[~moderate], x2)
        parts.append((~moderate, np.ones(len(x2), bool), rows))
        found[0].append((~moderate, long_ends))
    if not moderate2.all():
        columns, _, long_ends = integrate(x[moderate], x2[~moderate2])
        parts.append((moderate, ~moderate2, columns))
        found[1].append((~moderate2, long_ends))
    out = tuple(np.empty((len(x), len(x2))) for _ in inner)
    for rows_of, columns_of, values in parts:
        for matrix, value in zip(out, values, strict=True):
            matrix[np.ix_(rows_of, columns_of)] = value
    return out, _together(found[0], len(x)), _together(found[1], len(x2))


def _together(parts: list[tuple[np.ndarray, Matrices]], n: int) -> Matrices:
    """Diagonals of all inputs, from those of the parts."""
    made = tuple(np.empty(n) for _ in parts[0][1])
    for mask, values in parts:
        for diagonal, value in zip(made, values, strict=True):
            diagonal[mask] = value
    return made
