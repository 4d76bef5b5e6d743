"""The experiment on images: its posterior against the library's, its bound, a tiny run and what it leaves behind."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.datasets.cifar import Cifar
from lnkernel.datasets.pictures import Pictures
from lnkernel.errors import MissingDataError
from lnkernel.experiments import REGISTRY, images
from lnkernel.experiments.images import draw
from lnkernel.experiments.images_plan import PLAIN, POOLED, ImageGroup, ImageNetwork, ImagesPlan
from lnkernel.experiments.images_posterior import fit_classes

DRAW = np.random.default_rng(0)
IMAGES, LABELS = DRAW.normal(size=(12, 3, 3, 2)), DRAW.integers(0, 3, 12)
TARGETS = np.eye(3)[LABELS] - 1 / 3
ARCH = lnk.cnn(hidden=1, norm="first")


def test_the_fit_is_the_posterior_and_its_bound() -> None:
    X, Y = IMAGES, TARGETS
    theta = np.asarray(lnk.ntk(ARCH)(X))
    made = fit_classes(theta, Y, [0.01])
    assert made.noise == pytest.approx(0.01 * np.diag(theta).mean())
    post = lnk.posterior(ARCH, X, Y, noise=made.noise)
    np.testing.assert_allclose(theta @ made.coefficients, post.mean(X), rtol=1e-9, atol=1e-12)
    found = lnk.bound(post)
    assert np.sqrt(found.C) * made.norm == pytest.approx(found.rkhs)
    assert made.least == pytest.approx(found.lambda_min)


def test_left_out_images_are_those_of_posteriors_without_them() -> None:
    X, Y, noises = IMAGES[:6], TARGETS[:6], [1e-3, 1e-1]
    theta = np.asarray(lnk.ntk(ARCH)(X))
    errors = []
    for noise in noises:
        added = noise * np.diag(theta).mean()
        rest = [np.delete(np.arange(6), i) for i in range(6)]
        each = [
            lnk.posterior(ARCH, X[r], Y[r], noise=added).mean(X[i : i + 1])[0]
            for i, r in enumerate(rest)
        ]
        errors.append((float(np.sum((np.array(each) - Y) ** 2)), np.array(each)))
    made = fit_classes(theta, Y, noises)
    best = int(np.argmin([error for error, _ in errors]))
    assert made.noise == pytest.approx(noises[best] * made.unit)
    assert made.left_out == pytest.approx(np.mean(errors[best][1].argmax(1) == LABELS[:6]))


@pytest.fixture
def pictures() -> Pictures:
    made = np.random.default_rng(0)
    return Pictures(made.random((40, 8, 8, 3), np.float32), np.repeat(np.arange(10), 4))


def test_contrast_is_about_the_mean_colour(pictures: Pictures) -> None:
    plan = ImagesPlan([0], contrasts=(1.0, 10.0), scaled=3)
    made = draw(pictures, pictures, ImageGroup(1, 20, 10, PLAIN), plan)
    assert made.x.shape == (20, 4, 4, 3) and made.scaled.shape == (2, 3, 4, 4, 3)
    assert np.abs(made.x.mean((0, 1, 2))).max() < 1e-12 and made.x.std() == pytest.approx(1.0)
    np.testing.assert_array_equal(made.scaled[1], 10 * made.test_x[:3])


def test_a_tiny_run(pictures: Pictures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LayerNorm holds outputs below the bound at any contrast; a second run computes nothing."""
    networks = (ImageNetwork("CNN", None), POOLED[1])
    plan = ImagesPlan(
        [0],
        groups=(ImageGroup(1, 10, 8, networks, width=4),),
        sizes=(5,),
        contrasts=(1.0, 1000.0),
        scaled=2,
        noises=(1e-2,),
        steps=2,
        batch=5,
    )
    monkeypatch.setattr(images, "ImagesPlan", lambda seeds: plan)
    monkeypatch.setattr(images, "load", lambda path: Cifar(pictures, pictures, "made up"))
    # training is tested elsewhere, and takes long to compile
    monkeypatch.setattr(images, "train", lambda *given, **options: SimpleNamespace(loss=0.5))
    page = REGISTRY["images"].run(tmp_path, progress=False).read_text()
    assert page.count("<img") == 3 and "made up" in page
    plain, pooled = json.loads((tmp_path / "contrast.json").read_text())
    assert plain["B(D)"] == "inf" and plain["largest at the end"] > 100 * plain["largest at 1"]
    assert pooled["largest at the end"] < pooled["B(D)"] < pooled["B(D), sharp"]
    assert pooled["largest Θ(x, x)"] <= pooled["C"] and pooled["C is"] == "an upper bound"
    rows = json.loads((tmp_path / "accuracy.json").read_text())
    assert all(0 <= row["infinite width"] <= 1 and 0 <= row["finite width"] <= 1 for row in rows)
    REGISTRY["images"].run(tmp_path, progress=False)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert len(manifest["pieces"]) == 8 and all(piece["stored"] for piece in manifest["pieces"])


def test_digits_where_there_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(path: str | None) -> Cifar:
        raise MissingDataError("cifar", [], "Download it")

    digits = Pictures(np.zeros((5000, 1, 1, 1), np.float32), np.zeros(5000, int))
    monkeypatch.setattr(images, "load", missing)
    monkeypatch.setattr(images, "mnist", lambda: digits)
    name, train, test, _ = images.pictures(quick=False, cifar=None)
    assert name == "MNIST" and len(train.label) == 3000 and len(test.label) == 2000
    with pytest.raises(MissingDataError):
        images.pictures(quick=True, cifar="there.npz")
