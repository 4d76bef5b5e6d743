"""Leading terms: how Θ(x, x) behaves as |x| → ∞ and as |x| → 0, exactly."""

from lnkernel.evaluate.leading import functions as _functions  # noqa: F401  # registers them
from lnkernel.evaluate.leading import piecewise as _piecewise  # noqa: F401  # registers a function
