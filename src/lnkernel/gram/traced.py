"""Gram matrices inside a user's own jit, grad or vmap.

Every pair is compared with all care: that form is differentiable as often as the kernel
is, and has no loop whose length depends on the data. It costs more than the quick form,
and memory is a few matrices of the size of the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from lnkernel.arch import Node
from lnkernel.arch.facts import starts_with_bias
from lnkernel.calculus.state import Kernels
from lnkernel.gram import pairs
from lnkernel.gram.comparison import Compared, Comparing, compare, off_zero
from lnkernel.gram.compiled import call_compiled
from lnkernel.gram.network import Needs, Network, needs_of
from lnkernel.gram.partials import Shape, Values, differentiate_by_pair
from lnkernel.gram.program import select
from lnkernel.gram.structure import Structure, assemble, dissect
from lnkernel.types import Array

Which = tuple[str, ...]


def matrix(arch: Node, x: Array, x2: Array, which: Which) -> Values:
    """These kernels of all pairs of x and x2, (n, m) each."""
    needs, behind_bias = needs_of(arch), starts_with_bias(arch)
    total = compare(Comparing(False, needs.range, behind_bias), x, x2)
    centred = None
    if needs.centred_input:
        centred = compare(Comparing(True, needs.range, behind_bias), x, x2)
    found = _run(_OfPairs, arch, needs, which, (len(x), len(x2)), (total, centred))
    known = _are_numbers(x)[:, None] & _are_numbers(x2)
    return tuple(jnp.where(known, kernel, jnp.nan) for kernel in found)


def diagonal(arch: Node, x: Array, which: Which) -> Values:
    """These kernels of every point with itself, (n,) each."""
    needs = needs_of(arch)
    points = call_compiled(_prepare, needs, starts_with_bias(arch), arguments=(x,))
    found = _run(_OfPoints, arch, needs, which, (len(x),), points)
    return tuple(jnp.where(_are_numbers(x), kernel, jnp.nan) for kernel in found)


def _are_numbers(x: Array) -> Array:
    """Which points are finite: the others, which nobody can refuse here, would look like points behind a norm."""
    return jnp.isfinite(x).all(axis=-1)


@dataclass(frozen=True)
class _Kernels:
    """The kernels behind a network as a function of its hyperparameters and of what comes in, all in one list."""

    structure: Structure
    needs: Needs
    which: Which
    shape: Shape
    form: Any  # of the list as a tree

    def __call__(self, *numbers: Array) -> Values:
        varying, inputs = jax.tree.unflatten(self.form, numbers)
        net = Network(assemble(self.structure, varying), self.needs)
        kernels = select(self.behind(net, inputs), self.which)
        return tuple(jnp.broadcast_to(kernel, self.shape) for kernel in kernels)

    def behind(self, net: Network, inputs: Any) -> Kernels:
        raise NotImplementedError


class _OfPairs(_Kernels):
    def behind(self, net: Network, inputs: tuple[Compared, Compared | None]) -> Kernels:
        total, centred = inputs
        return pairs.through(net, total.covariance(), centred and centred.covariance())


class _OfPoints(_Kernels):
    def behind(self, net: Network, inputs: pairs.Points) -> Kernels:
        return pairs.diagonal(net, inputs, all_live=False)


def _run(
    kind: type[_Kernels], arch: Node, needs: Needs, which: Which, shape: Shape, inputs: Any
) -> Values:
    structure, varying = dissect(arch)
    # XLA would take numbers that it knows for constants, and run in circles with what follows from them alone
    hyperparameters = [jax.lax.optimization_barrier(jnp.asarray(v, jnp.float64)) for v in varying]
    numbers, form = jax.tree.flatten((hyperparameters, inputs))
    return differentiate_by_pair(kind(structure, needs, which, shape, form), shape, *numbers)


def _prepare(needs: Needs, behind_bias: bool, x: Array) -> pairs.Points:
    """What `pairs.diagonal` reads of each point."""
    points = pairs.prepare(needs, off_zero(x) if behind_bias else x)

    def without_vectors(inputs: Any) -> Any:
        return inputs and inputs._replace(scaled=None, exponent=None, unit=None, spread=None)

    return pairs.Points(*map(without_vectors, points))
