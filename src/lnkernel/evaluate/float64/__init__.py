"""float64, by NumPy and JAX: the arithmetic, and the functions that activations and norms need."""

from lnkernel.evaluate.float64 import attention as _attention  # noqa: F401  # registers functions
from lnkernel.evaluate.float64 import clip_moments as _clip_moments  # noqa: F401  # registers a rule
from lnkernel.evaluate.float64 import clip_pairs as _clip_pairs  # noqa: F401  # likewise
from lnkernel.evaluate.float64 import clips as _clips  # noqa: F401  # likewise
from lnkernel.evaluate.float64 import exponential_pairs as _exponential_pairs  # noqa: F401  # likewise
from lnkernel.evaluate.float64 import hermite as _hermite  # noqa: F401  # registers a function
from lnkernel.evaluate.float64 import jumps as _jumps  # noqa: F401  # registers a function
from lnkernel.evaluate.float64 import pair_tables as _pair_tables  # noqa: F401  # likewise
from lnkernel.evaluate.float64 import places as _places  # noqa: F401  # registers functions
from lnkernel.evaluate.float64 import (
    polynomial_squares as _polynomial_squares,  # noqa: F401  # registers a function
)
from lnkernel.evaluate.float64 import quadrature as _quadrature  # noqa: F401  # registers a function
from lnkernel.evaluate.float64 import short_waves as _short_waves  # noqa: F401  # registers a function
from lnkernel.evaluate.float64 import spherical as _spherical  # noqa: F401  # registers a function
from lnkernel.evaluate.float64 import spread as _spread  # noqa: F401  # registers a rule
from lnkernel.evaluate.float64 import tails as _tails  # noqa: F401  # registers functions
from lnkernel.evaluate.float64 import windows as _windows  # noqa: F401  # registers functions
