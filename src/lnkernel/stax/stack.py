"""What every layer and every network of `stax` describes: its parts, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lnkernel.arch import Node
from lnkernel.errors import ArchitectureError
from lnkernel.stax.parts import Part, fold


@dataclass(frozen=True, eq=False)
class Stack:
    """Parts one after another, and the parametrisation of the Dense layers among them."""

    parts: tuple[Part, ...]
    parameterization: str | None = None  # None where there is no Dense

    @cached_property
    def arch(self) -> Node:
        """The architecture; branches that are not whole have none."""
        return fold(self.parts)

    @property
    def arch_with_ntk(self) -> Node:
        """The architecture, if its tangent kernel is that of its limit."""
        if self.parameterization == "standard":
            raise ArchitectureError(
                "stax.Dense",
                "",
                'the NTK of parameterization="standard" grows with the width n, as n K + W_std² Θ at '
                "every Dense, and is not in this library",
                'Take parameterization="ntk", of which the untrained network is the same, or '
                'get="nngp"',
            )
        return self.arch


def concatenate(stacks: Sequence[Stack]) -> Stack:
    """One stack upon another, the first one first."""
    parts = tuple(part for stack in stacks for part in stack.parts)
    return Stack(parts, common_parameterization(stacks))


def common_parameterization(stacks: Sequence[Stack]) -> str | None:
    """The parametrisation of all Dense layers, which have to agree in it."""
    found = {stack.parameterization for stack in stacks} - {None}
    if len(found) > 1:
        raise ArchitectureError(
            "stax.Dense",
            "",
            f"its parameterization is {' here and '.join(sorted(map(repr, found)))} there",
            "Take the same for all layers of a network",
        )
    return found.pop() if found else None
