"""Networks of finite width beside their limit: Flax twins, training, empirical kernels."""

from lnkernel.finite.empirical import empirical_ntk, empirical_ntk_diagonal
from lnkernel.finite.network import Network, network

__all__ = ["Network", "empirical_ntk", "empirical_ntk_diagonal", "network"]
