"""Pictures of kernels, in matplotlib's habits: `ax=`, artists returned, never `show`."""

from lnkernel.plot.angle import angle
from lnkernel.plot.bound import bound, profile
from lnkernel.plot.extrapolation import extrapolation
from lnkernel.plot.heatmap import heatmap
from lnkernel.plot.widths import widths

__all__ = ["angle", "bound", "extrapolation", "heatmap", "profile", "widths"]
