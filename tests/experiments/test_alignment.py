"""Networks of sines on pictures: their starts, what is measured of them, the tables; a tiny run."""

from __future__ import annotations

import csv
import importlib
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import lnkernel as lnk
from lnkernel.datasets import scenes
from lnkernel.experiments import REGISTRY, alignment
from lnkernel.experiments.alignment_measures import ORDER, order_parameters, principal
from lnkernel.experiments.alignment_plan import AlignmentPlan, Kind
from lnkernel.experiments.alignment_tables import critical_times, local_row
from lnkernel.experiments.alignment_training import grid
from lnkernel.experiments.siren import siren, wide_siren
from lnkernel.tangents.snapshot import Snapshot


def test_a_network_of_sines_by_hand() -> None:
    net = siren(3, 8, 15.0, seed=0)
    x = np.array([[0.3, -0.2], [0.9, 0.5]], np.float32)
    layers = [layer for layer in net.layers if isinstance(layer, nnx.Linear)]
    (w0, b0), (w1, b1), (w2, b2) = (
        (np.asarray(one.kernel[...]), np.asarray(one.bias[...])) for one in layers
    )
    h = np.sin(15 * (x @ w0 + b0))
    h = np.sin(15 * (h @ w1 + b1))
    np.testing.assert_allclose(net(x), h @ w2 + b2, rtol=1e-4)
    assert np.abs(w0).max() < 0.5 and np.abs(w1).max() < np.sqrt(6 / 8) / 15


def test_the_wide_network_has_the_same_variances() -> None:
    """Uniform weights of the finite network, times ω₀ before a sine: their standard deviations."""
    omega, width = 30.0, 256
    arch = wide_siren(3, width, omega)
    dense = [layer for layer in arch.layers if isinstance(layer, lnk.Dense)]
    linear = [one for one in siren(3, width, omega, 0).layers if isinstance(one, nnx.Linear)]
    for number, (ours, theirs) in enumerate(zip(dense, linear, strict=True)):
        kernel = np.asarray(theirs.kernel[...])
        factor = omega if number < 2 else 1.0
        spread = factor * kernel.std() * np.sqrt(len(kernel))
        np.testing.assert_allclose(ours.W_std, spread, rtol=0.08)  # 256 weights at least
        if number < 2:
            biases = np.asarray(theirs.bias[...])
            np.testing.assert_allclose(ours.b_std, factor * biases.std(), rtol=0.1)


def test_what_is_measured() -> None:
    """The measures inside of a program against `tangent` outside of it."""
    net = siren(2, 10, 6.0, seed=1)
    x, at = grid(6), order_parameters(30)
    t = lnk.tangent(net)
    snapshot = Snapshot(t.function.__class__(t.function.apply, t.params, t.function.rest, 1), True)
    made = jax.jit(lambda x: (at(snapshot, x, x), principal(snapshot, x, x)))(
        jnp.asarray(x, jnp.float32)
    )
    found = dict(zip(ORDER, np.asarray(made[0]), strict=True))
    here = t.local(x)
    K = t.gram(x).astype(np.float64)
    v = np.linalg.eigh(K)[1][:, -1]
    rows = K.sum(1) / np.linalg.norm(K.sum(1))
    for name, expected in {
        "min_cosine": t.cosine(x).min(),
        "local_length": here.length(float(found["floor"])).mean(),
        "local_min_cosine": here.min_cosine.min(),
        "mag_ma": here.mag_ma,
        "rows_cosine": abs(v @ rows),
    }.items():
        np.testing.assert_allclose(found[name], expected, rtol=2e-3, err_msg=name)
    np.testing.assert_allclose(made[1], np.abs(v), atol=1e-3)


def test_critical_times_of_curves() -> None:
    """A sigmoid that has not turned by the end of the run has no time."""
    steps = np.unique(np.logspace(0, 3, 40).astype(int))
    s = np.log10(steps)
    curves = np.stack([1 / (1 + np.exp(-8 * (s - 1.5))), 1 / (1 + np.exp(-8 * (s - 3.2)))])
    times = critical_times({"steps": steps, "auc": curves}, "auc")
    np.testing.assert_allclose(times, [1.5], atol=0.02)
    assert critical_times({"steps": steps, "min_cosine": 0.2 - 0.1 * s[None]}, "min_cosine") == [
        pytest.approx(2.0, abs=0.01)
    ]


def test_local_forms_in_the_table() -> None:
    length = np.array([[0.1, 0.2, 0.4], [0.3, 0.2, 0.1]])
    found = {
        "auc": np.zeros((2, 3)),
        "diverged": np.full(2, -1),
        "length": length,
        "local_length": 1.1 * np.sqrt(2 * np.log(2)) * length,
        "min_cosine": -length,
        "local_min_cosine": length,
        "principal_cosine": np.full((2, 3), 0.9),
        "rows_cosine": np.ones((2, 3)),
    }
    row = local_row(Kind(5, 30), found)
    assert row["Pearson of ξ"] == pytest.approx(1)
    assert row["Pearson of the least cosine"] == pytest.approx(-1)
    assert row["local ξ/measured ξ, median"] == pytest.approx(1.1)
    gone = local_row(Kind(5, 30), found | {"diverged": np.array([7, 9])})
    assert gone["networks"] == 0 and gone["Pearson of ξ"] is None
    first = {
        key: np.stack([part[0], np.full(3, np.nan)])
        for key, part in found.items()
        if part.ndim == 2
    }
    alone = local_row(Kind(5, 30), first | {"diverged": np.array([-1, 9])})
    assert alone["networks"] == 1 and alone["Pearson of ξ"] == pytest.approx(1)


def test_without_scikit_image(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(lnk.errors.MissingPackageError, match=r"lnkernel\[pictures\]"):
        scenes.scene("camera", 32)
    with pytest.raises(lnk.errors.InputError, match="one of astronaut"):
        scenes.scene("lena", 32)
    with pytest.raises(lnk.errors.InputError, match="at most 4 pixels"):
        scenes.shrink(np.zeros((4, 5)), 6)


def test_pictures_of_scikit_image() -> None:
    pytest.importorskip("skimage")
    for name in scenes.SCENES:
        picture = scenes.scene(name, 32)
        assert picture.shape == (32, 32) and 0 <= picture.min() < picture.max() <= 1
    step = np.repeat([0.0, 1.0], 8) * np.ones((16, 1))
    assert set(np.flatnonzero(scenes.edges(step).any(0))) <= {7, 8}


@pytest.mark.slow
def test_a_tiny_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = (Kind(3, 15), Kind(3, 60))
    plan = AlignmentPlan([0], ("made up",), kinds, 8, 2, steps=12, times=7, scattered=24)
    line = np.linspace(0, 1, 8)
    monkeypatch.setattr(alignment, "AlignmentPlan", lambda seeds: plan)
    monkeypatch.setattr(
        alignment, "scene", lambda name, side: np.ones((side, 1)) * np.linspace(0, 1, side)
    )
    monkeypatch.setattr(alignment, "edges", lambda picture, sigma: picture > line.mean())
    for _ in range(2):
        page = REGISTRY["alignment"].run(tmp_path, progress=False).read_text()
    assert page.count("<img") == 4 and "made up" in page
    with (tmp_path / "table.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["depth/ω₀"] for row in rows] == ["3/15", "3/60"]
    assert all(0 <= float(row["AUC at the end"]) <= 1 for row in rows)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert len(manifest["pieces"]) == 3 and all(p["stored"] for p in manifest["pieces"])
