"""What the report of the toy experiment says in words of networks that are not ReLU networks."""

from __future__ import annotations

import numpy as np

from lnkernel.arch import Elementwise
from lnkernel.experiments.activations import DEFAULT, name_of
from lnkernel.experiments.limit import NOISE
from lnkernel.experiments.toy_cell import Cell


def title(activation: Elementwise) -> str:
    """The title of the report."""
    if activation == DEFAULT:
        return "Far outside the data: one LayerNorm is enough"
    return f"Far outside the data: {name_of(activation)} networks"


def summary(activation: Elementwise) -> str:
    """Its first paragraph."""
    if activation == DEFAULT:
        return (
            "Networks with two hidden layers are trained on 100 points of [-5, 5] and looked at out to "
            "|x| = 10,000. Without LayerNorm their output grows with |x|; with a LayerNorm in even one "
            "layer it stays bounded, as the theory of infinitely wide networks says it must."
        )
    return (
        f"{name_of(activation)} networks with two hidden layers are trained on 100 points of [-5, 5] and "
        "looked at out to |x| = 10,000, without LayerNorm and with it in one layer or in all. Beside "
        "them is what the theory of infinitely wide networks says, and where it gives no bound, why."
    )


def remarks(cells: list[Cell]) -> list[str]:
    """Why cells have no bound, and what is not as the figures' captions say: a paragraph for each."""
    reasons = {cell.variant.label: cell.no_bound for cell in cells if cell.no_bound}
    said = [f"{label[0].upper()}{label[1:]}: no bound: {why}" for label, why in reasons.items()]
    if any(cell.noise for cell in cells):
        said.append(
            "Where the kernel is so smooth that the Gram matrix of the 100 points is singular to "
            f"float64, the infinitely wide networks are trained with noise of variance {NOISE:g}."
        )
    if any(np.isnan(cell.mean).any() for cell in cells):
        said.append(
            "The mean of infinitely wide networks is missing where their kernel is not computed for "
            "inputs as long as these."
        )
    return said
