"""The triple (init_fn, apply_fn, kernel_fn) that every function of `stax` returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import Float, PyTree

from lnkernel.arch import Node
from lnkernel.errors import InputError
from lnkernel.stax.kernel import Covariance, Kernel, names_of, take_fields
from lnkernel.stax.stack import Stack
from lnkernel.types import Matrix, MorePoints, Points


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer or a network: `init_fn, apply_fn, kernel_fn = layer`, and `layer.arch`.

    `arch` is what the rest of this library works with: `lnkernel.posterior(layer.arch, X, y)`.

    >>> from lnkernel import stax
    >>> layer = stax.serial(stax.Dense(8), stax.Relu(), stax.Dense(1))
    >>> init_fn, apply_fn, kernel_fn = layer
    >>> layer.arch.layers[1]
    Relu()
    """

    stack: Stack

    def __iter__(self) -> Iterator[Any]:
        return iter((self.init_fn, self.apply_fn, self.kernel_fn))

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        return tuple(self)[index]

    @property
    def arch(self) -> Node:
        """The architecture."""
        return self.stack.arch

    def init_fn(
        self, rng: jax.Array, input_shape: tuple[int, ...]
    ) -> tuple[tuple[int, ...], PyTree]:
        """Random parameters of the network of finite width, as `(output_shape, params)`.

        Args:
            rng: a key of `jax.random`.
            input_shape: the shape of the inputs, (n, d); n may be -1.

        `params` is a pytree, for `apply_fn`: float32, and float64 where JAX's 64-bit mode is on.

        >>> import jax
        >>> from lnkernel import stax
        >>> init_fn, apply_fn, kernel_fn = stax.serial(stax.Dense(8), stax.Relu(), stax.Dense(1))
        >>> output_shape, params = init_fn(jax.random.key(0), (-1, 3))
        >>> output_shape, [leaf.shape for leaf in jax.tree.leaves(params)]
        ((-1, 1), [(3, 8), (8, 1)])
        """
        from lnkernel.stax.twin import initialise  # Flax loads where it is used

        return initialise(self.arch, rng, input_shape, self.stack.parameterization or "ntk")

    def apply_fn(
        self, params: PyTree, inputs: Points, *, rng: jax.Array | None = None
    ) -> Float[jax.Array, "n k"]:
        """The output (n, k) of the network of finite width at the inputs (n, d).

        It can be called inside `jax.jit`, `jax.grad` and `jax.vmap`. `rng` is for layers that
        draw random numbers there; none does here.

        >>> import jax
        >>> from lnkernel import stax
        >>> init_fn, apply_fn, kernel_fn = stax.serial(stax.Dense(8), stax.Relu(), stax.Dense(1))
        >>> _, params = init_fn(jax.random.key(0), (-1, 3))
        >>> jax.jit(apply_fn)(params, jax.numpy.ones((5, 3))).shape
        (5, 1)
        """
        from lnkernel.stax.twin import apply  # Flax loads where it is used

        return apply(self.arch, params, inputs, self.stack.parameterization or "ntk")

    def kernel_fn(
        self,
        x1_or_kernel: Points | Kernel,
        x2: MorePoints | None = None,
        get: str | tuple[str, ...] | None = None,
        *,
        pattern: None = None,
        mask_constant: None = None,
        diagonal_batch: bool | None = None,
        diagonal_spatial: bool | None = None,
    ) -> Kernel | Matrix | Covariance | tuple[Any, ...] | None:
        """The kernels of the infinitely wide network, float64.

        Args:
            x1_or_kernel: points (n, d); or a `Kernel`, what `kernel_fn(x1, x2)` gives: then these
                layers stand on top of its.
            x2: points (m, d); None means x1.
            get: "nngp", "ntk", "cov1" or "cov2" gives an array; a tuple of these a namedtuple with
                the fields in that order; None a `Kernel`, which has them all.
            pattern, mask_constant: for graphs and for masked inputs, which are not here.
            diagonal_batch: False makes `cov1` and `cov2`, the NNGP kernels of x1 and of x2 each
                by itself, full matrices. Otherwise they are their diagonals.
            diagonal_spatial: of no effect on points without spatial axes.

        >>> from lnkernel import stax
        >>> init_fn, apply_fn, kernel_fn = stax.serial(stax.Dense(8), stax.Relu(), stax.Dense(1))
        >>> x1, x2 = [[1.0, 0.0], [1.0, 1.0]], [[0.0, 2.0]]
        >>> kernel_fn(x1, x2, "ntk").shape
        (2, 1)
        >>> ntk, nngp = kernel_fn(x1, None, ("ntk", "nngp"))
        """
        for name, value in (("pattern", pattern), ("mask_constant", mask_constant)):
            if value is not None:
                raise InputError(
                    name,
                    "None, because inputs are points without masks and edges",
                    repr(value),
                    "Drop or fill what is missing in the data before",
                )
        full = diagonal_batch is False
        if isinstance(x1_or_kernel, Kernel):
            if x2 is not None:
                raise InputError("x2", "None behind a Kernel", "points", "The Kernel has its own")
            kernel = x1_or_kernel.followed_by(self.stack, full)
        else:
            kernel = Kernel(self.stack, x1_or_kernel, x2, full)
        if get is None:
            return kernel
        names = names_of(get)
        values = take_fields(kernel, names)
        return values[0] if isinstance(get, str) else values


def layer_of(node: Node, parameterization: str | None = None) -> Layer:
    """The layer that consists of one node of an architecture."""
    return Layer(Stack((node,), parameterization))
