"""The experiments protein and utkface from end to end, on tiny data that the tests make."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lnkernel import mlp, ntk
from lnkernel.errors import InputError
from lnkernel.experiments import REGISTRY, domain_figures, protein, utkface
from lnkernel.experiments.domains import Range
from lnkernel.experiments.learners import Recipe
from lnkernel.experiments.protein_plan import (
    ProteinPlan,
    choose_methods,
    choose_norms,
    choose_plan,
    choose_rows,
)
from lnkernel.experiments.report import Report
from lnkernel.experiments.utkface_plan import FacesPlan
from lnkernel.experiments.variants import VARIANTS

FIRST = VARIANTS[1:2]  # one variant is enough to run everything


@pytest.fixture
def proteins(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    x = draw.uniform(1, 2, (150, 9))
    x[:, 0] = np.linspace(2_000, 26_000, 150)
    table = np.column_stack([np.sin(x[:, 0] / 3_000) + x[:, 1], x])
    header = "RMSD,F1,F2,F3,F4,F5,F6,F7,F8,F9"
    np.savetxt(tmp_path / "c.csv", table, delimiter=",", header=header, comments="")
    return tmp_path / "c.csv"


@pytest.fixture
def faces(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(200, 6))
    groups, age = draw.integers(0, 5, 200), 40 + 10 * x[:, 0]
    np.savez(tmp_path / "f.npz", features=x, age=age, ethnicity=groups, backbone="ResNet-50")
    return tmp_path / "f.npz"


def _table(out: Path) -> list[dict[str, str]]:
    with (out / "table.csv").open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def _manifest(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    return found


def test_protein(proteins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(steps=4, learning_rate=1e-2, width=8)
    plan = ProteinPlan([1, 2], recipe, most=60, rows=40, validation=15, limits=FIRST, all_rows=True)
    monkeypatch.setattr(protein, "choose_plan", lambda *_: plan)
    monkeypatch.setattr(protein, "VARIANTS", FIRST)
    out = tmp_path / "out"
    for _ in range(2):
        report = REGISTRY["protein"].run(out, progress=False, data=proteins)
    rows = _table(out)
    label = FIRST[0].label
    wide = f"infinite width, {label}"
    assert [row["method"] for row in rows] == [label, "XGBoost", wide, f"{wide}, all rows"]
    assert "40 training rows" in rows[2]["note"] and "all 60 training rows" in rows[3]["note"]
    assert {row["seeds"] for row in rows} == {"2"}
    assert all("QUICK RUN, 60 training rows; 2 of the paper's 10" in row["note"] for row in rows)
    published = [row["published R² out of domain"] for row in rows]
    assert published == [".50 ± .02", ".27 ± .04", "", ""]
    pieces = _manifest(out)["pieces"]
    assert len(pieces) == 7  # the networks of both seeds are one
    assert all(piece["stored"] for piece in pieces)  # the second run computed nothing
    page = report.read_text(encoding="utf-8")
    assert "quick run" in page and page.count("<img") == 3
    names = ("scores", "predictions", "errors")
    assert all((out / f"{name}{kind}").is_file() for name in names for kind in (".png", ".pdf"))


def test_faces(faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utkface, "VARIANTS", FIRST)
    out = tmp_path / "out"
    report = REGISTRY["utkface"].run(out, seeds=1, quick=True, progress=False, features=faces)
    rows = _table(out)
    assert [row["published R² out of domain"] for row in rows] == [".47 ± .03"]
    assert rows[0]["published R² in domain"] == "≈ .66 to .68"
    assert all("QUICK RUN" in row["note"] for row in rows)
    assert all("another backbone: ResNet-50" in row["note"] for row in rows)
    assert "1 of the paper's 10 seeds" in rows[0]["note"]
    assert rows[0]["± (in domain)"] == ""  # one seed has no spread
    assert "ResNet-50" in report.read_text(encoding="utf-8")
    assert _manifest(out)["data"]["backbone"] == "ResNet-50"


def test_settings_are_those_of_the_paper() -> None:
    full = choose_plan(quick=False, seed=0, seeds=10)
    assert full.recipe == Recipe(steps=2500, learning_rate=1e-3, batch_size=None, width=128)
    assert (full.most, full.note, full.rows >= 10_000) == (None, "", True)
    assert len(choose_plan(quick=False, seed=0, seeds=None).seeds) >= 3
    plan = FacesPlan([0])
    recipes = {one.name: plan.recipe(one, 19_812) for one in VARIANTS}
    assert {one.batch_size for one in recipes.values()} == {128}
    assert {one.steps for one in recipes.values()} == {10 * 155}  # ten epochs
    rates = [recipes[name].learning_rate for name in ("none", "first", "last", "all")]
    assert rates == [1e-3, 1e-3, 3e-3, 3e-3]
    assert "another backbone" not in plan.note("ResNet-18 (torchvision, ImageNet)")


def test_rows_of_infinitely_wide_networks() -> None:
    plan = choose_plan(quick=False, seed=0, seeds=1)
    assert choose_rows(plan, None) is plan and choose_rows(plan, "all").all_rows
    for wrong in ("some", "0", "-3", 2.5):
        with pytest.raises(InputError, match='a number of training rows, or "all"'):
            choose_rows(plan, wrong)  # type: ignore[arg-type]  # what a user might give


def test_some_of_the_methods(
    proteins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More seeds find what fewer have stored, also where the noise was chosen."""
    plan = choose_plan(quick=False, seed=0, seeds=1)
    assert choose_methods(plan, None) is plan
    with pytest.raises(InputError, match="only: expected one or more of networks, trees, infinite"):
        choose_methods(plan, "infinite,forests")
    with pytest.raises(InputError, match="norms: expected one or more of none, first, last, all"):
        choose_norms(plan, "second")
    assert [one.name for one in choose_norms(plan, "all, none").limits_of_all] == ["none", "all"]
    for seeds in ([1], [1, 2]):
        few = ProteinPlan(seeds, most=60, rows=40, validation=15, limits=FIRST, all_rows=True)
        monkeypatch.setattr(protein, "choose_plan", lambda *_, few=few: few)
        REGISTRY["protein"].run(tmp_path / "out", progress=False, data=proteins, only="infinite")
    assert [row["method"] for row in _table(tmp_path / "out")] == [
        f"infinite width, {FIRST[0].label}{end}" for end in ("", ", all rows")
    ]
    pieces = _manifest(tmp_path / "out")["pieces"]
    assert [piece["stored"] for piece in pieces] == [True, False, True, False]


def test_of_all_rows_no_kernel_twice() -> None:
    """LayerNorm in all layers gives the kernel of the first one, but for q = 1.01 and the last bias."""
    plan = choose_plan(quick=False, seed=0, seeds=1)
    assert [one.name for one in plan.limits_of_all] == ["none", "first", "last"]
    x = np.random.default_rng(0).normal(size=(6, 9))
    first, every = (ntk(mlp(hidden=2, norm=norm))(x) for norm in ("first", "all"))
    np.testing.assert_allclose(every, (first - 0.01) / 1.01 + 0.01, rtol=1e-14)


def test_images_become_features(
    faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for a folder: not those of another one, nor of images that came later."""
    asked: list[str] = []

    def extract(images: str, out: Path, *, progress: bool) -> Path:
        asked.append(Path(images).name)
        return Path(shutil.copy(faces, out))

    monkeypatch.setattr(utkface, "extract", extract)
    monkeypatch.setattr(utkface, "compute", lambda *_: None)
    monkeypatch.setattr(utkface, "report_of", lambda *_: Report("Faces", ""))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()

    def run(name: str) -> None:
        REGISTRY["utkface"].run(tmp_path / "out", progress=False, images=str(tmp_path / name))

    for name in ("one", "one", "two", "one"):
        run(name)
    assert asked == ["one", "two"]
    (tmp_path / "one" / "25_0_2_20170116174525125.jpg").touch()
    run("one")
    assert asked == ["one", "two", "one"]


def test_images_and_features_are_not_given_at_once(faces: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="either images or features of them, got both"):
        REGISTRY["utkface"].run(tmp_path, progress=False, images="here", features=str(faces))


def test_a_published_range_has_no_point(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    domain_figures._published(ax, 0.0, Range(0.66, 0.68))
    assert len(ax.lines) == 0
    ((ends,),) = [bar.get_segments() for bar in ax.collections]
    assert ends[:, 0].tolist() == [0.66, 0.68]
