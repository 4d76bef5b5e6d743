"""No part of the library outside of `arch` asks what type a layer is: a layer from outside would be left out unseen.

They ask for its `traits`, or call a function that is registered for its type.
"""

from __future__ import annotations

import ast
from pathlib import Path

import lnkernel as lnk
from lnkernel import Node

SOURCE = Path(lnk.__file__).parent
# what every activation and every sum is; a layer from outside may be of these types, too
BASES = {"Node", "Elementwise", "Parallel"}
LAYERS = {
    name
    for name, value in vars(lnk).items()
    if isinstance(value, type) and issubclass(value, Node) and name not in BASES
}


def questions(source: str) -> list[str]:
    """The calls of isinstance that name a layer, in words."""
    return [
        f"line {call.lineno}: {ast.unparse(call)}"
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in ("isinstance", "issubclass")
        and LAYERS & {part.id for part in ast.walk(call.args[1]) if isinstance(part, ast.Name)}
    ]


def test_nobody_asks_what_type_a_layer_is() -> None:
    files = [path for path in SOURCE.rglob("*.py") if path.parent.name != "arch"]
    found = {path.name: questions(path.read_text(encoding="utf-8")) for path in files}
    assert {name: asked for name, asked in found.items() if asked} == {}


def test_such_a_question_is_found() -> None:
    assert {"Dense", "LayerNorm", "Conv", "Relu"} <= LAYERS
    asked = "if isinstance(layer, Dense | LayerNorm):\n    pass"
    assert questions(asked) == ["line 1: isinstance(layer, Dense | LayerNorm)"]
    assert questions("isinstance(layer, Elementwise)") == []
