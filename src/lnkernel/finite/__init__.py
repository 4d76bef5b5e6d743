"""Networks of finite width beside their limit: Flax twins, training, empirical kernels."""

from lnkernel.finite.compare import compare
from lnkernel.finite.comparison import Comparison
from lnkernel.finite.comparison_row import Row
from lnkernel.finite.empirical import empirical_ntk, empirical_ntk_diagonal
from lnkernel.finite.empirical_nngp import empirical_nngp, empirical_nngp_over_seeds
from lnkernel.finite.empirical_seeds import empirical_ntk_over_seeds
from lnkernel.finite.estimate import Estimate
from lnkernel.finite.from_flax import from_flax
from lnkernel.finite.network import Network, network
from lnkernel.finite.training.ensemble import Ensemble, train_ensemble
from lnkernel.finite.training.train import Training, train

__all__ = [
    "Comparison",
    "Ensemble",
    "Estimate",
    "Network",
    "Row",
    "Training",
    "compare",
    "empirical_nngp",
    "empirical_nngp_over_seeds",
    "empirical_ntk",
    "empirical_ntk_diagonal",
    "empirical_ntk_over_seeds",
    "from_flax",
    "network",
    "train",
    "train_ensemble",
]
