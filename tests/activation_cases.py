"""Networks with activations beyond homogeneity, for the table of accuracy: one or more of every kind.

Closed forms have the bounds of homogeneous activations, at every length. What is summed over Hermite polynomials or
integrated has a bound of its own. Without a norm, inputs are only as long as the library or the oracle takes them.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from cases import Case, deep, dense, depth_of

import lnkernel as lnk
from lnkernel import LayerNorm, Node, Relu, residual, serial

MODERATE = 20.0  # the oracle's nodes in the plane grow with the square of the length
LONG = 1e4  # as far as the oracle goes; `test_long_inputs` goes on to 1e150
LONGEST = 1e7
BATCH, MANY = 8, 32  # pairs
AFFINE = LayerNorm(scale=True, bias=True)
WITH_EPS = LayerNorm(eps=0.1, scale=True, bias=True)

CLOSED: dict[str, lnk.Elementwise] = {
    "erf": lnk.Erf(),
    "gelu": lnk.Gelu(),
    "sin": lnk.Sin(1.3, 0.4),
    "cos": lnk.Cos(0.7),
    "gaussian": lnk.Gaussian(),
}
SUMMED: dict[str, lnk.Elementwise] = {
    "tanh": lnk.Tanh(),
    "silu": lnk.Silu(),
    "softplus": lnk.Softplus(),
    "sigmoid": lnk.Sigmoid(),
    "gelu, approximate": lnk.Gelu(approximate=True),
}
KINKED: dict[str, lnk.Elementwise] = {"elu": lnk.Elu(), "clip": lnk.Clip(), "selu": lnk.Selu()}


def table() -> dict[str, Case]:
    """Every case, by name."""
    return {**closed_forms(), **polynomials(), **jumps(), **sums(), **integrals(), **own()}


def case(arch: Node, **settings: Any) -> Case:
    return Case(arch, depth_of(arch), 1.0, **settings)


def inexact(arch: Node, **settings: Any) -> Case:
    return case(arch, kind="summed or integrated", **settings)


def closed_forms() -> dict[str, Case]:
    """Without a norm, with LayerNorms before and after; deep ones; a ReLU behind shows lost digits of angles."""
    made = {}
    for name, act in CLOSED.items():
        made[f"{name} 2, relu"] = case(serial(*deep(2, act).layers, Relu(), dense()))
        made[f"{name} LN all"] = case(deep(3, act, before=(LayerNorm(),)))
        made[f"{name} LN before and after"] = case(
            deep(2, act, before=(WITH_EPS,), after=(LayerNorm(eps=0.01),))
        )
    for name in ("erf", "gelu", "gaussian"):
        act = CLOSED[name]
        # the program of ten closed forms takes ten minutes to compile
        made[f"{name} 10"] = case(deep(10, act), programs="none")
        made[f"{name} LN all 10"] = case(deep(10, act, before=(LayerNorm(),)), programs="none")
    return made


def polynomials() -> dict[str, Case]:
    cubic = lnk.Polynomial((0.3, -1.0, 0.5, 0.2))
    return {
        "polynomial": case(deep(2, cubic)),
        "polynomial LN all, relu": case(
            serial(*deep(2, cubic, before=(AFFINE,)).layers, Relu(), dense())
        ),
        "hermite": case(deep(2, lnk.Hermite(3))),
        "hermite LN all": case(deep(2, lnk.Hermite(4), before=(LayerNorm(),))),
    }


def jumps() -> dict[str, Case]:
    """They have no NTK."""
    return {
        name: case(serial(dense(), act, dense(), Relu(), dense()), kernels=("nngp",))
        for name, act in (("sign, relu", lnk.Sign()), ("step, relu", lnk.Step()))
    }


def sums() -> dict[str, Case]:
    """Tables behind a norm, at every length; series behind one with eps, and without any."""
    made = {}
    for name, act in SUMMED.items():
        made[f"{name} LN all, scale and bias"] = inexact(deep(2, act, before=(AFFINE,)))
    for name in ("tanh", "silu"):
        act = SUMMED[name]
        block = residual(LayerNorm(), dense(), act, dense())
        made[f"{name} LN eps"] = inexact(deep(2, act, before=(WITH_EPS,)))
        made[f"{name} pre-LN"] = inexact(serial(dense(), block, LayerNorm(), act, dense()))
        made[f"{name} 2"] = inexact(deep(2, act), longest=MODERATE, batch=BATCH)
        # most pairs at small angles, many at a time, and no program, which would take minutes to compile
        made[f"{name} 6, relu"] = inexact(
            serial(*deep(6, act).layers, Relu(), dense()),
            longest=MODERATE,
            batch=MANY,
            programs="none",
        )
    return made


def integrals() -> dict[str, Case]:
    """Tables behind a norm, of unit length and of another; integrals without any."""
    made = {}
    for name, act in KINKED.items():
        made[f"{name} LN all, scale and bias"] = inexact(deep(2, act, before=(AFFINE,)))
        made[f"{name} LN first"] = inexact(serial(dense(), LayerNorm(), *deep(2, act).layers[1:]))
        made[f"{name} 2"] = inexact(deep(2, act), longest=LONG, batch=BATCH)
    return made


def own() -> dict[str, Case]:
    """Functions of one's own; for erf there is a closed form to compare with, which is not used."""
    tanh, erf = lnk.Activate(jnp.tanh), lnk.Activate(jax.scipy.special.erf)
    return {
        "own tanh LN all": inexact(deep(2, tanh, before=(LayerNorm(),))),
        "own erf": inexact(deep(1, erf), longest=LONGEST, batch=BATCH),
    }
