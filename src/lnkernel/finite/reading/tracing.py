"""A module of the user's own class, read by calling it on a token and following what becomes of it."""

from __future__ import annotations

import functools
import inspect
import linecache
import re
import traceback
from pathlib import Path
from types import FunctionType
from typing import Any

import flax
import jax
from flax import nnx

from lnkernel.arch import Serial
from lnkernel.arch.compose import layers_of
from lnkernel.errors import ArchitectureError
from lnkernel.finite.reading.functions import find_layer, without_jit
from lnkernel.finite.reading.refusals import (
    TRANSFORMED,
    UNKNOWN_FUNCTION,
    NotUnderstoodError,
    explain_refusal,
)
from lnkernel.finite.reading.registry import Found, Reading, read, read_module
from lnkernel.finite.reading.stand_ins import Part, copy_function, is_users
from lnkernel.finite.reading.tokens import Step, Token, in_sequence

FOREIGN = tuple(str(Path(module.__file__).parent) for module in (jax, flax) if module.__file__)
OURS = str(Path(__file__).parent)
NAMES_PART = re.compile(rf"\b{Part.__name__}\b")
LONGEST = 120  # characters of a line that is quoted
REMEDY = (
    "Its __call__ can call its layers, known activations and methods of its own, add the results, and multiply "
    "them by fixed numbers; write the rest as an nnx.Sequential, or describe the network by lnkernel.serial"
)


@read_module.register
def _(part: nnx.Module, reading: Reading) -> Found:
    """Every module whose type has no reader comes here."""
    call = without_jit(inspect.getattr_static(part, "__call__", None))
    if not isinstance(call, FunctionType) or not is_users(call):
        refusal = explain_refusal(part)
        raise ArchitectureError(refusal.name, reading.here, refusal.reason, refusal.remedy)
    return follow(part, call, reading)


@read_module.register
def _(part: FunctionType, reading: Reading) -> Found:
    """A function of the user's own, such as `lambda x: x.reshape(x.shape[0], -1)`, is followed as well."""
    if find_layer(part) is None and is_users(part):
        return follow(part, part, reading)
    return read_module.dispatch(object)(part, reading)


def follow(module: Any, call: FunctionType, reading: Reading) -> Found:
    """The architecture that a call of the module goes through."""

    def record(part: Any, name: str, given: Token) -> Token:
        if isinstance(part, nnx.Module) and reading.is_shared(part):
            raise NotUnderstoodError(f"it calls {name} again, so that two layers share parameters")
        node, width = read(part, reading.inside(name, given.width))
        return given.behind(node, width)

    try:
        given = (Part(module, "self", record),) if isinstance(module, nnx.Module) else ()
        end = copy_function(call, record)(*given, Token((), reading.width))
        if not isinstance(end, Token):
            raise NotUnderstoodError(
                f"it returns a {type(end).__name__}, where the output alone is expected"
            )
        _demand_tree(end.trail)
    except NotUnderstoodError as problem:
        raise _refusal(module, reading, problem, problem.why) from None
    except ArchitectureError:
        raise
    except Exception as problem:  # whatever the user's line does with what is no array
        raise _refusal(module, reading, problem, _in_short(problem)) from None
    node = in_sequence(end.trail)
    return Serial(layers_of(node)), end.width


def _demand_tree(trail: tuple[Step, ...]) -> None:
    """Every step once: one that two branches have in common makes them depend on each other."""
    steps = [each for step in trail for each in step.everything()]
    if len({id(step) for step in steps}) < len(steps):
        raise NotUnderstoodError(
            "it adds branches that share a layer in their middle, so that their kernels do not add"
        )


def _refusal(module: Any, reading: Reading, problem: BaseException, why: str) -> ArchitectureError:
    frames = [
        frame
        for frame in traceback.extract_tb(problem.__traceback__)
        if not frame.filename.startswith((*FOREIGN, OURS, functools.__file__))
    ]
    if frames:
        last = frames[-1]
        text = _cut(linecache.getline(last.filename, last.lineno or 0).strip())
        said = f", `{text}`," if text else ""
        why = f"line {last.lineno} of {Path(last.filename).name}{said} is not understood: {why}"
    name = getattr(module, "__name__", type(module).__name__)
    return ArchitectureError(name, reading.here, why, REMEDY)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _in_short(problem: Exception) -> str:
    if isinstance(problem, AssertionError):
        return "it asserts what is not so here, where inputs without convolutions are taken for vectors"
    if Token.__name__ in str(problem):  # which are nothing to others' functions
        return UNKNOWN_FUNCTION
    files = [frame.filename for frame in traceback.extract_tb(problem.__traceback__)]
    if any(file.startswith(FOREIGN) for file in files) and NAMES_PART.search(str(problem)):
        return TRANSFORMED
    lines = str(problem).splitlines() or [""]
    said = f"{type(problem).__name__}: {lines[0][:120]}"
    return f"it does something with the data that is no layer ({said})"
