"""The notebooks: they run from scratch, without a warning, and say what they were committed with."""

from __future__ import annotations

import importlib.util
import re
import time
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import numpy as np
import pytest
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NAMES = {
    *("01_quickstart", "02_kernel_heatmaps", "03_bound_and_certificate"),
    *("04_theory_against_training", "05_your_own_data", "06_layernorm_group_size"),
    *("07_fine_tuning_and_laplace", "08_edge_of_stability", "09_nonlinearity_and_the_law"),
    "10_images",
}
TRAINED = "trained"  # tag of a cell whose numbers come from networks in float32
LARGEST = 400_000  # bytes of a notebook
LONGEST = 120  # seconds

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
OF_A_MACHINE = re.compile(
    r"(?<![\w.:/])/(?:home|root|Users|tmp|var|opt|usr|mnt|private|work)/|[A-Z]:\\|0x[0-9a-f]{6,}"
)


def tool() -> ModuleType:
    """notebooks/execute.py, which is in no package."""
    spec = importlib.util.spec_from_file_location("execute", FOLDER / "execute.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


execute = tool()


def said(cell: NotebookNode) -> list[tuple[str, str]]:
    """The outputs of a cell, by kind; of pictures only that they are there."""
    outputs: list[tuple[str, str]] = []
    for output in cell.outputs:
        if output.output_type == "stream":
            outputs.append((output.name, output.text))
        else:
            outputs += [
                (kind, "" if kind.startswith("image/") else str(text))
                for kind, text in sorted(output.data.items())
            ]
    return outputs


def same_number(one: str, other: str, relative: float) -> bool:
    """Integers exactly; of other numbers the last printed digit may differ by one, or more digits
    within a relative error."""
    if one == other:
        return True
    if not set(".eE") & set(one + other):
        return False
    a, b = Decimal(one), Decimal(other)
    units = [Decimal(1).scaleb(int(number.as_tuple().exponent)) for number in (a, b)]
    return abs(a - b) <= max(min(units), Decimal(relative) * max(abs(a), abs(b)))


def same_text(one: str, other: str, relative: float = 1e-9) -> bool:
    """Equal but for spaces and the last digits of numbers."""
    words = [" ".join(NUMBER.sub("#", text).split()) for text in (one, other)]
    numbers = [NUMBER.findall(text) for text in (one, other)]
    return words[0] == words[1] and all(
        same_number(a, b, relative) for a, b in zip(*numbers, strict=True)
    )


def tolerance(cell: NotebookNode) -> float:
    """Training in float32 carries roundings on, so its results agree on another machine to few digits."""
    return 0.1 if TRAINED in cell.metadata.get("tags", []) else 1e-9


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def test_all_are_there() -> None:
    assert {path.stem for path in NOTEBOOKS} == NAMES


def test_runs_and_says_what_it_was_committed_with(path: Path) -> None:
    began = time.perf_counter()
    fresh = execute.executed(path)
    assert time.perf_counter() - began < LONGEST
    assert execute.complaints(fresh) == []
    for before, now in zip(execute.code_cells(read(path)), execute.code_cells(fresh), strict=True):
        old, new = said(before), said(now)
        assert [kind for kind, _ in old] == [kind for kind, _ in new], before.source
        for (_, one), (_, other) in zip(old, new, strict=True):
            assert same_text(one, other, tolerance(before)), f"{one}\nis now\n{other}"


def test_is_committed_as_it_ran(path: Path) -> None:
    """Cells in order, no error, no time, nothing of a machine."""
    notebook = read(path)
    nbformat.validate(notebook)
    assert notebook.metadata == execute.METADATA
    cells = execute.code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert all(set(cell.metadata) <= {"tags"} for cell in notebook.cells)
    texts = [cell.source for cell in notebook.cells]
    texts += [text for cell in cells for _, text in said(cell)]
    assert [text for text in texts if OF_A_MACHINE.search(text)] == []
    assert path.stat().st_size < LARGEST


def test_has_text_and_pictures(path: Path) -> None:
    notebook = read(path)
    assert notebook.cells[0].source.startswith("# ")
    assert any(
        kind == "image/png" for cell in execute.code_cells(notebook) for kind, _ in said(cell)
    )
    assert all(cell.source.strip() for cell in notebook.cells)


@pytest.mark.parametrize("page", ["notebooks/README.md", "docs/notebooks.md"])
def test_is_listed(path: Path, page: str) -> None:
    assert path.name in (ROOT / page).read_text()


def test_links_between_notebooks_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", "\n".join(cell.source for cell in read(path).cells))
    assert [link for link in links if not (FOLDER / link).exists()] == []


@pytest.mark.parametrize(
    ("one", "other", "relative", "same"),
    [
        ("C = 3.03", "C  = 3.03", 1e-9, True),
        ("27.0528", "27.0529", 1e-9, True),  # the last digit, by one
        ("27.0528", "27.0531", 1e-9, False),
        ("0.5", "0.4999", 1e-9, True),  # a zero that was not printed
        ("0.5", "0.52", 1e-9, False),
        ("0.98972304885982154", "0.98972304885982211", 1e-9, True),
        ("(4, 3)", "(4, 5)", 1e-9, False),  # integers
        ("7 of 10 met", "7 of 10 left", 1e-9, False),  # words
        ("1.0, 2.0", "1.0", 1e-9, False),
        ("-1.0", "1.0", 1e-9, False),
        ("0.079 ± 0.015", "0.083 ± 0.015", 0.1, True),
        ("0.079", "0.099", 0.1, False),
        ("1.2e-05", "1.9e-05", 0.1, False),
        ("inf", "12.0", 1e-9, False),
    ],
)
def test_the_rule_for_texts(one: str, other: str, relative: float, same: bool) -> None:
    assert same_text(one, other, relative) == same == same_text(other, one, relative)


def notebook_of(*sources: str, tags: list[str] | None = None) -> NotebookNode:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    for cell in cells:
        cell.metadata["tags"] = tags or []
    return nbformat.v4.new_notebook(cells=cells)


def test_a_warning_counts_and_an_error_ends_it(tmp_path: Path) -> None:
    from nbclient.exceptions import CellExecutionError

    file: Any = tmp_path / "warns.ipynb"
    nbformat.write(notebook_of("import warnings", "warnings.warn('beware')"), file)
    assert "beware" in execute.complaints(execute.executed(file))[0]
    nbformat.write(notebook_of("1 / 0"), file)
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        execute.executed(file)


def test_the_table_is_scikit_learns_but_for_two_blemishes() -> None:
    from sklearn.datasets import load_diabetes

    table = np.genfromtxt(FOLDER / "diabetes.csv", delimiter=",", skip_header=1)
    given = load_diabetes(scaled=False)
    whole = np.column_stack([given.data, given.target])
    whole = np.vstack([whole, whole[6]])
    assert np.argwhere(np.isnan(table)).tolist() == [[40, 2]]
    table[40, 2] = whole[40, 2]
    assert np.allclose(table, whole, rtol=1e-9)
