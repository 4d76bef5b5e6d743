"""The posterior's mean of classes from a kernel that is stored, with the noise that leaves images out best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from jaxtyping import Float64, Int


@dataclass(frozen=True)
class ClassFit:
    """Coefficients a = (Θ + noise)⁻¹ y, and what bounds need to know of them.

    Attributes:
        coefficients: a, (n, classes).
        noise: the variance that is added to the diagonal.
        unit: the mean of the diagonal without it.
        norm: the largest √(aᵀ Θ a) of the classes.
        least: the least eigenvalue of Θ + noise.
        left_out: the share of training images that are classified rightly by the others.
    """

    coefficients: Float64[np.ndarray, "n classes"]
    noise: float
    unit: float
    norm: float
    least: float
    left_out: float


def fit_classes(
    theta: Float64[np.ndarray, "n n"],
    y: Float64[np.ndarray, "n classes"],
    noises: Sequence[float],
) -> ClassFit:
    """The posterior with the one of the noises, in units of the diagonal's mean, that predicts left-out images best.

    Without image i the posterior's error at it is $a_i/(\\Theta + \\mathrm{noise})^{-1}_{ii}$; its square is summed.

    >>> made = fit_classes(np.eye(2), np.array([[1.0], [-1.0]]), [1.0])
    >>> made.coefficients.ravel().tolist(), made.noise, made.least
    ([0.5, -0.5], 1.0, 2.0)
    """
    values, vectors = scipy.linalg.eigh(theta)
    unit, along = float(np.diag(theta).mean()), vectors.T @ y
    tries = []
    for noise in unit * np.asarray(noises):
        a = vectors @ (along / (values + noise)[:, None])
        errors = a / np.sum(vectors**2 / (values + noise), axis=1)[:, None]
        tries.append((float(np.sum(errors**2)), float(noise), a, errors))
    _, noise, a, errors = min(tries, key=lambda one: one[0])
    norm = float(np.sqrt(np.einsum("ik,ij,jk->k", a, theta, a).max()))
    right = (y - errors).argmax(1) == y.argmax(1)
    return ClassFit(a, noise, unit, norm, float(values[0]) + noise, float(right.mean()))


def accuracy(outputs: Float64[np.ndarray, "m classes"], label: Int[np.ndarray, " m"]) -> float:
    """The share of images whose largest output is that of their class.

    >>> accuracy(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 0]))
    0.5
    """
    return float(np.mean(outputs.argmax(1) == label))
