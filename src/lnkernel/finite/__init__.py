"""Networks of finite width beside their limit: Flax twins, training, empirical kernels."""

from lnkernel.finite.build import Network, network
from lnkernel.finite.comparison.result import Comparison
from lnkernel.finite.comparison.row import Row
from lnkernel.finite.comparison.trial import compare
from lnkernel.finite.empirical.estimate import Estimate
from lnkernel.finite.empirical.features import empirical_nngp, empirical_nngp_over_seeds
from lnkernel.finite.empirical.over_seeds import empirical_ntk_over_seeds
from lnkernel.finite.empirical.tangent import empirical_ntk, empirical_ntk_diagonal
from lnkernel.finite.lora import add_lora
from lnkernel.finite.pull import pull_to_start
from lnkernel.finite.reading.module import from_flax
from lnkernel.finite.training.ensemble import Ensemble, train_ensemble
from lnkernel.finite.training.train import Training, train
from lnkernel.finite.watching import measures
from lnkernel.finite.watching.critical import CriticalTime
from lnkernel.finite.watching.watch import Watch

__all__ = [
    "Comparison",
    "CriticalTime",
    "Ensemble",
    "Estimate",
    "Network",
    "Row",
    "Training",
    "Watch",
    "add_lora",
    "compare",
    "empirical_nngp",
    "empirical_nngp_over_seeds",
    "empirical_ntk",
    "empirical_ntk_diagonal",
    "empirical_ntk_over_seeds",
    "from_flax",
    "measures",
    "network",
    "pull_to_start",
    "train",
    "train_ensemble",
]
