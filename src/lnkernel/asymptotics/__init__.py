"""The law by which the loss of wide networks falls: exponents, a constant, sums over a spectrum, fits."""

from lnkernel.asymptotics.constants import asymptote, constant
from lnkernel.asymptotics.curves import loss
from lnkernel.asymptotics.exponents import Exponents, exponents
from lnkernel.asymptotics.fits import LossFit, fit
from lnkernel.asymptotics.smoothness import smoothness

__all__ = [
    "Exponents",
    "LossFit",
    "asymptote",
    "constant",
    "exponents",
    "fit",
    "loss",
    "smoothness",
]
