"""Composition: one layer after another, and sums of branches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import singledispatch

from lnkernel.arch.elementwise import Identity
from lnkernel.arch.flow import Kind, Place, Row, Space, check_block, inside, walk
from lnkernel.arch.node import Node, node
from lnkernel.arch.show import describe, html_of
from lnkernel.arch.traits import EVERYWHERE, Traits, traits
from lnkernel.errors import ArchitectureError


@node
class Serial(Node):
    """Layers one after another. Build it with `serial`, which checks it."""

    layers: tuple[Node, ...]

    def __repr__(self) -> str:
        return f"serial({', '.join(map(repr, self.layers))})"

    def _repr_html_(self) -> str:
        return html_of(self)


@node
class Parallel(Node):
    """The sum of branches that start from the same state. Build it with `parallel`."""

    branches: tuple[Node, ...]

    def __repr__(self) -> str:
        if len(self.branches) == 2 and isinstance(self.branches[0], Identity):
            return f"residual({self.branches[1]!r})"
        return f"parallel({', '.join(map(repr, self.branches))})"

    def _repr_html_(self) -> str:
        return html_of(self)


def serial(*layers: Node) -> Serial:
    r"""The composition $f_L \circ \dots \circ f_1$ of its arguments, first argument first.

    Nested compositions are flattened, so `serial(serial(a, b), c) == serial(a, b, c)`.
    What has no infinite-width limit or no closed form raises `ArchitectureError`.

    >>> import lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(64), lnk.LayerNorm(), lnk.Relu(), lnk.Dense(1))
    >>> lnk.serial(lnk.serial(*arch.layers[:2]), *arch.layers[2:]) == arch
    True
    >>> eval(repr(arch), vars(lnk)) == arch
    True
    """
    if not layers:
        raise ArchitectureError("serial", "", "it needs at least one layer", "Name one, e.g. Dense")
    flat: list[Node] = []
    for place, layer in enumerate(layers):
        _expect_node("serial", place, layer)
        flat.extend(layers_of(layer))
    return check_block(Serial(tuple(flat)))


def parallel(*branches: Node) -> Parallel:
    r"""The sum $f_1(x) + \dots + f_k(x)$ of branches that start from the same state.

    Each branch needs a Dense of its own, except at most one: otherwise the branches
    share their randomness, and their kernels do not add.

    >>> import lnkernel as lnk
    >>> wide = lnk.serial(lnk.Dense(64), lnk.Relu(), lnk.Dense(64))
    >>> arch = lnk.serial(lnk.parallel(wide, lnk.Dense(64)), lnk.LayerNorm(), lnk.Dense(1))
    >>> round(float(lnk.nngp(arch).diagonal([[3.0]])[0]), 12)
    1.0
    """
    if len(branches) < 2:
        raise ArchitectureError("parallel", "", "it needs at least two branches", "Use serial")
    for place, branch in enumerate(branches):
        _expect_node("parallel", place, branch)
    return check_block(Parallel(tuple(branches)))


def residual(*branch: Node) -> Parallel:
    r"""The residual block $x + f(x)$; several arguments are composed first, as in `serial`.

    >>> import lnkernel as lnk
    >>> block = lnk.residual(lnk.LayerNorm(), lnk.Relu(), lnk.Dense(64))
    >>> arch = lnk.serial(lnk.Dense(64), block, lnk.LayerNorm(), lnk.Dense(1))
    >>> block == lnk.parallel(lnk.Identity(), lnk.serial(*block.branches[1].layers))
    True
    """
    if not branch:
        raise ArchitectureError("residual", "", "it needs a branch", "Name one, e.g. Dense(64)")
    return parallel(Identity(), branch[0] if len(branch) == 1 else serial(*branch))


@singledispatch
def layers_of(arch: Node) -> tuple[Node, ...]:
    """What a network does one after another: the layers of a composition, or the layer itself."""
    return (arch,)


@layers_of.register
def _(arch: Serial) -> tuple[Node, ...]:
    return arch.layers


def _expect_node(name: str, place: int, layer: object) -> None:
    if not isinstance(layer, Node):
        raise ArchitectureError(
            name,
            f"argument {place}",
            f"expected a layer, got {layer!r} of type {type(layer).__name__}",
            f"Write lnkernel.parse({layer!r})"
            if isinstance(layer, str) and "(" in layer
            else "Write e.g. lnkernel.Relu(), with the brackets",
        )


# ---------------------------------------------------------------- how the walk enters them


@walk.register
def _(arch: Serial, place: Place, here: str = "") -> Iterator[Row]:
    for number, layer in enumerate(arch.layers):
        for row in walk(layer, place, inside(here, f"layer {number}")):
            yield row
            place = row[2]


@walk.register
def _(arch: Parallel, place: Place, here: str = "") -> Iterator[Row]:
    """The branches one after another, and then the sum itself."""
    ends = []
    for number, branch in enumerate(arch.branches):
        end = dataclasses.replace(place, fresh=False)
        for row in walk(branch, end, inside(here, f"branch {number}")):
            yield row
            end = row[2]
        ends.append(end)
    yield here, arch, _sum(arch, ends, place, here)


@describe.register
def _(layer: Parallel) -> tuple[str, str]:
    return "sum of the branches", ""


@traits.register
def _(layer: Parallel) -> Traits:
    """The traits of the sum alone: it compares the differences of the lengths of its branches."""
    return Traits(
        needs_difference=EVERYWHERE, needs_range=False, reads_centred=False, steepness=1.0
    )


def _sum(layer: Parallel, ends: list[Place], start: Place, here: str) -> Place:
    name = repr(layer).split("(")[0]
    if sum(not end.fresh for end in ends) > 1:
        raise ArchitectureError(
            name,
            here,
            "two of its branches pass the incoming state on without a Dense of their own, so they "
            "share their randomness and their kernels do not add",
            "Put a Dense into all branches but one",
        )
    if any(end.kind is Kind.INPUT for end in ends):
        raise ArchitectureError(
            name,
            here,
            "one branch is the raw input, whose finitely many coordinates do not average out "
            "against the infinitely wide branches",
            "Put a Dense before the sum, or into that branch",
        )
    widths = {end.width for end in ends if end.width is not None}
    if len(widths) > 1:
        raise ArchitectureError(
            name,
            here,
            f"its branches have different widths, {sorted(widths)}, and cannot be added",
            "Give the last Dense of all branches the same width",
        )
    if any(end.space is Space.FLATTENED for end in ends):
        raise ArchitectureError(
            name,
            here,
            "one branch ends in Flatten, behind which the features are not identically distributed",
            "Put a Dense behind Flatten, or Flatten behind the sum",
        )
    spaces = {end.space for end in ends} - {Space.ANY}
    if len(spaces) > 1:
        raise ArchitectureError(
            name,
            here,
            "one branch has features at positions, another one has none, and they cannot be added",
            "End all branches alike, e.g. with GlobalAvgPool() behind the sum",
        )
    kinds = {end.kind for end in ends}
    kind = next((k for k in (Kind.FEATURES, Kind.ANY) if k in kinds), Kind.GAUSSIAN)
    return Place(
        kind,
        width=widths.pop() if widths else None,
        mixed=any(end.scaled or end.mixed for end in ends),
        fresh=start.fresh or all(end.fresh for end in ends),
        maker=next((end.maker for end in ends if end.maker), ""),
        space=spaces.pop() if spaces else Space.ANY,
        axes=next((end.axes for end in ends if end.axes is not None), None),
    )
