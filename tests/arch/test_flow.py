"""What has a closed form is accepted; what has none is refused, with a reason and a way out."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel import arch as arch_package
from lnkernel.arch import flow
from lnkernel.arch.convolution import Convolution
from lnkernel.arch.jumps import Jump
from lnkernel.arch.node import node
from lnkernel.arch.pooling import WindowPool
from lnkernel.calculus import rules

D, LN, GN, R, I = lnk.Dense(8), lnk.LayerNorm(), lnk.GroupNorm(4), lnk.Relu(), lnk.Identity()  # noqa: E741
S = lnk.Scale(2.0)
SCALED = lnk.LayerNorm(scale=True)

NOT_GAUSSIAN = "its input is not Gaussian, because {} stands between it and the last Dense"
BETWEEN = "Put a Dense between them"
TWO_DEGREES = "leaves two degrees of freedom, for which the NTK's diagonal is infinite"
MIXED = "it follows a sum in which one branch ends in a trainable scale"
MIXED_OUT = "Put a Dense between the sum and the activation, or set scale=False"
SHARED = "they share their randomness and their kernels do not add"
SHARED_OUT = "Put a Dense into all branches but one"
RAW_BRANCH = "one branch is the raw input"
RAW_BRANCH_OUT = "Put a Dense before the sum, or into that branch"
RAW_AFFINE = "a trainable scale or bias on the raw input"
RAW_AFFINE_OUT = "Set scale=False and bias=False there, or put a Dense before it"
GROUP_FEATURES = "it acts on features made by {}; its closed form needs a Gaussian state"
GROUP_OUT = "Put a Dense directly before it, or use LayerNorm"
GROUP_SCALED = "a trainable scale stands between it and the last Dense"


class Refused(NamedTuple):
    """What is built, and the four parts of the message."""

    build: Callable[[], object]
    layer: str
    position: str
    reason: str
    remedy: str


# Whatever stands before and behind it, this cannot be: refused where it is written, so the
# position is the one in the innermost block that is wrong by itself.
BUILT: dict[str, Refused] = {
    "activation after activation": Refused(
        lambda: lnk.serial(D, R, lnk.Abs()),
        "Abs",
        "layer 2",
        NOT_GAUSSIAN.format("Relu at layer 1"),
        BETWEEN,
    ),
    "activation after activation, with an Identity between": Refused(
        lambda: lnk.serial(D, R, I, lnk.LeakyRelu()),
        "LeakyRelu",
        "layer 3",
        NOT_GAUSSIAN.format("Relu at layer 1"),
        BETWEEN,
    ),
    "activation after activation, with a Scale between": Refused(
        lambda: lnk.serial(D, R, S, lnk.LeakyRelu()),
        "LeakyRelu",
        "layer 3",
        NOT_GAUSSIAN.format("Relu at layer 1"),
        BETWEEN,
    ),
    "activation after a Shift": Refused(
        lambda: lnk.serial(D, lnk.Shift(1.0), R),
        "Relu",
        "layer 2",
        NOT_GAUSSIAN.format("Shift at layer 1"),
        BETWEEN,
    ),
    "activation after a block that ends in one": Refused(
        lambda: lnk.serial(lnk.serial(D, R), lnk.serial(R, D)),
        "Relu",
        "layer 2",
        NOT_GAUSSIAN.format("Relu at layer 1"),
        BETWEEN,
    ),
    "activation after LayerNorm on features": Refused(
        lambda: lnk.serial(D, R, LN, lnk.RectifiedPower(2)),
        "RectifiedPower",
        "layer 3",
        NOT_GAUSSIAN.format("Relu at layer 1"),
        BETWEEN,
    ),
    "activation after RMSNorm on features": Refused(
        lambda: lnk.serial(D, R, lnk.RMSNorm(), lnk.Homogeneous(1.5)),
        "Homogeneous",
        "layer 3",
        NOT_GAUSSIAN.format("Relu at layer 1"),
        BETWEEN,
    ),
    "activation after GroupNorm": Refused(
        lambda: lnk.serial(D, GN, R),
        "Relu",
        "layer 2",
        NOT_GAUSSIAN.format("GroupNorm at layer 1"),
        BETWEEN,
    ),
    "activation after GroupNorm and LayerNorm": Refused(
        lambda: lnk.serial(D, GN, LN, R),
        "Relu",
        "layer 3",
        NOT_GAUSSIAN.format("GroupNorm at layer 1"),
        BETWEEN,
    ),
    "activation after a sum with features": Refused(
        lambda: lnk.serial(D, lnk.parallel(D, lnk.serial(D, R)), R),
        "Relu",
        "layer 2",
        NOT_GAUSSIAN.format("Relu at layer 1, branch 1, layer 1"),
        BETWEEN,
    ),
    "activation in a branch that starts from features": Refused(
        lambda: lnk.serial(D, R, lnk.residual(R, D)),
        "Relu",
        "layer 2, branch 1, layer 0",
        NOT_GAUSSIAN.format("Relu at layer 1"),
        BETWEEN,
    ),
    "two activations deep inside": Refused(
        lambda: lnk.parallel(D, lnk.serial(D, lnk.residual(D, R, R, D))),
        "Relu",
        "layer 2",
        NOT_GAUSSIAN.format("Relu at layer 1"),
        BETWEEN,
    ),
    "GroupNorm after an activation": Refused(
        lambda: lnk.serial(D, R, GN),
        "GroupNorm",
        "layer 2",
        GROUP_FEATURES.format("Relu at layer 1"),
        GROUP_OUT,
    ),
    "GroupNorm after LayerNorm on features": Refused(
        lambda: lnk.serial(D, R, LN, GN),
        "GroupNorm",
        "layer 3",
        GROUP_FEATURES.format("Relu at layer 1"),
        GROUP_OUT,
    ),
    "GroupNorm after GroupNorm": Refused(
        lambda: lnk.serial(D, GN, GN),
        "GroupNorm",
        "layer 2",
        GROUP_FEATURES.format("GroupNorm at layer 1"),
        GROUP_OUT,
    ),
    "GroupNorm after a trainable scale": Refused(
        lambda: lnk.serial(D, SCALED, GN),
        "GroupNorm",
        "layer 2",
        GROUP_SCALED,
        "Put a Dense between them, or set scale=False",
    ),
    "GroupNorm after a trainable scale and LayerNorm": Refused(
        lambda: lnk.serial(D, SCALED, LN, GN),
        "GroupNorm",
        "layer 3",
        GROUP_SCALED,
        "Put a Dense between them, or set scale=False",
    ),
    "GroupNorm after a sum with a trainable scale": Refused(
        lambda: lnk.serial(lnk.parallel(D, lnk.serial(D, SCALED)), GN),
        "GroupNorm",
        "layer 1",
        GROUP_SCALED,
        "Put a Dense between them, or set scale=False",
    ),
    "GroupNorm with eps": Refused(
        lambda: lnk.serial(D, lnk.GroupNorm(4, eps=1e-5)),
        "GroupNorm",
        "",
        "eps must be exactly 0, got 1e-05",
        "Use eps=0, or LayerNorm, which allows any eps",
    ),
    "GroupNorm with two degrees of freedom, centred": Refused(
        lambda: lnk.serial(D, lnk.GroupNorm(3)),
        "GroupNorm",
        "",
        f"group_size=3 with centre=True {TWO_DEGREES}",
        "Use group_size=4 or more",
    ),
    "GroupNorm with two degrees of freedom, not centred": Refused(
        lambda: lnk.serial(D, lnk.GroupNorm(2, centre=False)),
        "GroupNorm",
        "",
        f"group_size=2 with centre=False {TWO_DEGREES}",
        "Use group_size=3 or more",
    ),
    "sum with a trainable scale, then an activation": Refused(
        lambda: lnk.serial(lnk.parallel(D, lnk.serial(D, SCALED)), R),
        "Relu",
        "layer 1",
        MIXED,
        MIXED_OUT,
    ),
    "sum with the trainable scale of an RMSNorm": Refused(
        lambda: lnk.serial(lnk.parallel(D, lnk.serial(D, lnk.RMSNorm(scale=True))), R),
        "Relu",
        "layer 1",
        MIXED,
        MIXED_OUT,
    ),
    "sum with a trainable scale and LayerNorm in a branch": Refused(
        lambda: lnk.serial(lnk.parallel(D, lnk.serial(D, SCALED, LN)), R),
        "Relu",
        "layer 1",
        MIXED,
        MIXED_OUT,
    ),
    "sum with a trainable scale, then LayerNorm and an activation": Refused(
        lambda: lnk.serial(lnk.parallel(D, lnk.serial(D, SCALED)), LN, R),
        "Relu",
        "layer 2",
        MIXED,
        MIXED_OUT,
    ),
    "sum with a trainable scale on the skip": Refused(
        lambda: lnk.serial(D, SCALED, lnk.residual(R, D), LN, R),
        "Relu",
        "layer 4",
        MIXED,
        MIXED_OUT,
    ),
    "sum with a trainable scale, inside another sum": Refused(
        lambda: lnk.serial(lnk.parallel(D, lnk.parallel(D, lnk.serial(D, SCALED))), R),
        "Relu",
        "layer 1",
        MIXED,
        MIXED_OUT,
    ),
    "sum with a trainable scale, then an activation in a branch": Refused(
        lambda: lnk.serial(lnk.parallel(D, lnk.serial(D, SCALED)), lnk.residual(R, D)),
        "Relu",
        "layer 1, branch 1, layer 0",
        MIXED,
        MIXED_OUT,
    ),
    "shared randomness: x + relu(x)": Refused(
        lambda: lnk.serial(D, lnk.residual(R)), "residual", "", SHARED, SHARED_OUT
    ),
    "shared randomness: x + LayerNorm(x)": Refused(
        lambda: lnk.residual(LN), "residual", "", SHARED, SHARED_OUT
    ),
    "shared randomness: two activations": Refused(
        lambda: lnk.serial(D, lnk.parallel(R, lnk.Abs())),
        "parallel",
        "",
        SHARED,
        SHARED_OUT,
    ),
    "shared randomness: a skip in a skip": Refused(
        lambda: lnk.residual(lnk.residual(D)), "residual", "", SHARED, SHARED_OUT
    ),
    "shared randomness: a skip in a skip in a network": Refused(
        lambda: lnk.serial(D, lnk.residual(lnk.residual(R, D), LN), D),
        "residual",
        "",
        SHARED,
        SHARED_OUT,
    ),
    "shared randomness: two skips side by side": Refused(
        lambda: lnk.parallel(lnk.residual(D), lnk.residual(D)), "parallel", "", SHARED, SHARED_OUT
    ),
    "branches of different widths": Refused(
        lambda: lnk.parallel(D, lnk.serial(lnk.Dense(8), R, lnk.Dense(16))),
        "parallel",
        "",
        "its branches have different widths, [8, 16], and cannot be added",
        "Give the last Dense of all branches the same width",
    ),
    "a skip of another width": Refused(
        lambda: lnk.serial(lnk.Dense(16), R, lnk.residual(LN, D), D),
        "residual",
        "layer 2",
        "its branches have different widths, [8, 16], and cannot be added",
        "Give the last Dense of all branches the same width",
    ),
    "degree 1/2": Refused(
        lambda: lnk.serial(D, lnk.RectifiedPower(0.5)),
        "RectifiedPower",
        "",
        "degree must exceed 1/2, got 0.5",
        "Choose a degree > 1/2",
    ),
    "degree below 1/2": Refused(
        lambda: lnk.serial(D, lnk.Homogeneous(0.25)),
        "Homogeneous",
        "",
        "degree must exceed 1/2, got 0.25",
        "Choose a degree > 1/2",
    ),
}

# A block that is valid somewhere, but not at the start of a network.
AS_NETWORK: dict[str, Refused] = {
    "activation on the raw input": Refused(
        lambda: lnk.serial(R, D),
        "Relu",
        "layer 0",
        "it acts on the raw input, which is not Gaussian",
        "Put a Dense before it",
    ),
    "Shift on the raw input": Refused(
        lambda: lnk.serial(lnk.Shift(1.0), D),
        "Shift",
        "layer 0",
        "it acts on the raw input, whose coordinates are not random",
        "Add the number to the data",
    ),
    "activation on the raw input, normalised": Refused(
        lambda: lnk.serial(LN, R, D),
        "Relu",
        "layer 1",
        "it acts on the raw input, which is not Gaussian",
        "Put a Dense before it",
    ),
    "a lone activation": Refused(
        lambda: R, "Relu", "", "it acts on the raw input", "Put a Dense before it"
    ),
    "GroupNorm on the raw input": Refused(
        lambda: lnk.serial(GN, D),
        "GroupNorm",
        "layer 0",
        "it acts on the raw input; its closed form needs a Gaussian state",
        GROUP_OUT,
    ),
    "LayerNorm's scale on the raw input": Refused(
        lambda: lnk.serial(SCALED, D), "LayerNorm", "layer 0", RAW_AFFINE, RAW_AFFINE_OUT
    ),
    "LayerNorm's bias on the raw input": Refused(
        lambda: lnk.serial(lnk.LayerNorm(bias=True), D),
        "LayerNorm",
        "layer 0",
        RAW_AFFINE,
        RAW_AFFINE_OUT,
    ),
    "RMSNorm's scale on the raw input": Refused(
        lambda: lnk.serial(LN, lnk.RMSNorm(scale=True), D),
        "RMSNorm",
        "layer 1",
        RAW_AFFINE,
        RAW_AFFINE_OUT,
    ),
    "a scale on the raw input, in a branch": Refused(
        lambda: lnk.serial(lnk.parallel(D, lnk.serial(SCALED, D)), D),
        "LayerNorm",
        "layer 0, branch 1, layer 0",
        RAW_AFFINE,
        RAW_AFFINE_OUT,
    ),
    "raw input as a skip": Refused(
        lambda: lnk.serial(lnk.residual(D), D), "residual", "layer 0", RAW_BRANCH, RAW_BRANCH_OUT
    ),
    "raw input, normalised, as a branch": Refused(
        lambda: lnk.parallel(D, LN), "parallel", "", RAW_BRANCH, RAW_BRANCH_OUT
    ),
}


def _refusal(case: Refused, act: Callable[[], object]) -> None:
    with pytest.raises(lnk.errors.ArchitectureError) as caught:
        act()
    error = caught.value
    where = f"{case.layer} at {case.position}" if case.position else case.layer
    assert str(error).startswith(f"{where}: ")
    assert str(error).endswith(f". {case.remedy}.")
    assert case.reason in str(error)
    assert (error.layer, error.position) == (case.layer, case.position)


@pytest.mark.parametrize("case", BUILT.values(), ids=BUILT)
def test_refused_when_built(case: Refused) -> None:
    _refusal(case, case.build)


@pytest.mark.parametrize("kernel", [lnk.ntk, lnk.nngp, lnk.kernels])
@pytest.mark.parametrize("case", AS_NETWORK.values(), ids=AS_NETWORK)
def test_refused_as_a_network(case: Refused, kernel: Callable[[object], lnk.Kernel]) -> None:
    block = case.build()
    _refusal(case, lambda: kernel(block))


@pytest.mark.parametrize("case", AS_NETWORK.values(), ids=AS_NETWORK)
def test_with_a_dense_before_it_the_block_is_valid(case: Refused) -> None:
    lnk.ntk(lnk.serial(D, case.build(), D))


def test_refused_even_if_built_by_hand() -> None:
    unchecked = lnk.Serial((D, R, R))
    with pytest.raises(lnk.errors.ArchitectureError, match=r"^Relu at layer 2: its input is not"):
        lnk.ntk(unchecked)


@pytest.mark.parametrize("thing", [None, 7, lnk.Relu, [D]], ids=repr)
def test_what_is_no_architecture_is_refused(thing: object) -> None:
    with pytest.raises(lnk.errors.ArchitectureError, match=r"^network: expected an architect"):
        lnk.ntk(thing)


PRE_LN = lnk.residual(LN, D, R, D)

ACCEPTED: dict[str, lnk.Node] = {
    "one Dense": D,
    "linear": lnk.serial(D, D),
    **{
        f"{type(act).__name__} of degree {act.degree}": lnk.serial(D, act, D)
        for act in (
            R,
            lnk.Abs(),
            lnk.LeakyRelu(),
            lnk.RectifiedPower(0.51),
            lnk.RectifiedPower(3),
            lnk.Homogeneous(1.5, 1.0, -1.0),
        )
    },
    "Identity anywhere": lnk.serial(I, D, I, R, I, LN, I, D, I),
    "Scale anywhere": lnk.serial(S, D, S, R, S, LN, S, D, S, GN, S, D),
    "Shift behind a Dense, an activation and a norm": lnk.serial(
        D, R, lnk.Shift(1.0), LN, lnk.Shift(1.0), D, lnk.Shift(1.0), D
    ),
    "LayerNorm before an activation": lnk.serial(D, LN, R, D),
    "LayerNorm after an activation": lnk.serial(D, R, LN, D),
    "LayerNorm on the raw input": lnk.serial(LN, D, R, D),
    "LayerNorm everywhere": lnk.serial(LN, D, LN, R, LN, D, LN, LN, R, LN, D, LN),
    "RMSNorm everywhere": lnk.serial(*[lnk.RMSNorm(), D, lnk.RMSNorm(1e-5), R, lnk.RMSNorm(), D]),
    "scale and bias before an activation": lnk.serial(D, lnk.LayerNorm(0.1, True, True), R, D),
    "scale and bias after an activation": lnk.serial(D, R, lnk.LayerNorm(0.1, True, True), D),
    "scale twice": lnk.serial(D, SCALED, SCALED, R, D),
    "bias in a branch, then an activation": lnk.serial(
        lnk.parallel(D, lnk.serial(D, lnk.LayerNorm(bias=True))), R, D
    ),
    "GroupNorm after Dense": lnk.serial(D, GN, D, lnk.GroupNorm(2), D),
    "GroupNorm with scale and bias": lnk.serial(D, lnk.GroupNorm(4, scale=True, bias=True), D),
    "GroupNorm, not centred": lnk.serial(D, lnk.GroupNorm(3, centre=False), D),
    "GroupNorm after LayerNorm": lnk.serial(D, LN, GN, D),
    "GroupNorm after a Gaussian sum": lnk.serial(lnk.parallel(D, D), GN, D),
    "GroupNorm, LayerNorm": lnk.serial(D, GN, LN, D),
    "pre-LN": lnk.serial(D, PRE_LN, PRE_LN, LN, D),
    "post-LN": lnk.serial(D, lnk.residual(D, R, D), LN, lnk.residual(D, R, D), LN, D),
    "a skip of features": lnk.serial(D, R, lnk.residual(D, R), D),
    "an activation after a skip": lnk.serial(D, lnk.residual(R, D), R, D),
    "a skip behind a Dense in a skip": lnk.serial(D, lnk.residual(D, lnk.residual(R, D)), D),
    "a skip, then a Dense, in a skip": lnk.serial(D, lnk.residual(lnk.residual(D), D), D),
    "one skip beside other branches": lnk.serial(D, lnk.parallel(lnk.residual(D), D, D), D),
    "branches from the raw input": lnk.serial(lnk.parallel(D, lnk.serial(LN, D)), R, D),
    "branches that end in activations": lnk.serial(
        lnk.parallel(lnk.serial(D, R), lnk.serial(D, R)), LN, D
    ),
    "a sum with a trainable scale, then Dense": lnk.serial(
        lnk.parallel(D, lnk.serial(D, SCALED)), D, R, D
    ),
    "a sum with a trainable scale, then LayerNorm": lnk.serial(
        lnk.parallel(D, lnk.serial(D, SCALED)), LN, D
    ),
    "a trainable scale behind a sum": lnk.serial(lnk.parallel(D, D), SCALED, R, D),
    "width changes between blocks": lnk.serial(D, R, lnk.Dense(16), lnk.residual(lnk.Dense(16)), D),
    "a sum as the whole network": lnk.parallel(D, lnk.serial(D, R, D)),
    "a network that ends in features": lnk.serial(D, R),
    "every norm of an mlp": lnk.mlp(hidden=3, norm="all"),
}


@pytest.mark.parametrize("arch", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(arch: lnk.Node) -> None:
    """Its rules are followed to the end, without compiling and computing them."""
    with jax.enable_x64(True):
        both = jax.eval_shape(lnk.kernels(arch), jax.ShapeDtypeStruct((2, 3), np.float64))
    assert [(k.shape, k.dtype) for k in both] == [((2, 2), np.float64)] * 2


def _concrete(cls: type[lnk.Node]) -> Iterator[type[lnk.Node]]:
    """All subclasses that `lnkernel.arch` defines, without the common types of activations and of pooling."""
    for child in cls.__subclasses__():
        yield from _concrete(child)
        if child.__module__.startswith("lnkernel.arch.") and child not in ABSTRACT:
            yield child


ABSTRACT = (
    *(lnk.Elementwise, lnk.PositivelyHomogeneous, lnk.Smooth, lnk.Piecewise, Jump),
    *(WindowPool, Convolution),
)


def _all_layers() -> list[type[lnk.Node]]:
    for module in pkgutil.iter_modules(arch_package.__path__, "lnkernel.arch."):
        importlib.import_module(module.name)
    return sorted(_concrete(lnk.Node), key=lambda cls: cls.__name__)


LAYERS = _all_layers()
COMPOSED = (lnk.Serial, lnk.Parallel)  # the walk enters them itself


def test_all_layers_are_found() -> None:
    assert {lnk.Dense, lnk.Relu, lnk.GroupNorm, *COMPOSED} < set(LAYERS)


@pytest.mark.parametrize("layer", LAYERS)
def test_every_layer_is_public_and_has_step_and_rule(layer: type[lnk.Node]) -> None:
    assert getattr(lnk, layer.__name__) is layer
    assert layer.__name__ in arch_package.__all__ and layer.__name__ in lnk.__all__
    missing = rules.rule.dispatch(object)
    assert rules.rule.dispatch(layer) is not missing
    if layer not in COMPOSED:
        assert flow.step.dispatch(layer) is not flow.step.dispatch(object)


def test_a_layer_without_step_or_rule_says_what_is_missing() -> None:
    @node
    class Softmax(lnk.Node):
        pass

    no_step = (
        "Softmax at layer 1: this type of layer is not known. Register its step in "
        "lnkernel.arch.flow and its rule in lnkernel.calculus.rules."
    )
    with pytest.raises(lnk.errors.ArchitectureError, match=re.escape(no_step)):
        lnk.serial(D, Softmax())
    no_rule = (
        "Softmax: this type of layer has no rule. Register one in lnkernel.calculus.rules, and its "
        "step in lnkernel.arch.flow."
    )
    with pytest.raises(lnk.errors.ArchitectureError, match=re.escape(no_rule)):
        rules.rule(Softmax(), None, None)
