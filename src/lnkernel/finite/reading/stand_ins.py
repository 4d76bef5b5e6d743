"""What stands for a module, and for the functions and libraries that its code names, while it is read.

Nothing of JAX, Flax or the user's is changed: the user's functions are run as copies of themselves,
which find these stand-ins where they look for `self`, `nnx`, `jax.nn.relu` and the like.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from functools import singledispatch
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from flax import nnx

from lnkernel.finite.reading.functions import by_name, is_registered, without_jit
from lnkernel.finite.reading.refusals import NotUnderstoodError
from lnkernel.finite.reading.tokens import Token

LIBRARIES = ("jax", "flax", "numpy", "optax", "builtins", "functools", "math", "scipy")
Record = Callable[[Any, str, Token], Token]  # a part of the module, its name, and what it is given


@singledispatch
def in_call(module: Any, named: dict[str, Any]) -> nnx.Module | None:
    """What a module is in a call with these keywords; None where it is no part that is known."""
    return None


class Part:
    """A module: calling it on data records it, and its attributes are stand-ins as well."""

    def __init__(self, module: nnx.Module, name: str, record: Record):
        vars(self).update(_module=module, _name=name, _record=record)

    def __call__(self, *given: Any, **named: Any) -> Any:
        if not any(isinstance(each, Token) for each in (*given, *named.values())):
            return self._module(*given, **named)
        module = in_call(self._module, named) if named else self._module
        if len(given) != 1 or module is None:
            raise NotUnderstoodError(f"it gives {self._name} more than the data")
        return self._record(module, self._name, given[0])

    def __getattr__(self, name: str) -> Any:
        found = without_jit(inspect.getattr_static(type(self._module), name, None))
        if name in vars(self._module):
            found = None  # what the module holds itself comes first, and is not bound to it
        return _bound(found, self, name, lambda: getattr(self._module, name))

    def __setattr__(self, name: str, value: object) -> None:
        raise NotUnderstoodError(f"it sets {self._name}.{name}")


def _bound(found: Any, part: Part, name: str, usual: Callable[[], Any]) -> Any:
    """A method or property of the user's as a copy bound to the stand-in; all else as it is usually found."""
    if isinstance(found, property) and isinstance(found.fget, FunctionType):
        return copy_function(found.fget, part._record)(part)
    if isinstance(found, FunctionType) and is_users(found):
        return MethodType(copy_function(found, part._record), part)
    return stand_in(usual(), f"{part._name}.{name}", part._record)


class Parent:
    """What `super()` is in a method: its methods are bound to the stand-in as well."""

    def __init__(self, after: type, part: Part):
        vars(self).update(_after=after, _part=part)

    def __getattr__(self, name: str) -> Any:
        module = self._part._module
        order = type(module).__mro__
        owners = [each for each in order[order.index(self._after) + 1 :] if name in vars(each)]
        found = without_jit(vars(owners[0])[name]) if owners else None
        if isinstance(found, FunctionType) and not is_users(found):
            raise NotUnderstoodError(
                f"it calls super().{name}, and the code of {owners[0].__name__} is not followed"
            )
        return _bound(found, self._part, name, lambda: getattr(super(self._after, module), name))


def _super(*given: Any) -> Any:
    """Python's `super` for methods that are given a stand-in; without arguments it looks at who calls it."""
    frame = inspect.currentframe()
    if not given and frame is not None and frame.f_back is not None:
        caller = frame.f_back
        given = caller.f_locals["__class__"], caller.f_locals[caller.f_code.co_varnames[0]]
    after, bound = given
    return Parent(after, bound) if isinstance(bound, Part) else super(after, bound)


class Library:
    """A module of Python, such as `jax.nn`: what is taken from it are stand-ins."""

    def __init__(self, module: ModuleType, record: Record):
        vars(self).update(_module=module, _record=record)

    def __getattr__(self, name: str) -> Any:
        return stand_in(getattr(self._module, name), name, self._record)


def stand_in(value: Any, name: str, record: Record) -> Any:
    """What the user's code gets in place of this value; numbers and all that is harmless are themselves."""
    if isinstance(value, list | tuple | nnx.List):
        return [stand_in(each, f"{name}[{i}]", record) for i, each in enumerate(value)]
    if isinstance(value, dict | nnx.Dict):
        return {key: stand_in(each, f"{name}[{key!r}]", record) for key, each in value.items()}
    value = _compiled(value)
    if isinstance(value, nnx.Module):
        return Part(value, name, record)
    if isinstance(value, ModuleType):
        return Library(value, record)
    if is_registered(value) or isinstance(value, functools.partial):
        return _record_calls_of(value, name, record)
    if isinstance(value, FunctionType) and is_users(value):
        return _copy_when_called(value, record)
    return value


def _compiled(value: Any) -> Any:
    """What the user had compiled; functions that JAX itself compiles stay as they are."""
    inside = without_jit(value)
    known = isinstance(inside, nnx.Module) or is_registered(inside)
    return inside if known or (isinstance(inside, FunctionType) and is_users(inside)) else value


def _copy_when_called(function: FunctionType, record: Record) -> Any:
    """A function may name itself, so that not all copies can be made in advance."""

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        return copy_function(function, record)(*given, **named)

    return call


def _record_calls_of(function: Any, name: str, record: Record) -> Any:
    @functools.wraps(function, updated=())
    def call(*given: Any, **named: Any) -> Any:
        places = [each for each in (*given, *named.values()) if isinstance(each, Token)]
        if not places:
            return function(*given, **named)
        if len(places) > 1:
            raise NotUnderstoodError(f"it gives {name} the data in several places")
        every = by_name(function, given) | named
        settings = {key: value for key, value in every.items() if not isinstance(value, Token)}
        called = functools.partial(function, **settings) if settings else function
        return record(called, name, places[0])

    return call


def is_users(function: Any) -> bool:
    """Whether it was written outside of the libraries that are known here."""
    return (function.__module__ or "").partition(".")[0] not in LIBRARIES


def copy_function(function: FunctionType, record: Record) -> FunctionType:
    """The function with stand-ins for the names that it finds outside of itself."""
    outside = function.__globals__
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    found = {name: stand_in(outside[name], name, record) for name in names if name in outside}
    if "super" in names and "super" not in outside:
        found["super"] = _super
    cells = tuple(
        _cell(name, cell, record)
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        )
    )
    copy = FunctionType(
        function.__code__, outside | found, function.__name__, function.__defaults__, cells
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _cell(name: str, cell: CellType, record: Record) -> CellType:
    try:
        value = cell.cell_contents
    except ValueError:  # it is not there yet
        return cell
    return cell if isinstance(value, type) else CellType(stand_in(value, name, record))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of those inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
