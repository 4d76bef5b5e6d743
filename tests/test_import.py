"""`import lnkernel`: quick, light, without side effects; and its public names."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

import lnkernel as lnk

HEAVY = ("flax", "optax", "matplotlib", "flint", "sklearn", "tqdm", "mpmath", "pooch")

PROBE = f"""
import gc, json, sys, time
import jax, jax.numpy as jnp

gc.collect()
gc.freeze()  # the objects of JAX, or else Python looks through all of them once while ours are made

def setting():
    return {{name: repr(value) for name, value in jax.config.values.items()}}

before, start = setting(), time.process_time()
import lnkernel
seconds = time.process_time() - start
print(json.dumps({{
    "seconds": seconds,
    "heavy": [name for name in {HEAVY!r} if name in sys.modules],
    "changed": [name for name, value in setting().items() if before.get(name) != value],
    "float": str(jnp.result_type(float)),
}}))
"""


QUICK = 0.3  # seconds


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What fresh processes say; without the variables that would set JAX up otherwise.

    Our modules are bytecode, as pip leaves them: the first process writes it, and those that count
    read it. Where Python may not write bytecode, every import would compile all of the sources.
    There are as many as it takes for one to be quick, four at most.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    clean.pop("PYTHONDONTWRITEBYTECODE", None)
    clean["PYTHONPYCACHEPREFIX"] = str(tmp_path_factory.mktemp("bytecode"))
    command = [sys.executable, "-c", PROBE]
    found: list[dict[str, Any]] = []
    while len(found) < 5 and not any(probe["seconds"] <= QUICK for probe in found[1:]):
        found.append(json.loads(subprocess.check_output(command, env=clean)))
    return found[1:]


def test_loads_nothing_heavy(probes: list[dict[str, Any]]) -> None:
    assert probes[0]["heavy"] == []


def test_is_quick(probes: list[dict[str, Any]]) -> None:
    """By the time of the processor, because the machine has other work to do."""
    assert min(probe["seconds"] for probe in probes) <= QUICK


def test_changes_no_setting_of_jax(probes: list[dict[str, Any]]) -> None:
    assert probes[0]["changed"] == []
    assert probes[0]["float"] == "float32"


LAYERS = {
    *("Dense", "Relu", "LeakyRelu", "Abs", "Identity", "RectifiedPower", "Homogeneous"),
    *("LayerNorm", "RMSNorm", "GroupNorm", "serial", "residual", "parallel", "mlp"),
}
KERNELS = {"ntk", "nngp", "kernels"}
TYPES = {
    *("Node", "Elementwise", "PositivelyHomogeneous", "Smooth", "Piecewise", "Serial", "Parallel"),
    *("Kernel", "KernelPair", "Kernels"),
}
LAZY = {
    "Certificate",
    "tangent",
    "watch",
}  # imported at their first use, with python-flint, with Flax
MODULES = {
    *("asymptotics", "datasets", "distributed", "errors", "experiments", "finite", "nonlinearity"),
    *("plot", "sklearn", "stax"),
}


def test_what_the_design_names_is_public() -> None:
    assert set(lnk.__all__) >= LAYERS | KERNELS


def test_all_is_complete() -> None:
    assert len(set(lnk.__all__)) == len(lnk.__all__)
    ours = {
        name
        for name, value in vars(lnk).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("lnkernel")
    }
    assert ours == set(lnk.__all__) - MODULES - LAZY
    assert all(callable(getattr(lnk, name)) for name in LAZY)
    assert all(isinstance(getattr(lnk, name), ModuleType) for name in MODULES)


def test_star_gives_all() -> None:
    names: dict[str, Any] = {}
    exec("from lnkernel import *", names)
    assert set(lnk.__all__) <= set(names)


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'lnkernel' has no attribute 'Relu6'"):
        _ = lnk.Relu6


def _public() -> dict[str, Any]:
    """Every public name, those of the public modules included."""
    names = {name: getattr(lnk, name) for name in lnk.__all__}
    names |= {f"plot.{name}": getattr(lnk.plot, name) for name in lnk.plot.__all__}
    for module in (lnk.asymptotics, lnk.datasets, lnk.finite, lnk.nonlinearity):
        short = module.__name__.removeprefix("lnkernel.")
        names |= {f"{short}.{name}": getattr(module, name) for name in module.__all__}
    names |= {f"sklearn.{name}": getattr(lnk.sklearn, name) for name in lnk.sklearn.__all__}
    names |= {f"stax.{name}": getattr(lnk.stax, name) for name in lnk.stax.__all__}
    classes = inspect.getmembers(lnk.errors, inspect.isclass)
    return names | {f"errors.{name}": cls for name, cls in classes}


PUBLIC = _public()


@pytest.mark.parametrize("name", PUBLIC)
def test_has_a_docstring(name: str) -> None:
    """Of its own: a dataclass makes up one that is nothing but its signature."""
    doc = (
        vars(PUBLIC[name]).get("__doc__") if inspect.isclass(PUBLIC[name]) else PUBLIC[name].__doc__
    )
    assert doc and len(doc.split()) > 3
    assert not doc.startswith(f"{name}(")


# `errors` says how each message reads; two of the errors need a scope or a huge number to show
WITHOUT_EXAMPLE = TYPES | MODULES | {name for name in PUBLIC if name.startswith("errors.")}
# the functions that make these show them
WITHOUT_EXAMPLE |= (
    {
        f"finite.{name}"
        for name in (
            *("Comparison", "CriticalTime", "Ensemble", "Estimate", "Network", "Row", "Training"),
            *("Watch", "measures"),
        )
    }
    | {f"datasets.{name}" for name in ("Cifar", "Faces", "Pictures", "Proteins")}
    | {f"asymptotics.{name}" for name in ("Exponents", "LossFit")}
    | {f"nonlinearity.{name}" for name in ("LNNet", "PreciseLNNet")}
    | {"stax.predict"}
)


@pytest.mark.parametrize("name", sorted(PUBLIC.keys() - WITHOUT_EXAMPLE))
def test_has_an_example(name: str) -> None:
    assert ">>>" in PUBLIC[name].__doc__


@pytest.mark.parametrize("method", ["__call__", "diagonal"])
@pytest.mark.parametrize("cls", [lnk.Kernel, lnk.KernelPair])
def test_methods_of_a_kernel_have_docstrings(cls: type, method: str) -> None:
    doc = getattr(cls, method).__doc__
    assert doc and "float64" in doc


def test_all_public_names_are_offered() -> None:
    """By tab completion, also those that are imported at their first use; in a process that has used none."""
    code = "import lnkernel as lnk; assert not {*lnk.__all__} - {*dir(lnk)}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_from_predict_import() -> None:
    """`from ... import` gives the reason that the attribute gives."""
    with pytest.raises(ImportError, match="this library does the same by other functions"):
        from lnkernel.stax.predict import gradient_descent  # noqa: F401
