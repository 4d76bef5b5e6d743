"""Types of what users give and get, with their shapes, until `types` has them all.

n training points (or points of the first argument) of dimension d, m points to predict at (or of
the second argument), k outputs.
"""

from __future__ import annotations

from typing import TypeAlias

from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

from lnkernel.types import Array

# what users give: lists and numbers as well as arrays of any real type
Points: TypeAlias = Float[Array, "n d"] | ArrayLike
MorePoints: TypeAlias = Float[Array, "m d"] | ArrayLike
Inputs: TypeAlias = Float[Array, "n ..."] | ArrayLike  # of networks that take images, say
Targets: TypeAlias = Float[Array, " n"] | Float[Array, "n k"] | ArrayLike
Line: TypeAlias = Float[Array, " m"] | Float[Array, "m 1"] | ArrayLike  # points on a line

# what they get, in float64
Diagonal: TypeAlias = Float64[Array, " n"]
Matrix: TypeAlias = Float64[Array, "n m"]
Outputs: TypeAlias = Float64[Array, " m"] | Float64[Array, "m k"]
