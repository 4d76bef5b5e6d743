"""Networks of finite width beside their limit: Flax twins, training, empirical kernels."""

from lnkernel.finite.network import Network, network

__all__ = ["Network", "network"]
