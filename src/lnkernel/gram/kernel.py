"""The kernels as functions: `ntk`, `nngp` and `kernels`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Float64

from lnkernel.arch import Node
from lnkernel.arch.facts import (
    acts_on_positions,
    centres_input,
    demand_ntk,
    position_axes,
    steepness,
)
from lnkernel.arch.flow import check_network
from lnkernel.arch.text import Architecture, as_architecture
from lnkernel.calculus.state import Kernels
from lnkernel.check.arrays import (
    as_images,
    as_points,
    as_traced_images,
    as_traced_points,
    check_centred,
    check_dimensions,
)
from lnkernel.errors import InputError
from lnkernel.evaluate.float64.arithmetic import FEW_PAIRS
from lnkernel.evaluate.float64.expansion import (
    are_live,
    count_series,
    expand,
    fixes_lengths,
    has_series,
    sums_series,
)
from lnkernel.evaluate.float64.on_diagonal import knows_diagonal
from lnkernel.gram import eager, images, long_inputs, tiled, traced
from lnkernel.gram.by_length import dissect_for
from lnkernel.gram.error_estimate import error_estimate
from lnkernel.gram.in_range import check_positions, check_range
from lnkernel.gram.memory import demand_memory
from lnkernel.gram.network import Needs
from lnkernel.gram.program import Dissected, Program, dissect_numbers, program_for
from lnkernel.gram.sharded import Layout, sharded
from lnkernel.gram.structure import assemble, dissect
from lnkernel.precision import (
    as_leaf,
    as_own_numpy,
    demand_float64,
    demand_plain_numbers,
    demand_x64,
    inside_jit,
    is_traced,
)
from lnkernel.types import Array, Diagonal, Matrix, MorePoints, Points

Matrices = tuple[Array, ...]


@runtime_checkable
class Way(Protocol):
    """How pairs are computed: a module with these two functions."""

    def symmetric(self, program: Program, x: Array, /) -> tuple[Matrices, Matrices]:
        """The matrices of all pairs of x, and their diagonals."""
        ...

    def rectangular(
        self, program: Program, x: Array, x2: Array, /
    ) -> tuple[Matrices, Matrices, Matrices]:
        """The matrices of all pairs of x and x2, and the diagonals of both."""
        ...


@dataclass(frozen=True)
class _OfPoints:
    """Kernels of an architecture, by name, as functions of points."""

    arch: Node
    which: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "arch", as_architecture(self.arch))  # which may come as text
        check_network(self.arch)
        if "ntk" in self.which:
            demand_ntk(self.arch)

    def _demand_one(self) -> None:
        sizes = [np.shape(number) for number in jax.tree.leaves(self.arch)]
        if shape := max(sizes, key=len, default=()):
            raise InputError(
                "kernel",
                "one kernel, of an architecture of single numbers",
                f"a stack of them, with hyperparameters of shape {shape}",
                "Ask each by jax.vmap, e.g. jax.vmap(lambda kernel: kernel(x))(stack)",
            )

    def _matrices(self, x: Points, x2: MorePoints | None) -> tuple[Array, ...]:
        """The matrices of all pairs, (n, m), one for each kernel."""
        self._demand_one()
        if is_traced(self.arch, x, x2) or inside_jit():
            demand_x64()
            points = self._traced_points("x", x)
            points2 = points if x2 is None else self._traced_points("x2", x2)
            self._check(points, points2)
            return self._inside(self.arch, points, points2, self.which)
        with jax.enable_x64(True):
            points = self._points("x", x)
            points2 = points if x2 is None or x2 is x else self._points("x2", x2)
            self._check(points, points2)
            self._demand_memory(len(points), None if points2 is points else len(points2))
            self._demand_memory_of_pairs(points)
            if points2 is points:
                out, ends = self._symmetric(points)
                check_range("x", points, ends)
            else:
                out, *both = self._rectangular(points, points2)
                check_range("x", points, both[0])
                check_range("x2", points2, both[1])
            return tuple(as_own_numpy(k) for k in out)

    def _symmetric(self, x: Array) -> tuple[Matrices, Matrices]:
        """The matrices of all pairs of concrete points, and their diagonals."""
        program, way = self._plan(x, x)
        moderate = self._moderate(program, x)
        if moderate is None:
            return way.symmetric(program, x)
        integrate = partial(way.rectangular, program)
        return long_inputs.symmetric(np.asarray(x), moderate[0], self._symmetric, integrate)

    def _rectangular(self, x: Array, x2: Array) -> tuple[Matrices, Matrices, Matrices]:
        """The matrices of all pairs of concrete points, and the diagonals of both sides."""
        program, way = self._plan(x, x2)
        moderate = self._moderate(program, x, x2)
        if moderate is None:
            return way.rectangular(program, x, x2)
        integrate = partial(way.rectangular, program)
        both = (np.asarray(x), moderate[0]), (np.asarray(x2), moderate[1])
        return long_inputs.rectangular(*both, self._rectangular, integrate)

    def _plan(self, x: Array, x2: Array) -> tuple[Program, Way]:
        """The program for these points, and how it is run."""
        count = len(x) * len(x2)
        few = eager.suits(self._parts.needs, count, self._series)
        many = not few or (self._sums_series and count > FEW_PAIRS)
        program = self._program(x, x2, self._has_series, many, few)
        return program, self._way(program.needs, count)

    def _moderate(self, program: Program, *inputs: Array) -> list[np.ndarray] | None:
        """Which points are short enough for series, where the others are too long; None where all pairs are alike."""
        if self._of_positions or program.needs.quick_way or not self._sums_series:
            return None

        def suits(*some: Array) -> bool:
            return dissect_for(self._parts, self.which, *some, many=False).needs.quick_way

        return long_inputs.moderate_among(tuple(map(np.asarray, inputs)), suits)

    def _sharded(
        self, x: Points, x2: MorePoints | None, layout: Layout
    ) -> tuple[Float64[jax.Array, "n m"], ...]:
        """The matrices of all pairs, laid out over devices."""
        demand_plain_numbers("a kernel with sharding=...", self.arch, x, x2)
        self._demand_one()
        with jax.enable_x64(True):
            points = np.asarray(self._points("x", x))
            points2 = None if x2 is None or x2 is x else np.asarray(self._points("x2", x2))
            self._check(points, points if points2 is None else points2)
            for name, side in (("x", points), ("x2", points2)):
                if side is not None:
                    check_range(name, side, self._diagonals(side))

            # a program, since what is not traced may be computed by NumPy, and that is on the host
            on_device = jax.jit(lambda one, two: self._inside(self.arch, one, two, self.which))
            return sharded(points, points2, layout, self._matrices, on_device)

    def _demand_memory(self, n: int, m: int | None) -> None:
        """Refuse matrices that do not fit into memory; for small ones the check would take as long as they do."""
        if n * (m or n) > eager.MOST:
            demand_memory(n, len(self.which), "The kernel matrix", m)

    def _demand_memory_of_inputs(self, x: Array) -> None:
        """The same for what is held at a time of single inputs; of images some are taken at a time."""
        self._demand_memory_of_pairs(x)
        if not self._of_positions and x.size > eager.MOST:
            n, d = x.shape
            demand_memory(
                n,
                1,
                f"The diagonal of {n} points",
                m=eager.NUMBERS_OF_A_POINT + eager.NUMBERS_OF_A_COORDINATE * d,
                remedy="Take fewer points at a time",
            )

    def _demand_memory_of_pairs(self, x: Array) -> None:
        """The same for the pairs of positions of two inputs, before anything is asked of the inputs."""
        if self._of_positions:
            images.demand_memory_of_a_pair(self.arch, self._parts.needs, x.shape[1:-1])

    def error_estimate(self, x: Points, x2: MorePoints | None = None) -> float:
        """How far an entry of the matrix of these points may be off, by the root of the product of its diagonals.

        Closed forms are exact but for rounding. Activations that are summed or integrated are computed again for
        some of the points, with a finer resolution; what that changes is part of the estimate.

        >>> import lnkernel as lnk
        >>> x = [[1.0, 2.0], [3.0, -1.0]]
        >>> lnk.ntk(lnk.mlp()).error_estimate(x), lnk.ntk(lnk.mlp(activation=lnk.Silu())).error_estimate(x) < 1e-13
        (2e-15, True)
        """
        demand_plain_numbers("error_estimate", self.arch, x, x2)
        self._demand_one()
        with jax.enable_x64(True):
            points = self._points("x", x)
            points2 = points if x2 is None else self._points("x2", x2)
            self._check(points, points2)
            return error_estimate(self.arch, self.which, points, points2)

    def _diagonals(self, x: Points) -> tuple[Array, ...]:
        """The kernels of every point with itself, (n,), one for each kernel."""
        self._demand_one()
        if is_traced(self.arch, x) or inside_jit():
            demand_x64()
            points = self._traced_points("x", x)
            self._check(points, points)
            way = images.traced_diagonal if self._of_positions else traced.diagonal
            return way(self.arch, points, self.which)
        with jax.enable_x64(True):
            points = self._points("x", x)
            self._check(points, points)
            self._demand_memory_of_inputs(points)
            # an image with itself is many pairs of positions
            known = self._knows_diagonal and not self._of_positions
            program = self._program(points, points, self._has_series and not known)
            out = (images if self._of_positions else eager).diagonal(program, points)
            check_range("x", points, out)
            return tuple(as_own_numpy(k) for k in out)

    def _program(
        self, x: Array, x2: Array, needs_terms: bool, many: bool = False, few: bool = False
    ) -> Program:
        inputs = (x,) if x2 is x else (x, x2)
        dissected = self._parts
        alike = self._fixes_lengths and not self._of_positions
        if needs_terms and alike and are_live(*inputs):
            dissected = self._parts_for_all
        elif needs_terms:
            dissected = dissect_for(self._parts, self.which, *inputs, many=many, few=few)
        return program_for(dissected, self.which, *inputs)

    @property
    def _inside(self) -> Callable[..., Matrices]:
        """The matrices of all pairs inside of a program."""
        return images.traced_matrix if self._of_positions else traced.matrix

    def _way(self, needs: Needs, pairs: int) -> Way:
        """How so many pairs are computed."""
        if self._of_positions:
            return images
        return eager if eager.suits(needs, pairs, self._series) else tiled

    @cached_property
    def _of_positions(self) -> bool:
        return acts_on_positions(self.arch)

    @cached_property
    def _axes(self) -> int | None:
        return position_axes(self.arch)

    def _points(self, name: str, x: Any) -> Array:
        """Concrete inputs, as the network takes them."""
        if not self._of_positions:
            return as_points(name, x)
        images = as_images(name, x, self._axes)
        check_positions(name, np.asarray(images), steepness(self.arch))
        return images

    def _traced_points(self, name: str, x: Any) -> Array:
        """Inputs inside of a transformation."""
        if self._of_positions:
            return as_traced_images(name, x, self._axes)
        return as_traced_points(name, x)

    @cached_property
    def _parts(self) -> Dissected:
        return dissect_numbers(self.arch)

    @cached_property
    def _parts_for_all(self) -> Dissected:
        """The network with what its activations need for any input that is not zero, where that is the same for all."""
        return dissect_numbers(expand(self.arch, np.array([[1.0, 2.0, 4.0]])))

    @cached_property
    def _fixes_lengths(self) -> bool:
        return fixes_lengths(self.arch)

    @cached_property
    def _has_series(self) -> bool:
        return has_series(self.arch)

    @cached_property
    def _sums_series(self) -> bool:
        return sums_series(self.arch)

    @cached_property
    def _series(self) -> int:
        return count_series(self.arch)

    @cached_property
    def _knows_diagonal(self) -> bool:
        return knows_diagonal(self.arch)

    @cached_property
    def _centres_input(self) -> bool:
        return centres_input(self.arch)

    def _check(self, x: Array, x2: Array) -> None:
        check_dimensions(x, x2)
        if self._centres_input:
            check_centred(x)


class Kernel(_OfPoints):
    """A kernel of an architecture, as a function of points. `ntk` and `nngp` make it."""

    def __call__(
        self, x: Points, x2: MorePoints | None = None, *, sharding: Layout | None = None
    ) -> Matrix:
        """The matrix of the kernel between the points x (n, d) and x2 (m, d): (n, m), float64.

        Without x2 it is the symmetric Gram matrix of x, at half the cost.

        With `sharding`, a `jax.sharding.Sharding` or `Mesh`, it is a `jax.Array` laid out so: every device's part
        is computed by itself, without communication. The axes of a mesh stand for rows, and for columns.

        >>> import jax, lnkernel as lnk
        >>> mesh = jax.make_mesh((jax.device_count(),), ("rows",))
        >>> k = lnk.ntk(lnk.mlp())([[1.0], [2.0]], sharding=mesh)
        >>> k.dtype, tuple(k.sharding.spec)
        (dtype('float64'), ('rows',))
        """
        return (self._matrices(x, x2) if sharding is None else self._sharded(x, x2, sharding))[0]

    def diagonal(self, x: Points) -> Diagonal:
        """The kernel of every point with itself: (n,), float64."""
        return self._diagonals(x)[0]


class KernelPair(_OfPoints):
    """Both kernels of an architecture, as one function of points. `kernels` makes it."""

    def __call__(
        self, x: Points, x2: MorePoints | None = None, *, sharding: Layout | None = None
    ) -> Kernels:
        """Both matrices between the points x (n, d) and x2 (m, d): each (n, m), float64; laid out over devices
        with `sharding`."""
        made = self._matrices(x, x2) if sharding is None else self._sharded(x, x2, sharding)
        return Kernels(*made)

    def diagonal(self, x: Points) -> Kernels:
        """Both kernels of every point with itself: each (n,), float64."""
        return Kernels(*self._diagonals(x))


def _register(cls: type[_OfPoints]) -> None:
    """Make it a pytree: its leaves are the hyperparameters that are not 0."""

    def flatten(kernel: _OfPoints) -> tuple[list[Any], Any]:
        structure, varying = dissect(kernel.arch)
        return list(map(as_leaf, varying)), (structure, kernel.which)

    def unflatten(fixed: Any, varying: Any) -> _OfPoints:
        demand_float64(varying)
        made = object.__new__(cls)  # unchecked: a tree of gradients has the same structure
        object.__setattr__(made, "arch", assemble(fixed[0], varying))
        object.__setattr__(made, "which", fixed[1])
        return made

    jax.tree_util.register_pytree_node(cls, flatten, unflatten)


_register(Kernel)
_register(KernelPair)


def ntk(arch: Architecture) -> Kernel:
    r"""The neural tangent kernel $\Theta(x, x') = \sum_\theta \partial_\theta f(x)\,\partial_\theta f(x')$
    of the infinitely wide network.

    Every layer of `arch` has its closed form; together they are exact, and so are the
    digits: the error, relative to $\sqrt{\Theta(x,x)\,\Theta(x',x')}$, is below 2e-15 up to depth 10.
    `arch` may be given as its text, as `parse` reads it.

    The result is a NumPy array of float64, whatever JAX's settings. It can be called inside
    `jax.jit`, `jax.grad` and `jax.vmap` where 64-bit mode is on; there the result is a value of that
    transformation. It is a pytree of its hyperparameters (but for those that are 0, which are
    structure), so it can be an argument of a program. At $x = x'$ the NTK of a degree-1
    activation has a kink; its derivative there is the mean of the one-sided ones.

    >>> import lnkernel as lnk
    >>> theta = lnk.ntk(lnk.mlp(hidden=2, norm="first"))
    >>> x = [[1.0, 2.0], [3.0, -1.0], [0.0, 0.0]]
    >>> theta(x).shape, theta(x, x[:1]).shape, theta.diagonal(x).round(12).tolist()
    ((3, 3), (3, 1), [3.03, 3.03, 3.03])
    """
    return Kernel(as_architecture(arch), ("ntk",))


def nngp(arch: Architecture) -> Kernel:
    r"""The kernel $K(x, x') = E[f(x) f(x')]$ of the infinitely wide network at random
    initialisation, a Gaussian process.

    Called like `ntk`.

    >>> import lnkernel as lnk
    >>> k = lnk.nngp(lnk.serial(lnk.Dense(8), lnk.Relu(), lnk.Dense(1)))
    >>> round(float(k([[1.0, 0.0]], [[0.0, 1.0]])[0, 0]), 12)    # 1/2 * 1/(2 pi)
    0.079577471546
    """
    return Kernel(as_architecture(arch), ("nngp",))


def kernels(arch: Architecture) -> KernelPair:
    r"""Both kernels in one pass, as `Kernels(nngp=K, ntk=Θ)`.

    Called like `ntk`.

    >>> import lnkernel as lnk
    >>> both = lnk.kernels(lnk.mlp())
    >>> x = [[1.0, 2.0]]
    >>> bool(abs(both(x).ntk / lnk.ntk(lnk.mlp())(x) - 1) < 1e-15)
    True
    """
    return KernelPair(as_architecture(arch), ("nngp", "ntk"))
