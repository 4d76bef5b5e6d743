"""Deep networks: blocks that repeat are compiled once, as a loop.

A network of a few layers becomes one fused loop over its pairs. At fifty layers that
loop would take minutes to compile; but such networks repeat one block, and then the
state only has to go round in `lax.scan`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lnkernel.arch import Node, Serial
from lnkernel.arch.compose import layers_of
from lnkernel.calculus.arithmetic import Arithmetic
from lnkernel.calculus.rules import rule
from lnkernel.calculus.state import State
from lnkernel.check.plain import known_zero
from lnkernel.evaluate.float64.carried import put_back, take_out

FEWEST = 12  # repetitions that are worth a loop
LONGEST = 12  # layers in a block that may repeat
SETTLING = 3  # blocks after which the form of the state no longer changes

Layers = tuple[Node, ...]


class Source(NamedTuple):
    """Where hyperparameters come from, if they come as one array: a loop then reads them at their places. Five hundred
    numbers, each cut out of the array to be put together again, would take longer to compile than all the rest."""

    places: Node  # the architecture, with places in the array as its hyperparameters
    numbers: Any


def run(arch: Node, state: State, num: Arithmetic, source: Source | None = None) -> State:
    """The state behind `arch`, as `rule` gives it."""
    layers, done = layers_of(arch), 0
    for blocks in _repetitions(layers):
        start, done = done, done + sum(map(len, blocks))
        for number, block in enumerate(blocks):
            if number == SETTLING and len(blocks) >= FEWEST:
                from_source = None
                if source is not None:
                    size = len(block)
                    rest = layers_of(source.places)[start + number * size : done]
                    ends = range(size, len(rest) + 1, size)
                    from_source = [rest[end - size : end] for end in ends], source.numbers
                looped = _loop(blocks[number:], state, num, from_source)
                if looped is not None:
                    state = looped
                    break
            state = rule(Serial(block), state, num)
    return state


def has_loop(arch: Node) -> bool:
    """Whether some of its blocks may become a loop."""
    layers = layers_of(arch)
    return any(len(blocks) >= FEWEST for blocks in _repetitions(layers))


def _repetitions(layers: Layers) -> Iterator[list[Layers]]:
    """The layers in order, cut into runs of blocks of equal form; mostly runs of one layer."""
    forms = [_form(layer) for layer in layers]
    start = 0
    while start < len(layers):
        period, count = 1, 1
        for length in range(1, min(LONGEST, len(layers) - start) + 1):
            end = start + length
            while end < len(layers) and forms[end] == forms[end - length]:
                end += 1
            if (end - start) // length >= FEWEST:
                period, count = length, (end - start) // length
                break
        yield [layers[start + i * period : start + (i + 1) * period] for i in range(count)]
        start += period * count


def _form(layer: Node) -> Any:
    leaves, tree = jax.tree.flatten(layer)
    return tree, tuple(known_zero(leaf) for leaf in leaves)


def _loop(
    blocks: list[Layers],
    state: State,
    num: Arithmetic,
    source: tuple[list[Layers], Any] | None,
) -> State | None:
    """All blocks by one loop; None where the state's form changes from block to block."""
    arrays: list[Any] = []
    form = take_out(state, arrays)
    hyperparameters = [jax.tree.leaves(block) for block in blocks]
    _, tree = jax.tree.flatten(blocks[0])
    varying = [not known_zero(leaf) for leaf in hyperparameters[0]]
    if source is None:
        columns = zip(*hyperparameters, strict=True)
        stacked = [
            jnp.stack([jnp.asarray(leaf, jnp.float64) for leaf in column])
            for column, varies in zip(columns, varying, strict=True)
            if varies
        ]
    else:
        places, numbers = source
        columns = zip(*map(jax.tree.leaves, places), strict=True)
        stacked = [
            jnp.asarray(numbers, jnp.float64)[np.asarray(column)]
            for column, varies in zip(columns, varying, strict=True)
            if varies
        ]

    def through_block(arrays: list[Any], values: list[Any]) -> tuple[Any, list[Any]]:
        rest = iter(values)
        block = jax.tree.unflatten(tree, [next(rest) if varies else 0.0 for varies in varying])
        after: list[Any] = []
        return take_out(rule(Serial(block), put_back(form, arrays), num), after), after

    settled = False

    def check(arrays: list[Any], values: list[Any]) -> None:
        nonlocal settled
        settled = through_block(arrays, values)[0] == form

    jax.eval_shape(check, arrays, [column[0] for column in stacked])
    if not settled:
        return None
    final, _ = lax.scan(lambda a, v: (through_block(a, v)[1], None), arrays, stacked)
    return put_back(form, final)
