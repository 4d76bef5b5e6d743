"""Random labels: the kernel's fit against the posterior, the linear bound, a tiny run."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import scipy

import lnkernel as lnk
from lnkernel.datasets.cifar import Cifar
from lnkernel.datasets.pictures import Pictures
from lnkernel.errors import MissingDataError
from lnkernel.experiments import REGISTRY, nonlinearity
from lnkernel.experiments.nonlinearity import draw, kernel_fits, linear_accuracy, random_labels
from lnkernel.experiments.nonlinearity_figures import XOR, XOR_LABELS
from lnkernel.experiments.nonlinearity_plan import LNKind, NonlinearityPlan

X = np.random.default_rng(0).normal(size=(60, 5))
LABELS = random_labels(60, 0)


@pytest.mark.parametrize("noise", [1e-1, 1e-3])
def test_the_fit_by_the_spectrum_is_the_posterior_s(noise: float) -> None:
    arch = LNKind(1, 8).arch(16, 1)
    values, vectors = scipy.linalg.eigh(lnk.ntk(arch)(X))
    y = np.eye(10)[LABELS] - 0.1
    mean = lnk.posterior(arch, X, y, noise=noise).mean(X)
    expected = np.mean(mean.argmax(1) == LABELS)
    assert kernel_fits(values, vectors, LABELS, noise) == pytest.approx(expected)


def test_layernorm_fits_as_a_linear_model_of_directions() -> None:
    """At infinite width, any depth: its kernel has the directions of (x, 1), and a constant."""
    for norms in (1, 3):
        values = np.linalg.eigvalsh(lnk.ntk(LNKind(norms, None).arch(16, 1))(X))
        assert (values > 1e-10 * values[-1]).sum() == 7
        values = np.linalg.eigvalsh(lnk.ntk(LNKind(norms, 4).arch(16, 1))(X))
        assert (values > 1e-10 * values[-1]).sum() == 60


def test_the_linear_bound() -> None:
    assert linear_accuracy(X, (X[:, 0] > 0).astype(int)) == 1.0
    assert linear_accuracy(XOR, XOR_LABELS) <= 0.75
    assert 0.2 < linear_accuracy(X, LABELS) < 0.6


@pytest.fixture
def sources() -> tuple[Pictures, Cifar]:
    made = np.random.default_rng(0)
    digits = Pictures(made.random((40, 28, 28, 1), np.float32), np.repeat(np.arange(10), 4))
    colour = Pictures(made.random((40, 32, 32, 3), np.float32), np.repeat(np.arange(10), 4))
    return digits, Cifar(colour, colour, "made up")


def test_pictures_are_made_smaller(sources: tuple[Pictures, Cifar]) -> None:
    plan = NonlinearityPlan([0], points=20)
    assert draw("MNIST", sources[0], plan).x.shape == (20, 196)
    x = draw("CIFAR-10", sources[1].train, plan).x
    assert x.shape == (20, 192) and np.abs(x.mean(0)).max() < 1e-12
    assert x.std() == pytest.approx(1.0)


def test_a_tiny_run(
    sources: tuple[Pictures, Cifar], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without CIFAR-10, which is left out, as the report says; a file that is named must be there."""
    plan = NonlinearityPlan(
        [0, 1],
        points=20,
        width=8,
        epochs=1,
        batch=10,
        rates=(1e-2,),
        depths=(1,),
        groups=(2,),
        kernel_sizes=(4, None),
        kernel_depths=(1,),
        noises=(1e-1, 1e-3),
        constructed=(6,),
    )

    def missing(path: str | None) -> Cifar:
        raise MissingDataError("cifar", [], "Download it")

    monkeypatch.setattr(nonlinearity, "NonlinearityPlan", lambda seeds: plan)
    monkeypatch.setattr(nonlinearity, "mnist", lambda: sources[0])
    monkeypatch.setattr(nonlinearity, "load", missing)
    page = REGISTRY["nonlinearity"].run(tmp_path, progress=False).read_text()
    assert page.count("<img") == 3 and "its file was not found" in page
    with (tmp_path / "networks.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["network"] for row in rows] == ["linear bound", "LN-Net", "LN-G"]
    assert all(0 <= float(row["training accuracy"]) <= 1 for row in rows)
    made = json.loads((tmp_path / "constructed.json").read_text())
    assert all(row["right"] == 1.0 and row["LayerNorms"] <= 4 for row in made)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert len(manifest["pieces"]) == 6
    with pytest.raises(MissingDataError):
        REGISTRY["nonlinearity"].run(tmp_path, progress=False, cifar="there.npz")
