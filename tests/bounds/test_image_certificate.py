"""Certificates of networks on images: enclosures that hold the exact kernels, and what becomes of changed files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from image_oracle import kernels

import lnkernel as lnk
from lnkernel.bounds.certified.certificate import Certificate
from lnkernel.bounds.certified.supremum import Enclosure
from lnkernel.errors import ArchitectureError, CertificateError, InputError
from lnkernel.evaluate.balls import entries

RNG = np.random.default_rng(5)
NETWORKS = {
    "norm first": (lnk.cnn(2, norm="first"), (3, 3)),
    "norm last, circular": (lnk.cnn(2, norm="last", padding="CIRCULAR"), (3, 2)),
    "valid, sequences": (lnk.cnn(2, norm="all", filter=(2,), padding="VALID", b_std=0.0), (4,)),
    "weights of their own": (
        lnk.serial(
            lnk.ConvLocal(8, (2, 2), W_std=1.3, b_std=0.2),
            *(lnk.LayerNorm(), lnk.Relu(), lnk.Flatten(), lnk.Dense(1)),
        ),
        (3, 2),
    ),
    "places": (
        lnk.serial(
            *(lnk.ConvTranspose(8, (2, 1), (1, 2), W_std=1.3), lnk.LayerNorm(0.1), lnk.Relu()),
            *(
                lnk.Crop(None, None, -2),
                lnk.Resize((3, 2), "nearest"),
                lnk.Conv(8, (2, 2), b_std=0.1),
            ),
            *(lnk.Relu(), lnk.Flatten(), lnk.Dense(1)),
        ),
        (3, 2),
    ),
    "strides": (
        lnk.serial(
            lnk.Conv(8, (3, 3), 2, W_std=1.3),
            lnk.Relu(),
            lnk.LayerNorm(0.1),
            lnk.Conv(8, (2, 2)),
            lnk.Relu(),
            lnk.Flatten(),
            lnk.Dense(1),
        ),
        (4, 3),
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_balls_hold_fifty_digits(name: str) -> None:
    """Also of an image with pixels that are 0, and of two that nearly agree."""
    arch, shape = NETWORKS[name]
    x = RNG.normal(size=(3, *shape, 2))
    x[0, 0] = 0.0
    x[2] = x[1] * (1 + 1e-9) + 1e-12
    enclosed = entries.gram(arch, x)
    for i, j in ((0, 1), (1, 1), (1, 2)):
        for found, exact in zip(enclosed, kernels(arch, x[i], x[j]), strict=True):
            distance = abs(mp.mpf(float(found.middle[i, j])) - exact)
            assert distance <= mp.mpf(float(found.radius[i, j])) * (1 + mp.mpf(10) ** -20)
            assert found.radius[i, j] < 1e-14


X, Y = RNG.normal(size=(4, 3, 3, 2)), RNG.normal(size=4)
ARCH = lnk.cnn(2, norm="first")


@pytest.fixture(scope="module")
def made() -> lnk.Bound:
    return lnk.bound(ARCH, X, Y, certify=True)


def test_a_certified_bound(made: lnk.Bound) -> None:
    rough = lnk.bound(ARCH, X, Y)
    assert made.certified and made.certificate is not None and made.certificate.verify()
    assert rough.rkhs <= made.rkhs * (1 + 1e-12) and made.rkhs < rough.rkhs * (1 + 1e-8)
    assert Enclosure(0.0, made.C) == made.certificate.C  # zeros around the images: C may be less
    far = np.abs(lnk.posterior(ARCH, X, Y).mean(1e3 * X))
    assert far.max() <= made.rkhs


def test_a_file_is_read_as_it_was_written(made: lnk.Bound, tmp_path: Path) -> None:
    assert made.certificate is not None
    made.certificate.save(tmp_path / "c.json")
    again = Certificate.load(tmp_path / "c.json")
    assert again.arch == ARCH and again.X.shape == X.shape and again.verify()
    np.testing.assert_array_equal(again.X, X)


def changed(made: lnk.Bound, path: Path, change: Any) -> Path:
    assert made.certificate is not None
    made.certificate.save(path)
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    return path


def conv(data: dict[str, Any]) -> dict[str, Any]:
    layer: dict[str, Any] = data["architecture"]["layers"][0]
    assert layer["layer"] == "Conv"
    return layer


@pytest.mark.parametrize(
    "change",
    [
        lambda data: conv(data).update(padding={"word": "CIRCULAR"}),
        lambda data: conv(data).update(W_std=(1.7).hex()),
        lambda data: data["X"][0].__setitem__(0, (0.5).hex()),
        lambda data: data.update(rkhs_upper=(1e-3).hex()),
    ],
)
def test_a_changed_file_is_not_valid(made: lnk.Bound, tmp_path: Path, change: Any) -> None:
    assert not Certificate.load(changed(made, tmp_path / "c.json", change)).verify()


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update({"shape of one input": [9, 2]}),  # a sequence of the same numbers
        lambda data: data.pop("shape of one input"),
        lambda data: conv(data).update(padding={"word": "REFLECT"}),
        lambda data: data["architecture"]["layers"].__setitem__(-2, {"layer": "GlobalAvgPool"}),
    ],
)
def test_a_file_that_cannot_be_one_is_refused(made: lnk.Bound, tmp_path: Path, change: Any) -> None:
    path = changed(made, tmp_path / "c.json", change)
    with pytest.raises((CertificateError, ArchitectureError, InputError)):
        Certificate.load(path).verify()


@pytest.mark.parametrize(
    "claim", [{"C": Enclosure(3.0, 3.04)}, {"C": Enclosure(0.0, 3.02)}, {"lambda_min_lower": 9.0}]
)
def test_a_false_claim_is_not_proved(made: lnk.Bound, claim: dict[str, Any]) -> None:
    """C is at least 3.0 in the dense network alone; with zeros around the images nothing proves it."""
    assert made.certificate is not None
    false = replace(made.certificate, **claim)
    assert not replace(false, digest=false._digest()).verify()


def test_pooling_is_refused_with_what_can_be_had() -> None:
    arch = lnk.cnn(1, norm="first", pool=True)
    with pytest.raises(InputError, match=r"sup_diagonal\(arch, certify=True\) certifies C"):
        lnk.bound(arch, X, Y, certify=True)
    assert lnk.sup_diagonal(arch, certify=True).certified
