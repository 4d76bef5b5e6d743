r"""The spectrum of a kernel on a grid in the cube $[-1, 1]^d$, by its symmetry.

The kernels of fully connected networks depend on $|x|$, $|x'|$ and $x \cdot x'$, so that changing the sign of a
coordinate in both inputs, or swapping two coordinates, changes nothing. Every eigenvector can be taken even or odd in
each coordinate, and the matrix on all points of the grid falls apart into blocks on those with positive coordinates:
$K_\sigma(x, x') = \sum_s \sigma(s)\,K(x, s x')$ over all signs s. Blocks with the same number of odd coordinates are
the same but for the order of the coordinates: d + 1 matrices of the size $(\text{side}/2)^d$ take the place of one of
the size $\text{side}^d$, and give the same eigenvalues.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from jaxtyping import Float64

Matrices = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, ...]]


@dataclass(frozen=True)
class CubeSpectrum:
    """Eigenvalues and eigenvectors of K/N on a grid of N points, by the number of odd coordinates."""

    points: Float64[np.ndarray, "n d"]  # those of the grid with positive coordinates
    values: list[Float64[np.ndarray, " n"]]  # of the blocks; block j is there binomial(d, j) times
    vectors: list[Float64[np.ndarray, "n n"]]
    processes: list[list[Float64[np.ndarray, "n n"]]]  # blocks of the other matrices, each over N

    @property
    def dimension(self) -> int:
        return int(self.points.shape[1])

    @property
    def size(self) -> int:
        """N, the number of points of the whole grid."""
        return int(len(self.points) * 2**self.dimension)

    def all_values(self) -> Float64[np.ndarray, " N"]:
        """The eigenvalues of the whole matrix, the largest first."""
        d = self.dimension
        parts = [np.repeat(v, math.comb(d, j)) for j, v in enumerate(self.values)]
        return np.sort(np.concatenate(parts))[::-1]

    def of_function(self, f: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues, and the coefficients of a function: the mean of its square is the sum of theirs."""
        d = self.dimension
        shape = (round(len(self.points) ** (1 / d)),) * d
        images = {s: f(self.points * s).reshape(shape) for s in _signs(d)}
        values, found = [], []
        for odd in itertools.chain.from_iterable(
            itertools.combinations(range(d), j) for j in range(d + 1)
        ):
            part = sum(math.prod(s[i] for i in odd) * image for s, image in images.items())
            order = [*odd, *(i for i in range(d) if i not in odd)]
            column = np.transpose(np.asarray(part), order).ravel() / math.sqrt(2**d * self.size)
            values.append(self.values[len(odd)])
            found.append(self.vectors[len(odd)].T @ column)
        return np.concatenate(values), np.concatenate(found)

    def of_process(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues, and the roots of the mean squares of the coefficients of a Gaussian process, whose
        covariance is one of the other matrices."""
        values, found = [], []
        for j, (value, vectors) in enumerate(zip(self.values, self.vectors, strict=True)):
            squares = np.einsum("ij,ij->j", vectors, self.processes[j][number] @ vectors)
            for _ in range(math.comb(self.dimension, j)):
                values.append(value)
                found.append(np.sqrt(np.maximum(squares, 0.0)))
        return np.concatenate(values), np.concatenate(found)


def cube_spectrum(matrices: Matrices, d: int, side: int) -> CubeSpectrum:
    """The spectrum of the first of several kernels on the midpoints of side^d cells of the cube.

    Args:
        matrices: gives, between points (n, d) and (m, d), the matrices of the kernel and of any covariances.
        d: the dimension.
        side: cells along each axis, an even number.
    """
    half = (np.arange(side // 2) + 0.5) * 2 / side
    axes = np.meshgrid(*[half] * d, indexing="ij")
    points = np.stack([axis.ravel() for axis in axes], axis=1)
    images = [(s, matrices(points, points * s)) for s in _signs(d)]
    values, vectors, processes = [], [], []
    for j in range(d + 1):
        blocks = [
            sum(math.prod(s[:j]) * part[k] for s, part in images) / side**d
            for k in range(len(images[0][1]))
        ]
        found = scipy.linalg.eigh((blocks[0] + blocks[0].T) / 2, overwrite_a=True)
        values.append(found[0])
        vectors.append(found[1])
        processes.append(blocks[1:])
    return CubeSpectrum(points, values, vectors, processes)


def _signs(d: int) -> list[tuple[int, ...]]:
    return list(itertools.product((1, -1), repeat=d))
