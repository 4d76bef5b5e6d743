"""The layers of `stax`: which architecture they mean, what they refuse, what they are without."""

from __future__ import annotations

import doctest
import importlib
import inspect
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lnkernel as lnk
from lnkernel import stax
from lnkernel.stax.missing import MISSING, OF_NT, ONLY_IN_STAX

BLOCK = (stax.Relu(), stax.Dense(8, 1.5))
NODES = (lnk.Relu(), lnk.Dense(8, 1.5))

MEANINGS: dict[str, tuple[stax.Layer, lnk.Node]] = {
    "no bias": (stax.Dense(8), lnk.Dense(8)),
    "by place": (stax.Dense(8, 1.5, 0.1, 0, -1, "ntk", (1, 1)), lnk.Dense(8, 1.5, 0.1)),
    "bias zero": (stax.Dense(8, b_std=0.0), lnk.Dense(8)),
    "two axes counted otherwise": (stax.Dense(8, batch_axis=-2, channel_axis=1), lnk.Dense(8)),
    "upper case": (stax.Dense(8, parameterization="NTK"), lnk.Dense(8)),
    "relu": (stax.Relu(do_stabilize=True), lnk.Relu()),
    "leaky": (stax.LeakyRelu(0.2), lnk.LeakyRelu(0.2)),
    "a for negative, b for positive": (stax.ABRelu(0.3, 2.0), lnk.Homogeneous(1, a=2.0, b=-0.3)),
    "abs": (stax.Abs(), lnk.Abs()),
    "rectified": (stax.RectifiedMonomial(3), lnk.RectifiedPower(3)),
    "even": (stax.Monomial(2), lnk.Homogeneous(2, a=1.0, b=1.0)),
    "odd": (stax.Monomial(3), lnk.Homogeneous(3, a=1.0, b=-1.0)),
    "cosine with a phase": (stax.Cos(b=2.0, c=0.5), lnk.Sin(2.0, 0.5 + math.pi / 2)),
    "identity": (stax.Identity(), lnk.Identity()),
    "its eps": (stax.LayerNorm(), lnk.LayerNorm(1e-12)),
    "one axis in a tuple": (stax.LayerNorm(axis=(1,), eps=0.1), lnk.LayerNorm(0.1)),
    "serial": (stax.serial(*BLOCK, stax.Relu()), lnk.serial(*NODES, lnk.Relu())),
    "a serial in a serial": (
        stax.serial(stax.serial(*BLOCK), stax.serial(*BLOCK)),
        lnk.serial(*NODES, *NODES),
    ),
    "a node of ours": (
        stax.serial(stax.Dense(8), lnk.RMSNorm()),
        lnk.serial(lnk.Dense(8), lnk.RMSNorm()),
    ),
    "unpacked": (stax.serial(tuple(BLOCK[0]), BLOCK[1]), lnk.serial(*NODES)),
    "repeat": (stax.repeat(stax.serial(*BLOCK), 3), lnk.serial(*NODES, *NODES, *NODES)),
    "repeat once": (stax.repeat(stax.Dense(8), 1), lnk.Dense(8)),
    "repeat never": (stax.repeat(stax.Dense(8), 0), lnk.Identity()),
    "residual": (
        stax.serial(
            stax.FanOut(2), stax.parallel(stax.serial(*BLOCK), stax.Identity()), stax.FanInSum()
        ),
        lnk.parallel(lnk.serial(*NODES), lnk.Identity()),
    ),
    "branches in two steps": (
        stax.serial(
            stax.FanOut(2),
            stax.parallel(stax.Dense(8), stax.Dense(8, 2.0)),
            stax.parallel(stax.Relu(), stax.Identity()),
            stax.FanInSum(),
        ),
        lnk.parallel(
            lnk.serial(lnk.Dense(8), lnk.Relu()), lnk.serial(lnk.Dense(8, 2.0), lnk.Identity())
        ),
    ),
    "opened in one block and closed in another": (
        stax.serial(
            stax.serial(stax.Dense(8), stax.FanOut(2)),
            stax.serial(stax.parallel(stax.Identity(), stax.Dense(8)), stax.FanInSum()),
        ),
        lnk.serial(lnk.Dense(8), lnk.residual(lnk.Dense(8))),
    ),
    "branches in a branch": (
        stax.serial(
            stax.FanOut(2),
            stax.parallel(
                stax.serial(
                    stax.FanOut(2),
                    stax.parallel(stax.Dense(8), stax.Dense(8, 2.0)),
                    stax.FanInSum(),
                ),
                stax.Dense(8, 3.0),
            ),
            stax.FanInSum(),
        ),
        lnk.parallel(lnk.parallel(lnk.Dense(8), lnk.Dense(8, 2.0)), lnk.Dense(8, 3.0)),
    ),
    "one copy": (
        stax.serial(stax.FanOut(1), stax.parallel(stax.Dense(8)), stax.FanInSum()),
        lnk.Dense(8),
    ),
}


@pytest.mark.parametrize("name", MEANINGS)
def test_meaning(name: str) -> None:
    layer, arch = MEANINGS[name]
    assert layer.arch == arch


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "s": (lambda: stax.Dense(8, s=(1, 2)), r"stax.Dense: s=\(1, 2\) scales the widths"),
    "channel_axis": (
        lambda: stax.Dense(8, 1.0, None, 1, 0),
        "batch_axis must be 0 and channel_axis -1, got 1",
    ),
    "parameterization": (lambda: stax.Dense(8, parameterization="mup"), "'mup' is not known"),
    "W_std of zero": (lambda: stax.Dense(8, W_std=0.0), "W_std must be positive"),
    "a trained bias from zero": (
        lambda: stax.Dense(8, b_std=0.0, parameterization="standard"),
        "b_std=0 is a bias that starts at zero and is trained.* b_std=None for no bias",
    ),
    "axis of the points": (
        lambda: stax.LayerNorm(axis=(0, 1)),
        "axis must be -1, the features, or all axes but the first, got",
    ),
    "axes of LayerNorm": (
        lambda: stax.LayerNorm(channel_axis=0),
        "stax.LayerNorm: batch_axis must be 0",
    ),
    "degree": (lambda: stax.RectifiedMonomial(0), "degree must exceed 1/2, got 0"),
    "whole degrees": (lambda: stax.Monomial(1.5), "an integer, at least 1, got 1.5"),
    "no layer": (lambda: stax.serial(), "stax.serial: it needs at least one layer"),
    "no branch": (lambda: stax.parallel(), "stax.parallel: it needs at least one layer"),
    "no copies": (lambda: stax.FanOut(0), "num: expected an integer, at least 1, got 0"),
    "negative repeat": (
        lambda: stax.repeat(stax.Relu(), -1),
        "n: expected an integer, at least 0, got -1",
    ),
    "brackets": (
        lambda: stax.serial(stax.Dense(8), stax.Relu),
        "argument 1: expected a layer of lnkernel.stax",
    ),
    "a triple of one's own": (
        lambda: stax.serial((len, len, len)),
        "layers of your own go into the library itself",
    ),
    "functions of two layers": (
        lambda: stax.serial((*tuple(BLOCK[0])[:2], BLOCK[1].kernel_fn)),
        "expected a layer of lnkernel.stax",
    ),
    "mixed": (
        lambda: stax.serial(stax.Dense(8), stax.Dense(8, parameterization="standard")),
        "parameterization is 'ntk' here and 'standard' there",
    ),
    "mixed branches": (
        lambda: stax.parallel(stax.Dense(8), stax.Dense(8, parameterization="standard")),
        "Take the same for all layers",
    ),
    "no closed form": (
        lambda: stax.serial(stax.Dense(8), stax.Relu(), stax.Relu()),
        "not Gaussian",
    ),
    "shared randomness": (
        lambda: stax.serial(stax.Dense(8), stax.FanOut(2), stax.FanInSum()),
        "share their randomness",
    ),
    "copies of copies": (
        lambda: stax.serial(stax.FanOut(2), stax.FanOut(2), stax.FanInSum()),
        "copies what FanOut has copied",
    ),
    "several inputs": (
        lambda: stax.parallel(stax.Dense(8), stax.Dense(8)).arch,
        "2 layers, for one input",
    ),
    "too few branches": (
        lambda: stax.serial(stax.FanOut(3), stax.parallel(*BLOCK), stax.FanInSum()),
        "2 layers, for 3 copies",
    ),
    "several outputs": (
        lambda: stax.serial(stax.FanOut(2), stax.parallel(*BLOCK)).arch,
        "stax.FanOut: its copies are never added",
    ),
    "a layer on copies": (
        lambda: stax.serial(stax.FanOut(2), stax.Dense(8), stax.FanInSum()),
        "stax.Dense: it acts on the copies of FanOut",
    ),
    "nothing to add": (lambda: stax.FanInSum().arch, "stax.FanInSum: there is nothing to add"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(lnk.errors.LnkernelError, match=message):
        call()


# what `neural_tangents.stax` of version 0.6.5 exports
THEIRS = [
    *("ABRelu", "Abs", "Aggregate", "AggregateImplementation", "AttentionMechanism"),
    *("AvgPool", "Bool", "Conv", "ConvLocal", "ConvTranspose", "Cos", "Dense", "Diagonal"),
    *("DotGeneral", "Dropout", "Elementwise", "ElementwiseNumerical", "Erf", "Exp"),
    *("ExpNormalized", "FanInConcat", "FanInProd", "FanInSum", "FanOut", "Flatten", "Gabor"),
    *("Gaussian", "Gelu", "GlobalAvgPool", "GlobalSelfAttention", "GlobalSumPool", "Hermite"),
    *("Identity", "ImageResize", "Index", "LayerNorm", "LeakyRelu", "MaskedArray"),
    *("Monomial", "Padding", "Polynomial", "PositionalEmbedding", "Rbf", "RectifiedMonomial"),
    *("Relu", "Sigmoid_like", "Sign", "Sin", "Slice", "SumPool", "layer", "parallel"),
    *("repeat", "requires", "serial", "supports_masking", "unmask_fn"),
]
EXPLAINED = [name for names in MISSING.values() for name in names]


def test_every_name_of_theirs_is_here_or_explained() -> None:
    ours = [name for name in stax.__all__ if name not in ("Kernel", "Layer", "predict")]
    assert sorted(ours + EXPLAINED) == sorted(THEIRS)


TRIED = [name for names in OF_NT.values() for name in names]


def test_functions_of_nt_are_explained_as_well() -> None:
    assert {"batch", "monte_carlo_kernel_fn", "empirical_ntk_fn", "linearize"} < set(TRIED)
    assert not set(TRIED) & {*EXPLAINED, *stax.__all__}


@pytest.mark.parametrize("name", [*EXPLAINED, *TRIED])
def test_what_is_missing_says_why(name: str) -> None:
    assert not hasattr(stax, name)
    with pytest.raises(lnk.errors.MissingLayerError, match=rf"no {name}: .{{20,}}\. [A-Zd].*\.$"):
        getattr(stax, name)


NAMES_OF_NT = [  # of neural-tangents 0.6.5 itself
    *("Kernel", "NtkImplementation", "batch", "empirical_kernel_fn", "empirical_nngp_fn"),
    *("empirical_ntk_fn", "empirical_ntk_vp_fn", "experimental", "linearize"),
    *("monte_carlo_kernel_fn", "predict", "stax", "taylor_expand"),
]


@pytest.mark.parametrize("name", sorted({*NAMES_OF_NT, *THEIRS, *TRIED} - set(lnk.__all__)))
def test_the_library_itself_says_it_too(name: str) -> None:
    """`import lnkernel as nt` is what some will try."""
    with pytest.raises(
        lnk.errors.MissingLayerError, match=rf"^lnkernel has no {name}: .{{20,}}\. [A-Zd].*\.$"
    ):
        getattr(lnk, name)


@pytest.mark.parametrize("name", [*EXPLAINED, *TRIED])
def test_an_import_says_why(name: str) -> None:
    """`from ... import` shows no text of an AttributeError, and so it gets an ImportError."""
    statement = f"from lnkernel.stax import {name}"
    with pytest.raises(ImportError, match=rf"^lnkernel\.stax has no {name}: .{{20,}}\.$") as caught:
        exec(statement, {})
    assert isinstance(caught.value, lnk.errors.LnkernelError) and caught.value.name == stax.__name__
    assert not hasattr(stax, name) and getattr(stax, name, None) is None


@pytest.mark.parametrize("name", ["MaxPool", "batch", "FanOut"])
def test_an_import_from_the_library_itself_says_why(name: str) -> None:
    with pytest.raises(lnk.errors.MissingImportError, match=rf"^lnkernel has no {name}: "):
        exec(f"from lnkernel import {name}", {})


def test_a_module_that_asks_while_it_is_imported(tmp_path: Path, monkeypatch: Any) -> None:
    """What imports it asks for a name of its own, which happens to be the same."""
    folder = tmp_path / "mine_of_nt"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "batch.py").write_text(
        "from lnkernel import stax\nfound = hasattr(stax, 'batch'), hasattr(stax, 'Relu')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    made: dict[str, Any] = {}
    exec("from mine_of_nt import batch", made)
    assert made["batch"].found == (False, True)


def test_what_looks_into_a_module_finds_names_alone() -> None:
    found: dict[str, Any] = {}
    exec("from lnkernel.stax import *", found)
    assert set(stax.__all__) <= set(found)
    assert set(stax.__all__) <= dict(inspect.getmembers(stax)).keys()
    assert doctest.DocTestFinder().find(stax, stax.__name__)
    assert importlib.import_module("lnkernel.stax.missing").why_missing
    assert pickle.loads(pickle.dumps(stax.Relu)) is stax.Relu
    for name in ("__wrapped__", "__path__of_nothing", "Relu6"):
        assert not hasattr(stax, name)


def test_what_is_only_in_stax() -> None:
    assert set(ONLY_IN_STAX) == set(stax.__all__) - set(lnk.__all__)
    for name, here in ONLY_IN_STAX.items():
        assert hasattr(stax, name) and hasattr(lnk, here.split("(")[0])


def test_what_nobody_has() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Relu6'"):
        _ = stax.Relu6


def test_a_layer_is_a_triple() -> None:
    layer = stax.Dense(8)
    init_fn, apply_fn, kernel_fn = layer
    assert len(layer) == 3
    assert (layer[0], layer[1], layer[-1]) == (init_fn, apply_fn, kernel_fn)


def test_flax_is_loaded_by_networks_only() -> None:
    program = """
import sys
from lnkernel import stax
net = stax.serial(stax.Dense(8), stax.Relu(), stax.Dense(1))
assert 'flax' not in sys.modules
import jax
net.init_fn(jax.random.key(0), (-1, 2))
assert 'flax' in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
