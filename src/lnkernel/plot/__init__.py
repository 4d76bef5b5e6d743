"""Pictures of kernels, in matplotlib's habits: `ax=`, artists returned, never `show`."""

from lnkernel.plot.angles import angle
from lnkernel.plot.bounds_on_line import bound, profile
from lnkernel.plot.far_from_data import extrapolation
from lnkernel.plot.heatmaps import heatmap
from lnkernel.plot.over_widths import widths

__all__ = ["angle", "bound", "extrapolation", "heatmap", "profile", "widths"]
