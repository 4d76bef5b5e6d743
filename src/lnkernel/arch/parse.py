"""Architectures written as text, for command lines and files: read, never run as code."""

from __future__ import annotations

import ast
import difflib
import inspect
import operator
from collections.abc import Callable
from typing import Any

from lnkernel.arch.node import Node
from lnkernel.arch.registry import BUILDERS, NONE_SUCH
from lnkernel.errors import ArchitectureError, ArchitectureTextError

ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
WORDS: dict[type[ast.expr], str] = {
    ast.Starred: "a list that is put in by *",
    ast.List: "a list",
    ast.Set: "a set",
    ast.Dict: "a dict",
    ast.Lambda: "a function",
    ast.IfExp: "a condition",
    ast.Compare: "a comparison",
    ast.ListComp: "a list",
    ast.BoolOp: "a condition",
}
NOT_FINITE = ("nan", "inf", "infinity")
FUNCTIONS = ("float", "int", "sqrt", "exp", "log")  # of numbers, as people write them
CONSTANTS = {"true": "True", "false": "False", "none": "None"}  # as others write them
MODULES = ("lnk", "lnkernel")  # as in a line copied from a program
LONGEST = 100_000  # characters; the table of a network of a hundred layers has some 8,000
MOST_BITS = 1024  # of an integer power: a longer one is no float64, and 9**9**9 would take for ever


def parse(text: str) -> Node:
    """The architecture that a text describes: `parse(repr(arch)) == arch`.

    The text names layers and combinators of this library, with numbers, strings, True, False and
    None as their arguments; numbers may be written as sums, products and powers of numbers.
    Nothing else is understood, and nothing is run as code.

    Args:
        text: e.g. `"mlp(hidden=2, norm='first')"`.

    >>> import lnkernel as lnk
    >>> arch = lnk.parse("serial(Dense(64, W_std=2**0.5), LayerNorm(), Relu(), Dense(1))")
    >>> lnk.parse(repr(arch)) == arch
    True
    >>> lnk.parse("serial(Dense(64), Rely(), Dense(1))")
    Traceback (most recent call last):
    ...
    lnkernel.errors.ArchitectureTextError: architecture text: 'Rely' is not known
        serial(Dense(64), Rely(), Dense(1))
                          ^^^^
    Write Relu? Known are ...
    """
    if not isinstance(text, str):
        raise ArchitectureTextError(
            f"expected a str, got {type(text).__name__}",
            "Write e.g. \"mlp(hidden=2, norm='first')\"",
        )
    if len(text) > LONGEST:
        raise ArchitectureTextError(
            f"it has {len(text)} characters, more than {LONGEST}", "Build the network in Python"
        )
    stripped = text.strip()
    try:
        return _Reader(stripped).network(ast.parse(stripped, mode="eval").body)
    except SyntaxError as problem:
        start = max((problem.offset or 1) - 1, 0)
        place = (problem.lineno or 1, start, start + 1)
        raise ArchitectureTextError(
            f"it cannot be read ({problem.msg})",
            "Write e.g. \"mlp(hidden=2, norm='first')\", with the quotation marks of your shell "
            "around it",
            stripped,
            place,
        ) from None
    except (RecursionError, MemoryError, ValueError) as problem:
        if isinstance(problem, ArchitectureTextError):
            raise
        raise ArchitectureTextError(
            f"it cannot be read ({type(problem).__name__}: nested too deeply, or no text)",
            "Build the network in Python",
        ) from None


class _Reader:
    """Turns the syntax tree of one text into layers; every refusal points into the text."""

    def __init__(self, text: str):
        self.text = text

    def network(self, tree: ast.expr) -> Node:
        if isinstance(tree, ast.Tuple | ast.List):
            remedy = "Write serial(...) around layers that follow each other"
            raise self.refusal(tree, "expected one network, got several layers", remedy)
        made = self.value(tree)
        if not isinstance(made, Node):
            raise self.refusal(tree, f"expected a network, got {made!r}", _list_known())
        return made

    def value(self, tree: ast.expr) -> Any:
        if isinstance(tree, ast.Call):
            return self.layer(tree)
        if isinstance(tree, ast.Constant) and isinstance(
            tree.value, bool | int | float | str | None
        ):
            return tree.value
        if isinstance(tree, ast.Tuple):
            return tuple(self.number(each) for each in tree.elts)
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub | ast.UAdd):
            inside = self.number(tree.operand)
            return -inside if isinstance(tree.op, ast.USub) else inside
        if isinstance(tree, ast.BinOp) and type(tree.op) in ARITHMETIC:
            return self.calculate(tree)
        if isinstance(tree, ast.Name | ast.Attribute):
            name = self.name(tree)
            raise self.refusal(tree, f"{name!r} stands alone", f"Write {name}(), with the brackets")
        remedy = "Write layers with numbers, strings, True, False or None as arguments"
        said = WORDS.get(type(tree), "this")
        raise self.refusal(tree, f"{said} is not understood here", remedy)

    def layer(self, tree: ast.Call) -> Node:
        name = self.name(tree.func)
        build = BUILDERS[name]
        for place, keyword in enumerate(tree.keywords):
            self.check_keyword(keyword, name, build)
            self.check_repetition(keyword, tree.keywords[:place], name)
        positional = [self.argument(each) for each in tree.args]
        named = {str(keyword.arg): self.argument(keyword.value) for keyword in tree.keywords}
        try:
            inspect.signature(build).bind(*positional, **named)
            return build(*positional, **named)
        except ArchitectureError as problem:
            raise self.refusal(tree, str(problem).rstrip("."), "") from None
        except TypeError as problem:
            raise self.refusal(tree, f"{name}: {problem}", _signature(name, build)) from None

    def argument(self, tree: ast.expr) -> Any:
        """A value between brackets: a bare word there is a string whose quotes a shell took away."""
        known = isinstance(tree, ast.Name) and (
            tree.id in BUILDERS or tree.id.lower() in NOT_FINITE
        )
        if isinstance(tree, ast.Name) and not known and not _nearest(tree.id):
            remedy = (
                f"Write {CONSTANTS[tree.id]}"
                if tree.id in CONSTANTS
                else f"Write '{tree.id}', with quotation marks; in a shell put the whole text into "
                "double quotes"
            )
            raise self.refusal(tree, f"{tree.id!r} is not known", remedy)
        return self.value(tree)

    def check_keyword(self, keyword: ast.keyword, name: str, build: Any) -> None:
        takes = inspect.signature(build).parameters
        if keyword.arg not in takes:
            shown = "**" if keyword.arg is None else keyword.arg
            raise self.refusal(
                keyword, f"{name} has no argument {shown!r}", _signature(name, build)
            )

    def check_repetition(self, keyword: ast.keyword, before: list[ast.keyword], name: str) -> None:
        if keyword.arg in [each.arg for each in before]:
            problem = f"{name} is given the argument {keyword.arg!r} twice"
            raise self.refusal(keyword, problem, "Write it once")

    def name(self, tree: ast.expr) -> str:
        """The name of a layer or combinator, of which there is one of that name."""
        if isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Name):
            name = tree.attr if tree.value.id in MODULES else f"{tree.value.id}.{tree.attr}"
        elif isinstance(tree, ast.Name):
            name = tree.id
        else:
            raise self.refusal(tree, "expected the name of a layer", _list_known())
        if name in NONE_SUCH:
            reason, remedy = NONE_SUCH[name]
            raise self.refusal(tree, f"there is no {name}: {reason}", remedy)
        last = name.rpartition(".")[2].lower()
        if name not in BUILDERS and last in NOT_FINITE:
            raise self.refusal(tree, f"{name!r} is no finite number", "Write a finite number")
        if name not in BUILDERS and last in FUNCTIONS:
            remedy = "Write the number itself, or a product or power such as 2**0.5"
            raise self.refusal(tree, f"functions like {name!r} are not calculated here", remedy)
        if name not in BUILDERS:
            near = _nearest(name)
            hint = f"Write {near}? " if near else ""
            raise self.refusal(tree, f"{name!r} is not known", hint + _list_known())
        return name

    def number(self, tree: ast.expr) -> Any:
        value = self.value(tree)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refusal(tree, f"expected a number, got {value!r}", "Write e.g. 2**0.5")
        return value

    def calculate(self, tree: ast.BinOp) -> int | float:
        left, right = self.number(tree.left), self.number(tree.right)
        try:
            if isinstance(tree.op, ast.Pow) and isinstance(left, int) and isinstance(right, int):
                _demand_small(left, right)
            value = ARITHMETIC[type(tree.op)](left, right)
        except ArithmeticError as problem:
            raise self.refusal(
                tree, f"this cannot be calculated ({problem.args[-1]})", "Write the number itself"
            ) from None
        if not isinstance(value, int | float):
            raise self.refusal(tree, f"{value} is not real", "Write the number itself")
        return value

    def refusal(self, tree: Any, problem: str, remedy: str) -> ArchitectureTextError:
        line = self.text.splitlines()[tree.lineno - 1].encode()  # offsets of `ast` count bytes
        last = tree.end_col_offset if tree.end_lineno == tree.lineno else len(line)
        start, end = (len(line[:offset].decode()) for offset in (tree.col_offset, last))
        return ArchitectureTextError(problem, remedy, self.text, (tree.lineno, start, end))


def _demand_small(left: int, right: int) -> None:
    if left.bit_length() * abs(right) > MOST_BITS:
        raise OverflowError("the number is too large")


def _nearest(name: str) -> str | None:
    """The layer or combinator that may have been meant."""
    lower = {known.lower(): known for known in BUILDERS}
    near = difflib.get_close_matches(name.lower(), lower, n=1)
    return lower[near[0]] if near else None


def _list_known() -> str:
    known = ", ".join(BUILDERS)
    return f"Known are {known}; others by lnkernel.arch.registry.register"


def _signature(name: str, build: Any) -> str:
    takes = inspect.signature(build).parameters.values()
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in takes]
    return f"It is {name}{inspect.Signature(plain)}"
