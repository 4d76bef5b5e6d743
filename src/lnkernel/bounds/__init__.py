"""The constant C = sup Θ(x, x), the bound B(D) on the output, and what happens without one."""

from lnkernel.bounds.forms import FORMS
from lnkernel.bounds.inequality import bound
from lnkernel.bounds.mean_bound import MeanBound, mean_bound
from lnkernel.bounds.result import Bound
from lnkernel.bounds.supremum import SupDiagonal, sup_diagonal
from lnkernel.bounds.witness import Witness, diverging_witness

__all__ = [
    "FORMS",
    "Bound",
    "MeanBound",
    "SupDiagonal",
    "Witness",
    "bound",
    "diverging_witness",
    "mean_bound",
    "sup_diagonal",
]
