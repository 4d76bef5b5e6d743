"""Pictures of kernels, in matplotlib's habits: `ax=`, artists returned, never `show`."""

from lnkernel.plot.bound import bound, profile
from lnkernel.plot.extrapolation import extrapolation
from lnkernel.plot.heatmap import heatmap

__all__ = ["bound", "extrapolation", "heatmap", "profile"]
