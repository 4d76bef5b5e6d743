r"""Likelihoods of outputs, as Laplace's method needs them: $\Lambda = -\partial^2 \log p/\partial f^2 = L L^T$."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from jaxtyping import Float64, Integer

from lnkernel.check.arrays import as_targets
from lnkernel.check.numbers import as_number
from lnkernel.errors import InputError
from lnkernel.tangents.inputs import check_columns

Outputs = Float64[np.ndarray, "n k"]
Matrices = Float64[np.ndarray, "n k k"]  # one at every input
Samples = Float64[np.ndarray, "samples k"]


class Likelihood(ABC):
    """p(y | f) of the outputs f at every input."""

    @abstractmethod
    def as_targets(self, y: Any, n: int, outputs: int) -> np.ndarray:
        """The targets, checked."""

    @abstractmethod
    def root(self, f: Outputs) -> Matrices:
        """L with L Lᵀ = Λ at every input."""

    @abstractmethod
    def log_likelihood(self, f: Outputs, y: np.ndarray) -> float:
        """Σ log p(y_i | f_i)."""

    @abstractmethod
    def predictive(self, f: Outputs, covariance: Matrices, y: np.ndarray, normal: Samples) -> float:
        """The mean of −log p(y_i) where f_i is normal with these moments."""

    def curvature(
        self, f: Outputs, features: Float64[np.ndarray, "n k r"]
    ) -> Float64[np.ndarray, "r r"]:
        """Σ Ψᵀ Λ Ψ over the inputs, with these features Ψ at each."""
        weighted = np.einsum("iab,iar->ibr", self.root(f), features, optimize=True)
        rows = weighted.reshape(-1, features.shape[2])
        return rows.T @ rows


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """y = f + noise, with this variance, independent in every output."""

    noise: float

    def as_targets(self, y: Any, n: int, outputs: int) -> np.ndarray:
        targets = as_targets(y, n)
        check_columns(targets, outputs)
        return targets.reshape(n, outputs)

    def root(self, f: Outputs) -> Matrices:
        n, k = f.shape
        return np.broadcast_to(np.eye(k) / math.sqrt(self.noise), (n, k, k))

    def log_likelihood(self, f: Outputs, y: np.ndarray) -> float:
        normaliser = f.size * math.log(2 * math.pi * self.noise)
        return -0.5 * (float(np.square(f - y).sum()) / self.noise + normaliser)

    def predictive(self, f: Outputs, covariance: Matrices, y: np.ndarray, normal: Samples) -> float:
        spread = covariance + self.noise * np.eye(f.shape[1])
        misfit = np.einsum("ia,ia->i", y - f, np.linalg.solve(spread, (y - f)[..., None])[..., 0])
        _, log_determinant = np.linalg.slogdet(2 * math.pi * spread)
        return float(0.5 * (misfit + log_determinant).mean())


@dataclass(frozen=True)
class Categorical(Likelihood):
    """y is a class, with probabilities softmax(f)."""

    def as_targets(self, y: Any, n: int, outputs: int) -> Integer[np.ndarray, " n"]:
        if outputs < 2:
            raise InputError(
                "likelihood",
                '"gaussian", or a network with an output for every class',
                '"categorical" with one output',
                "Two classes have two outputs, of which one may be 0",
            )
        given = np.asarray(y)
        known = given.dtype.kind in "iu" and given.shape == (n,)
        if not known or given.min() < 0 or given.max() >= outputs:
            raise InputError(
                "y",
                f"the class of each of the {n} inputs, integers from 0 to {outputs - 1}",
                f"dtype {given.dtype}, shape {given.shape}"
                + (f", from {given.min()} to {given.max()}" if known else ""),
                "Give y.argmax(1) of one-hot labels",
            )
        return given

    def root(self, f: Outputs) -> Matrices:
        """diag(√p) − p √pᵀ: times its transpose it is diag(p) − p pᵀ, and nothing is inverted."""
        p = scipy.special.softmax(f, axis=1)
        root = np.sqrt(p)
        return root[:, :, None] * np.eye(f.shape[1]) - p[:, :, None] * root[:, None, :]

    def log_likelihood(self, f: Outputs, y: np.ndarray) -> float:
        return float(scipy.special.log_softmax(f, axis=1)[np.arange(len(y)), y].sum())

    def predictive(self, f: Outputs, covariance: Matrices, y: np.ndarray, normal: Samples) -> float:
        chances = softmax_mean(f, covariance, normal)
        return -float(np.log(np.maximum(chances[np.arange(len(y)), y], 1e-300)).mean())


def softmax_mean(f: Outputs, covariance: Matrices, normal: Samples) -> Outputs:
    """The mean of softmax over samples of a normal distribution at every input."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]  # zeros come with either sign
    samples = f[:, None] + np.einsum("iab,sb->isa", root, normal)
    return np.asarray(scipy.special.softmax(samples, axis=2).mean(1))


def as_likelihood(likelihood: Any, noise: Any) -> Likelihood:
    """The likelihood of this name."""
    variance = as_number(noise)
    if variance is None or not 0 < variance < math.inf:
        raise InputError(
            "noise",
            "a positive variance",
            repr(noise),
            "A variance is the square of a standard deviation",
        )
    if likelihood == "gaussian":
        return Gaussian(variance)
    if likelihood == "categorical":
        return Categorical()
    raise InputError(
        "likelihood", '"gaussian" or "categorical"', repr(likelihood), "Classes are categorical"
    )
