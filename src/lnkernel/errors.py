"""Every exception of the library: what was expected, what came, the likely cause, the remedy."""

from __future__ import annotations

import math
from typing import Any


class LnkernelError(Exception):
    """The common ancestor, to catch whatever this library raises on purpose.

    >>> import lnkernel as lnk
    >>> try:
    ...     lnk.Dense(0)
    ... except lnk.errors.LnkernelError as problem:
    ...     print(problem)
    Dense: width must be an integer, at least 1, got 0. Choose width = 1 or more.
    """


class ArchitectureError(LnkernelError, ValueError):
    """An architecture that has no closed form or no infinite-width limit.

    >>> import lnkernel as lnk
    >>> lnk.serial(lnk.Dense(8), lnk.Relu(), lnk.Relu())
    Traceback (most recent call last):
    ...
    lnkernel.errors.ArchitectureError: Relu at layer 2: its input is not Gaussian, because Relu at \
layer 1 stands between it and the last Dense, so its kernel has no closed form. Put a Dense \
between them.
    """

    def __init__(self, layer: str, position: str, reason: str, remedy: str):
        where = f"{layer} at {position}" if position else layer
        super().__init__(f"{where}: {reason}. {remedy}.")
        self.layer, self.position, self.reason, self.remedy = layer, position, reason, remedy


class InputError(LnkernelError, ValueError):
    """Data that a kernel cannot be evaluated on.

    >>> import lnkernel as lnk
    >>> lnk.ntk(lnk.mlp())([1.0, 2.0])
    Traceback (most recent call last):
    ...
    lnkernel.errors.InputError: x: expected a 2-D array of shape (points, dimension), got shape \
(2,). For one point write x[None, :]; for points on a line write x[:, None].
    """

    def __init__(self, name: str, expected: str, got: str, remedy: str):
        super().__init__(f"{name}: expected {expected}, got {got}. {remedy}.")


class PrecisionError(LnkernelError, RuntimeError):
    """float64 asked for where the user's own JAX transformation runs in float32.

    >>> import jax, lnkernel as lnk
    >>> jax.jit(lnk.ntk(lnk.mlp()))([[1.0]])
    Traceback (most recent call last):
    ...
    lnkernel.errors.PrecisionError: lnkernel computes in float64, and it was called inside ...
    """

    def __init__(self) -> None:
        super().__init__(
            "lnkernel computes in float64, and it was called inside your own jax.jit, jax.grad or "
            "jax.vmap while 64-bit mode is off, so its numbers would be cut to float32 there. Put "
            'jax.config.update("jax_enable_x64", True) at the top of your program, or call the '
            "transformed function inside `with jax.enable_x64(True):`. Outside of transformations "
            "nothing is needed: lnkernel switches to float64 by itself."
        )


class KernelOverflowError(LnkernelError, OverflowError):
    """The exact value of a kernel lies outside the range of float64.

    >>> import lnkernel as lnk
    >>> lnk.nngp(lnk.mlp()).diagonal([[1.0], [1e200]])
    Traceback (most recent call last):
    ...
    lnkernel.errors.KernelOverflowError: x: the kernel's exact value at point 1 (norm 1e+200) with \
    itself is not in the range of float64 ...
    """

    def __init__(self, name: str, index: int, point: Any):
        largest = max(abs(float(coordinate)) for coordinate in point)
        norm = math.hypot(*(float(coordinate) / largest for coordinate in point)) if largest else 0
        super().__init__(
            f"{name}: the kernel's exact value at point {index} (norm {norm * largest:.3g}) with "
            "itself is not in the range of float64 (it is larger than 1.8e308, or infinite). "
            "Rescale the data, or put a LayerNorm before the last layer, which makes the kernel "
            "bounded."
        )
