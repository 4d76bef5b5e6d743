"""Bounds whose numbers a program has changed state nothing; those that passed through unchanged keep all."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lnkernel as lnk

ARCH = lnk.mlp(hidden=1, norm="first")
X, Y = np.array([[-1.0], [0.3], [1.0]]), np.array([1.0, 0.0, 0.5])
NOISES = [0.0, np.array([0.1, 0.2, 0.3])]


@pytest.fixture(scope="module", params=NOISES, ids=["exact", "noises"])
def proved(request: pytest.FixtureRequest) -> lnk.Bound:
    return lnk.bound(ARCH, X, Y, noise=request.param, certify=True)


def scaled(b: lnk.Bound, factor: Any) -> lnk.Bound:
    made: lnk.Bound = jax.tree.map(lambda v: v * factor, b)
    return made


WAYS: dict[str, Callable[[lnk.Bound], lnk.Bound]] = {
    "less": lambda b: scaled(b, 0.1),
    "by a program": lambda b: jax.jit(scaled)(b, 0.1),
    "twice": lambda b: scaled(scaled(b, 0.1), 0.1),
    "gradient": jax.grad(lambda b: b.at(X).sum()),
    "one number": lambda b: dataclasses.replace(b, value=b.value / 2),
    "the network": lambda b: jax.tree.map(
        lambda v, change: v + change, b, jax.grad(lambda b: b.at(X).sum())(b)
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_was_changed_states_nothing(proved: lnk.Bound, way: str) -> None:
    with jax.enable_x64(True):
        made = WAYS[way](proved)
    assert (made.is_theorem, made.certified, made.certificate) == (False, False, None)
    text = str(made)
    assert "changed after they had been computed" in text and "nothing is proved" in text
    assert "Proved" not in text and "is 0 everywhere" not in text
    assert jax.tree.structure(made) == jax.tree.structure(proved)


def test_what_was_not_changed_keeps_all(proved: lnk.Bound) -> None:
    with jax.enable_x64(True):
        through = jax.jit(lambda b: b)(proved)
        back = scaled(scaled(proved, 0.125), 8.0)
        mapped = jax.tree.map(jnp.asarray, proved)
        shapes = jax.eval_shape(lambda b: b, proved)
        for made in (through, back, mapped):
            assert made == proved and str(made) == str(proved)
            assert made.certified and made.is_theorem
            assert made.certificate is proved.certificate
    for made in (copy.deepcopy(proved), pickle.loads(pickle.dumps(proved))):
        assert made.certified and str(made) == str(proved)
    assert "ShapeDtypeStruct" in str(shapes)


def test_stacks() -> None:
    b = lnk.bound(ARCH, X, Y)
    with jax.enable_x64(True):
        stack = jax.vmap(lambda factor: scaled(b, factor))(np.array([1.0, 2.0]))
        both = jax.vmap(lambda b: b.at(X))(stack)
        first, second = (jax.tree.map(lambda v, i=i: v[i], stack) for i in range(2))
    assert both[0] == pytest.approx(b.at(X))
    assert str(stack).startswith("A stack of bounds, of shape (2,)") and not stack.is_theorem
    for ask in (lambda: stack.at(X), lambda: float(stack), lambda: stack.sharp):
        with pytest.raises(lnk.errors.InputError, match=r"a stack of them, .*\(2,\).*jax\.vmap"):
            ask()
    assert str(first) == str(b) and first.is_theorem and not second.is_theorem


@pytest.mark.parametrize("make", [lnk.ntk, lnk.kernels])
def test_stacks_of_kernels(make: Callable[[lnk.Node], Any]) -> None:
    each = [make(lnk.mlp(W_std=w)) for w in (1.0, 2.0)]
    with jax.enable_x64(True):
        stack = jax.tree.map(lambda *v: jnp.stack(v), *each)
        got = jax.vmap(lambda kernel: kernel(X))(stack)
    assert np.asarray(jax.tree.leaves(got)[-1])[1] == pytest.approx(
        np.asarray(jax.tree.leaves(each[1](X))[-1])
    )
    for ask in (stack, stack.diagonal, stack.error_estimate):
        with pytest.raises(lnk.errors.InputError, match=r"a stack of them, .*\(2,\).*jax\.vmap"):
            ask(X)
