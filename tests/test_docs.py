"""The documentation: complete, and its picture is what the repository draws. `make docs` builds it."""

from __future__ import annotations

import importlib.util
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest
from matplotlib.testing.compare import compare_images

import lnkernel as lnk

DOCS = Path(__file__).parents[1] / "docs"
CLASSES = {name: cls for name in lnk.__all__ if inspect.isclass(cls := getattr(lnk, name))}
LAYERS = {name for name, cls in CLASSES.items() if issubclass(cls, lnk.Node)}
ABSTRACT = {
    "Node",
    "Elementwise",
    "PositivelyHomogeneous",
    "Smooth",
    "Piecewise",
    "Serial",
    "Parallel",
}


def tool(name: str) -> ModuleType:
    """A module of docs/tools, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "tools" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def documented() -> set[int]:
    """The objects that the reference has entries for, by identity.

    Where a file has the name of its function, `finite.network`, the short path is the file's.
    """
    entries = [
        entry
        for page in (DOCS / "reference").glob("*.md")
        for entry in re.findall(r"^::: ([\w.]+)", page.read_text(), re.MULTILINE)
    ]
    return {id(pkgutil.resolve_name(entry)) for entry in entries}


@pytest.mark.parametrize(
    "module",
    [
        *(lnk, lnk.asymptotics, lnk.datasets, lnk.distributed, lnk.experiments, lnk.finite),
        *(lnk.nonlinearity, lnk.plot, lnk.sklearn, lnk.stax),
    ],
    ids=lambda m: m.__name__,
)
def test_every_public_name_has_an_entry_in_the_reference(module: ModuleType) -> None:
    public = {name: getattr(module, name) for name in module.__all__}
    entries = documented()
    missing = [
        f"::: {value.__module__}.{name}"
        for name, value in public.items()
        if id(value) not in entries and not isinstance(value, ModuleType)
    ]
    assert missing == [], "add these lines to a page of docs/reference"


@pytest.mark.parametrize("layer", sorted(LAYERS - ABSTRACT))
def test_every_layer_is_explained(layer: str) -> None:
    assert f"`{layer}(" in (DOCS / "layers.md").read_text()


def test_every_command_is_explained() -> None:
    from lnkernel.cli import COMMANDS

    page = (DOCS / "command-line.md").read_text()
    assert [c.name for c in COMMANDS if f"<!-- help: {c.name} -->" not in page] == []


def test_formulas_become_mathml() -> None:
    page = tool("formulas").on_page_content(
        r'<p>so <span class="arithmatex">\(a &lt; \Theta\)</span></p>'
        r'<div class="arithmatex">\[x^2\]</div>'
    )
    assert page.count("<math") == 2 and "&#x00398;" in page and "arithmatex" not in page
    with pytest.raises(ValueError, match="does not know"):
        tool("formulas").on_page_content(r'<span class="arithmatex">\(\nonsense\)</span>')


def test_help_of_an_unknown_command_stops_the_build() -> None:
    help_of = tool("command_help").on_page_markdown
    assert "usage: lnkernel verify" in help_of("<!-- help: verify -->")
    with pytest.raises(ValueError, match="no command 'fly'"):
        help_of("<!-- help: fly -->")


def test_examples_get_fences() -> None:
    marked = tool("examples").EXAMPLE.sub(r"[\g<0>]", "A map.\n\n>>> f(1)\n2\n\nMore.\n\n>>> g()")
    assert marked == "A map.\n\n[>>> f(1)\n2]\n\nMore.\n\n[>>> g()]"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["activation-kernels.png", "activation-rays.png"])
def test_the_pictures_of_activations_are_what_the_command_draws(name: str, tmp_path: Path) -> None:
    pictures = tool("activation_pictures")
    (pictures.draw_kernels if "kernels" in name else pictures.draw_rays)(tmp_path / name)
    assert compare_images(str(DOCS / "assets" / name), str(tmp_path / name), tol=3) is None


def test_labels_stand_apart() -> None:
    apart = tool("activation_pictures").apart({"a": 1.0, "b": 1.1, "c": 1e3}, ratio=2.0)
    assert apart["b"] / apart["a"] >= 2.0 - 1e-9 and apart["c"] / apart["b"] > 100


@pytest.mark.slow
def test_the_picture_is_what_the_command_draws(tmp_path: Path) -> None:
    drawn = tmp_path / "drawn.png"
    tool("picture").draw(drawn)
    assert compare_images(str(DOCS / "assets" / "one-layernorm.png"), str(drawn), tol=3) is None
