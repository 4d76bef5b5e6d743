"""How good and how honest probabilities of classes are: accuracy, NLL, ECE."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from jaxtyping import Float64, Int

BINS = 15  # of the confidence, as Deng, Zhou and Zhu (2022) take them

Probabilities = Float64[np.ndarray, "n classes"]
Labels = Int[np.ndarray, " n"]


class Reliability(NamedTuple):
    """Predictions by their confidence, in bins of equal width: how many, how sure, how right."""

    share: Float64[np.ndarray, " bins"]  # of the predictions, which add to 1
    confidence: Float64[np.ndarray, " bins"]  # their mean; NaN in an empty bin
    accuracy: Float64[np.ndarray, " bins"]


def accuracy(p: Probabilities, labels: Labels) -> float:
    """The share of the inputs whose most probable class is theirs.

    >>> accuracy(np.array([[0.9, 0.1], [0.6, 0.4]]), np.array([0, 1]))
    0.5
    """
    return float((p.argmax(axis=1) == labels).mean())


def nll(p: Probabilities, labels: Labels) -> float:
    """The mean of -log p(label); infinite if a label was given no probability.

    >>> found = nll(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 0]))
    >>> bool(np.isclose(found, np.log([2, 4]).mean()))
    True
    """
    with np.errstate(divide="ignore"):
        return float(-np.log(p[np.arange(len(labels)), labels]).mean())


def ece(p: Probabilities, labels: Labels, bins: int = BINS) -> float:
    """The expected calibration error: Σ share · |accuracy - confidence| over bins of the confidence.

    >>> round(ece(np.array([[0.9, 0.1], [0.9, 0.1]]), np.array([0, 1])), 12)    # |0.5 - 0.9|
    0.4
    """
    found = reliability(p, labels, bins)
    return float(np.nansum(found.share * np.abs(found.accuracy - found.confidence)))


def reliability(p: Probabilities, labels: Labels, bins: int = BINS) -> Reliability:
    """The predictions by confidence, the probability of the most probable class, in the bins
    (0, 1/bins], (1/bins, 2/bins], ...

    >>> found = reliability(np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 0]), bins=2)
    >>> found.share, found.confidence, found.accuracy
    (array([0., 1.]), array([ nan, 0.75]), array([nan, 0.5]))
    """
    sure, right = p.max(axis=1), p.argmax(axis=1) == labels
    place = np.clip(np.ceil(sure * bins).astype(int) - 1, 0, bins - 1)
    many = np.bincount(place, minlength=bins)
    with np.errstate(invalid="ignore"):
        confidence = np.bincount(place, sure, bins) / many
        correct = np.bincount(place, right, bins) / many
    return Reliability(many / len(labels), confidence, correct)


def softmax(outputs: Float64[np.ndarray, "n classes"], temperature: float = 1.0) -> Probabilities:
    """Probabilities of outputs over a temperature.

    >>> softmax(np.array([[0.0, 0.0]]))
    array([[0.5, 0.5]])
    """
    return np.asarray(scipy.special.softmax(np.asarray(outputs, np.float64) / temperature, axis=1))


def best_temperature(outputs: Float64[np.ndarray, "n classes"], labels: Labels) -> float:
    """The temperature at which the NLL of these labels is least (Guo et al. 2017).

    Of one input in four the label is not what outputs of ±5 say: log 3 between the outputs is right.

    >>> outputs, labels = np.tile([[10.0, 0.0]], (4, 1)), np.array([0, 0, 0, 1])
    >>> bool(np.isclose(best_temperature(outputs, labels), 10 / np.log(3)))
    True
    """
    found = scipy.optimize.minimize_scalar(
        lambda step: nll(softmax(outputs, np.exp(step)), labels),
        bounds=(-5.0, 5.0),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return float(np.exp(found.x))
