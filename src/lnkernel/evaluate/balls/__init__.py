"""Balls, by python-flint: rigorous enclosures of the same numbers."""

from lnkernel.evaluate.balls import closed as _closed  # noqa: F401  # registers functions
from lnkernel.evaluate.balls import homogeneous as _homogeneous  # noqa: F401  # registers functions
from lnkernel.evaluate.balls import spherical as _spherical  # noqa: F401  # registers a function
