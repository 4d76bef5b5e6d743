"""Types of public signatures: what users give, and what they get back, with their shapes.

The letters are those of the docstrings: n training points (or points of the first argument) of
dimension d, m points to predict at (or of the second argument), k outputs. A size that occurs twice
in one signature is the same number; the tests check that of every result.

Users may give lists and numbers as well as arrays of any real type, so their types are wide; the
shape in them says what is expected. What is wrong about data is said by `check`, in plain words.
"""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Float, Float64, PRNGKeyArray
from numpy.typing import ArrayLike

Array = jax.Array | np.ndarray  # NumPy's; inside of jit, grad and vmap JAX's

# what users give
Points = Float[Array, "n d"] | ArrayLike
MorePoints = Float[Array, "m d"] | ArrayLike
Targets = Float[Array, "n"] | Float[Array, "n k"] | ArrayLike
Inputs = Float[Array, "n ..."] | ArrayLike  # of networks that take images, say
MoreInputs = Float[Array, "m ..."] | ArrayLike
Line = Float[Array, " m"] | Float[Array, "m 1"] | ArrayLike  # points on a line
Norms = Float[Array, " n"] | ArrayLike  # |x|/√d of inputs
Number = float | Float[Array, ""]
Noise = Number | Float[Array, "n"] | ArrayLike  # a variance, or one for each point
Times = float | Float[Array, " t"] | ArrayLike  # one, or several
Key = PRNGKeyArray  # of jax.random

# what they get, in float64
Scalar = Float64[Array, ""]
Diagonal = Float64[Array, "n"]
Matrix = Float64[Array, "n m"]
Values = Float64[Array, "m"]
Covariance = Float64[Array, "m m"]
Outputs = Float64[Array, "m"] | Float64[Array, "m k"]
Samples = Float64[Array, "*shape m"] | Float64[Array, "*shape m k"]
Curves = Float64[Array, "t m"] | Float64[Array, "t m k"]
DifferentPoints = Float64[Array, "m d"]
