r"""Listed pairs of single inputs: which inputs make them, and what an activation makes of these.

An image is its mean and what is left of it: with the `share` $s$ of the mean and the `rest` $\sqrt{1 - s^2}$ of both,

    w = 1/4 ((s1 - s2)^2 + (rest1 - rest2)^2) + rest1 rest2 w_c,

where $w_c$ is the small angle of the images less their means; and z with $s_1 + s_2$ and $z_c$.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.calculus.dual import Dual
from lnkernel.calculus.state import Both, Mean
from lnkernel.evaluate.float64.alone import multiply_alone
from lnkernel.evaluate.float64.chebyshev_points import rounded_series
from lnkernel.evaluate.float64.gaps import relative_difference
from lnkernel.evaluate.float64.gathered import Gathered
from lnkernel.evaluate.float64.length_curves import LAST, Curves
from lnkernel.evaluate.float64.precise import as_precise
from lnkernel.types import Array

# Of numbers whose squares add up to 1 for each input: the squares of their differences are asked for.
NEGLIGIBLE = 2.0**-40
TINY = 2.0**-53  # of a coefficient: a rounding error
AT_ONCE = 512  # pairs: what is compared at a time stays in the cache
MOST_COPIED = 1 << 14  # pairs, of which all factors are copied at a time
DENSE = 8  # in this share of all pairs of the inputs their products come from a matrix of all


class Places(NamedTuple):
    """Which inputs make a pair: their numbers, and how many inputs there are."""

    rows: np.ndarray
    columns: np.ndarray
    shape: tuple[int, int]

    def products(self, one: np.ndarray, two: np.ndarray) -> np.ndarray:
        """The sums over (rank, n) and (rank, m) of all pairs; of several functions, (rank, functions n), a row each."""
        n, m = self.shape
        if len(self.rows) * DENSE < n * m:
            several = one.reshape(len(one), -1, n)
            made = np.empty((several.shape[1], len(self.rows)))
            for start in range(0, len(self.rows), MOST_COPIED):
                some = slice(start, start + MOST_COPIED)
                rows, columns = self.rows[some], self.columns[some]
                np.einsum("kfp,kp->fp", several[:, :, rows], two[:, columns], out=made[:, some])
        else:
            made = multiply_alone(one.T, two).reshape(-1, n * m).take(self._numbers, axis=1)
        return made[0] if one.shape[1] == n else made

    @property
    def _numbers(self) -> np.ndarray:
        """Of the pairs among all, row by row."""
        return self.rows * self.shape[1] + self.columns

    def apart(self, one: np.ndarray, two: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """|one - two|² and |one + two|², of (n, rank) and (m, rank), of all pairs."""
        near, far = np.empty((2, len(self.rows)))
        for start in range(0, len(self.rows), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            left, right = one.take(self.rows[some], axis=0), two.take(self.columns[some], axis=0)
            for both, out in ((left - right, near), (left + right, far)):
                np.einsum("pk,pk->p", both, both, out=out[some])
        return near, far

    def some(self, which: np.ndarray) -> Places:
        """Some of the pairs."""
        return self._replace(rows=self.rows[which], columns=self.columns[which])

    def of(self, numbers: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """What belongs to inputs, for their pairs."""
        return numbers[0][self.rows], numbers[1][self.columns]


def inputs_of(cov: Covariance) -> tuple[tuple[np.ndarray, np.ndarray], Places]:
    """The lengths of the inputs, and which make a pair."""

    def inputs(q: Any) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(q, Gathered):
            return np.asarray(q.inputs.root()), q.index
        found: Any = np.broadcast_to(as_precise(q).root(), np.shape(cov.w))
        return np.unique(found, return_inverse=True)

    (one, rows), (two, columns) = inputs(cov.first.q), inputs(cov.second.q)
    return (one, two), Places(rows, columns, (len(one), len(two)))


class Ends(NamedTuple):
    """Numbers of an input whose distances are those of the images at one angle, 0: of even parts, and of odd ones."""

    curves: Curves
    even: int

    def at(self, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of unit vectors, (n, rank) each."""
        numbers = self.curves.at(length)
        numbers = np.ascontiguousarray((numbers / np.sqrt(np.square(numbers).sum(axis=0))).T)
        return numbers[:, : self.even], numbers[:, self.even :]


def ends_through(longest: float, even: np.ndarray, odd: np.ndarray) -> Ends:
    """From any such numbers at `lengths_of_nodes`, (numbers, nodes) each."""
    series = [rounded_series(part) for part in (even, odd)]
    largest = max(np.abs(part).max() for part in series)
    left = max(np.abs(part[:, -LAST:]).max() for part in series) / largest
    few = [_principal(part) for part in series]
    degrees = max(len(part) for part in few)
    coefficients = np.column_stack(
        [np.pad(part, ((0, degrees - len(part)), (0, 0))) for part in few]
    )
    return Ends(Curves(longest, coefficients, left=float(left)), few[0].shape[1])


def _principal(series: np.ndarray) -> np.ndarray:
    """Fewer functions of the length with the same distances between lengths, (degrees, rank), than these Chebyshev
    series: R of the QR decomposition, by Gram and Schmidt, as long as something is left. Cholesky's factors would leave
    out what is as small as the root of a rounding error, and the differences of near lengths are made of that."""
    rest, rows = series.copy(), [np.zeros(series.shape[1])]
    for column in range(series.shape[1]):
        sizes = np.sqrt(np.einsum("ij,ij->j", rest, rest))
        if sizes.max() <= NEGLIGIBLE:
            break
        if sizes[column] > TINY:
            direction = rest[:, column] / sizes[column]
            rows.append(np.einsum("i,ij->j", direction, rest))  # by this thread alone
            rest -= direction[:, None] * rows[-1]
    return np.stack(rows, axis=1)


class Image(NamedTuple):
    """What an activation makes of inputs."""

    size: np.ndarray
    share: np.ndarray  # of the mean
    rest: np.ndarray


class Between(NamedTuple):
    """What it makes of pairs."""

    w: np.ndarray  # the angles of the images less their means
    z: np.ndarray
    slope: np.ndarray
    euler: Callable[[], np.ndarray]


def dual_of(
    cov: Covariance,
    at: Places,
    lengths: tuple[np.ndarray, np.ndarray],
    images: tuple[Image, Image],
    pairs: Between,
    vanishes: bool,
) -> Dual:
    """The dual of these pairs; whether phi(0) = 0 tells of which inputs nothing is left."""
    one, two = images
    size, share, rest = (at.of(numbers) for numbers in zip(one, two, strict=True))
    rests = rest[0] * rest[1]
    apart = np.square(rest[0] - rest[1])
    w = 0.25 * (np.square(share[0] - share[1]) + apart) + rests * pairs.w
    z = 0.25 * (np.square(share[0] + share[1]) + apart) + rests * pairs.z
    squares = [image.size * image.size for image in images]
    lasting = [q * (image.rest * image.rest) for q, image in zip(squares, images, strict=True)]
    alive = (cov.first.live, cov.second.live)
    total, centred = (
        [
            Length(Gathered(as_precise(numbers), index), live)
            for numbers, index, live in zip(each, (at.rows, at.columns), lives, strict=True)
        ]
        for each, lives in ((squares, alive if vanishes else (True, True)), (lasting, alive))
    )

    def difference(one: Any, two: Any) -> Array | None:
        """The relative difference, where a rule asks for it."""
        return None if cov.e is None else relative_difference(one, two)

    return Dual(
        total=Covariance(total[0], total[1], w, z, z - w, difference(*size)),
        mean=Mean(
            *share,
            difference(abs(share[0]) * size[0], abs(share[1]) * size[1]),
            Both(*rest),
        ),
        slope=pairs.slope,
        euler=pairs.euler,
        derivative=lambda: (
            pairs.slope,
            *(x / r for x, r in zip(size, at.of(lengths), strict=True)),
        ),
        centred=Covariance(
            centred[0],
            centred[1],
            pairs.w,
            pairs.z,
            pairs.z - pairs.w,
            difference(rest[0] * size[0], rest[1] * size[1]),
        ),
    )
