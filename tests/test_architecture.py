"""The import graph of the library: every import goes down the list of layers, and there is no cycle.

All imports count: those at the top of a module, inside functions, and under TYPE_CHECKING.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "lnkernel"
SOURCE = Path(__file__).parents[1] / "src" / PACKAGE
# A module or package of lnkernel may import those that stand before it.
ORDER = (
    *("version", "errors", "types", "precision", "check", "progress", "page", "tables"),
    *("arch", "calculus", "evaluate", "gram", "gp", "bounds", "distributed"),
    *("tangents", "finite", "asymptotics", "nonlinearity"),
    *("plot", "stax", "sklearn", "datasets", "experiments", "demo", "cli"),
)


@dataclass(frozen=True)
class Import:
    """One module of the library imports another, in this line of its file."""

    importer: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer}, line {self.line}, imports {self.imported}"


def library() -> dict[str, str]:
    """The source of every module of the library, by the module's full name."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path.read_text(encoding="utf-8")
    return found


def imports(sources: Mapping[str, str]) -> list[Import]:
    """Every import of one of these modules by another, wherever it stands in the file."""
    return [
        Import(name, imported, line)
        for name, source in sources.items()
        for imported, line in _imported(ast.parse(source), sources)
        if imported != name
    ]


def _imported(tree: ast.Module, known: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """The modules that are imported, with their lines.

    `from package import submodule` imports the submodule; a package itself is imported by those
    who take from it what its `__init__` defines or passes on.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in known:
                    yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(
                    f"line {node.lineno}: imports are absolute here, got a relative one"
                )
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in known or node.module in known:
                    yield inner if inner in known else str(node.module), node.lineno


def layer(name: str) -> str:
    """The part of the library that a module belongs to; empty for `lnkernel` itself."""
    return name.removeprefix(PACKAGE).lstrip(".").partition(".")[0]


def unknown_layers(sources: Mapping[str, str]) -> list[str]:
    """Parts of the library that have no place in the order."""
    return sorted({layer(name) for name in sources} - {*ORDER, ""})


def upward(found: list[Import]) -> list[str]:
    """Imports of what stands later in the order, in words; `lnkernel` itself stands after all."""
    places = {name: place for place, name in enumerate((*ORDER, ""))}
    return [
        f"{one}: {layer(one.imported) or PACKAGE} stands after {layer(one.importer)} in ORDER"
        for one in found
        if places[layer(one.imported)] > places[layer(one.importer)]
    ]


def cycle(found: list[Import]) -> str | None:
    """A cycle among the modules of one part of the library, in words, if there is one."""
    graph: dict[str, set[str]] = {}
    for one in found:
        if layer(one.importer) == layer(one.imported):
            graph.setdefault(one.importer, set()).add(one.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as problem:
        return " imports ".join(reversed(problem.args[1]))
    return None


LIBRARY = library()
LAYERS = sorted({layer(name) for name in LIBRARY} - {""})


@pytest.fixture(scope="module")
def of_the_library() -> list[Import]:
    return imports(LIBRARY)


def test_every_part_has_a_place() -> None:
    assert unknown_layers(LIBRARY) == [], "name them in ORDER"


def test_imports_follow_the_order(of_the_library: list[Import]) -> None:
    assert upward(of_the_library) == []


@pytest.mark.parametrize("part", LAYERS)
def test_no_cycles(part: str, of_the_library: list[Import]) -> None:
    found = cycle([one for one in of_the_library if layer(one.importer) == part])
    assert found is None, found


# ---------------------------------------------------------------- the checks themselves


MADE_UP = {
    "lnkernel": "from lnkernel.finite.build import network",
    "lnkernel.gp": "",
    "lnkernel.gp.fit": "def f():\n    from lnkernel.finite import build",
    "lnkernel.gp.late": "import lnkernel",
    "lnkernel.finite": "from lnkernel.finite.build import network",
    "lnkernel.finite.build": "import numpy\nfrom lnkernel.gp.fit import fit",
    "lnkernel.finite.twins": "import typing\nif typing.TYPE_CHECKING:\n    import lnkernel.finite.tree",
    "lnkernel.finite.tree": "from lnkernel.finite import leaves",
    "lnkernel.finite.leaves": "def f():\n    from lnkernel.finite.twins import twin",
}


def test_an_upward_import_is_found() -> None:
    found = imports(MADE_UP)
    assert upward(found) == [
        "lnkernel.gp.fit, line 2, imports lnkernel.finite.build: finite stands after gp in ORDER",
        "lnkernel.gp.late, line 1, imports lnkernel: lnkernel stands after gp in ORDER",
    ]
    assert upward([one for one in found if one.importer.startswith("lnkernel.finite")]) == []


def test_a_cycle_is_found() -> None:
    found = cycle(imports(MADE_UP))
    assert found is not None
    steps = found.split(" imports ")
    assert steps[0] == steps[-1]
    around = [f"lnkernel.finite.{name}" for name in ("twins", "tree", "leaves")]
    start = around.index(steps[0])
    assert steps == [*around[start:], *around[:start], around[start]]


def test_a_package_is_imported_only_by_who_takes_its_names() -> None:
    """A submodule that imports another through their package is in no cycle with the package."""
    through = {"lnkernel.gp": "import lnkernel.gp.a", "lnkernel.gp.b": "", "lnkernel.gp.a": ""}
    assert cycle(imports(through | {"lnkernel.gp.a": "from lnkernel.gp import b"})) is None
    assert cycle(imports(through | {"lnkernel.gp.a": "from lnkernel.gp import f"})) is not None


def test_a_part_without_a_place_is_found() -> None:
    assert unknown_layers({"lnkernel.novelty.first": "", "lnkernel.gp": ""}) == ["novelty"]


def test_relative_imports_are_refused() -> None:
    with pytest.raises(ValueError, match="line 1: imports are absolute here"):
        imports({"lnkernel.gp.fit": "from . import posterior"})
