"""The protein data: where the file is looked for, what is checked, what is said where it is not."""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
import pooch
import pytest

import lnkernel as lnk
from lnkernel.datasets import locate, proteins
from lnkernel.errors import DataFileError, MissingDataError

HEADER = "RMSD,F1,F2,F3,F4,F5,F6,F7,F8,F9"
TEXT = f"{HEADER}\n1.5,10,2,3,4,1612360.9222,6,7,8,9\n2.5,20,2,3,4,5,6,7,8,9\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no variable, no network; TEXT is what UCI has."""
    monkeypatch.delenv(locate.VARIABLE, raising=False)
    monkeypatch.setattr(locate, "cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(pooch, "retrieve", _no_network)
    table = np.loadtxt(TEXT.splitlines()[1:], delimiter=",")
    digest = hashlib.sha256(np.delete(table, 5, axis=1).astype("<f8").tobytes()).hexdigest()
    monkeypatch.setattr(proteins, "SHA256", digest)
    return tmp_path / "cache"


def _no_network(*_: Any, **__: Any) -> None:
    raise ConnectionError("no network")


def _saved(path: Path, text: str = TEXT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt") as stream:
        stream.write(text)
    return path


@pytest.mark.parametrize("name", ["some.csv", "some.csv.gz"])
def test_an_explicit_path_is_taken_as_it_is(name: str, tmp_path: Path) -> None:
    found = lnk.datasets.protein(_saved(tmp_path / name, TEXT.replace("1.5", "7.5")))
    assert found.y.tolist() == [7.5, 2.5]
    assert found.surface.tolist() == [10.0, 20.0]
    assert found.x.shape == (2, 9)


def test_an_explicit_path_to_nothing(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"no file\n +.*nowhere.csv\nCorrect the path"):
        lnk.datasets.protein(tmp_path / "nowhere.csv")


def test_the_variable_goes_before_the_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _saved(cache / "protein" / "CASP.csv", "broken")
    _saved(tmp_path / "mine" / "protein" / "CASP.csv.gz")
    monkeypatch.setenv(locate.VARIABLE, str(tmp_path / "mine"))
    assert lnk.datasets.protein().y.tolist() == [1.5, 2.5]


def test_then_the_cache(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(locate.VARIABLE, str(tmp_path / "empty"))
    _saved(cache / "protein" / "CASP.csv")
    assert lnk.datasets.protein().y.tolist() == [1.5, 2.5]


def test_then_the_network(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def retrieve(url: str, known_hash: None, fname: str, path: Path, progressbar: bool) -> str:
        asked.append(url)
        return str(_saved(Path(path) / fname))

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    for _ in range(2):  # the second time it is in the cache
        assert lnk.datasets.protein().y.tolist() == [1.5, 2.5]
    assert asked == [proteins.URL]


@pytest.mark.parametrize("content", [b"<html>not found</html>", b"\x80\x81", TEXT[:-20].encode()])
def test_a_bad_download_does_not_stay(
    content: bytes, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = [content, TEXT.encode()]

    def retrieve(url: str, known_hash: None, fname: str, path: Path, progressbar: bool) -> str:
        Path(path).mkdir(parents=True, exist_ok=True)
        (Path(path) / fname).write_bytes(contents.pop(0))
        return str(Path(path) / fname)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    with pytest.raises(DataFileError):
        lnk.datasets.protein()
    assert lnk.datasets.protein().y.tolist() == [1.5, 2.5]


def test_a_download_gives_no_advice(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = heard.append  # type: ignore[method-assign]

    def retrieve(url: str, fname: str, path: Path, **_: Any) -> str:
        pooch.get_logger().info("Use this value as the 'known_hash' argument")
        return str(_saved(Path(path) / fname))

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    pooch.get_logger().addHandler(handler)
    try:
        lnk.datasets.protein()
        pooch.get_logger().info("and later")
    finally:
        pooch.get_logger().removeHandler(handler)
    assert [record.getMessage() for record in heard] == ["and later"]


def test_else_it_says_what_to_put_where(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(locate.VARIABLE, str(tmp_path / "mine"))
    with pytest.raises(MissingDataError) as caught:
        lnk.datasets.protein()
    places = [tmp_path / "mine" / name for name in proteins.NAMES]
    assert caught.value.looked == places + [cache / name for name in proteins.NAMES]
    for part in (*map(str, places), proteins.URL, "LNKERNEL_DATA", "--data CASP.csv"):
        assert part in str(caught.value)


def test_other_numbers_are_refused(cache: Path) -> None:
    file = _saved(cache / "protein" / "CASP.csv", TEXT.replace("2.5", "2.6"))
    with pytest.raises(DataFileError, match=r"SHA-256(.|\n)*2 rows with [0-9a-f]{64}") as caught:
        lnk.datasets.protein()
    assert str(file) in str(caught.value)


def test_f5_may_be_rounded(cache: Path) -> None:
    """As spreadsheets do; every other digit counts."""
    _saved(cache / "protein" / "CASP.csv", TEXT.replace("1612360.9222", "1612360.922"))
    assert lnk.datasets.protein().x[0, 4] == 1612360.922


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT.replace("RMSD", "y"), "expected a first line RMSD,F1"),
        (TEXT.replace("2.5", "two"), "expected rows of 10 numbers"),
        (TEXT.replace("2.5", "nan"), "(?s)finite numbers only.*line 3"),
    ],
)
def test_a_file_of_another_kind(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=said):
        lnk.datasets.protein(_saved(tmp_path / "some.csv", text))


@pytest.mark.slow
def test_the_real_data() -> None:
    places = [Path(os.environ.get(locate.VARIABLE, "nowhere")) / name for name in proteins.NAMES]
    if not any(place.is_file() for place in places):
        pytest.skip("LNKERNEL_DATA names no folder with protein/CASP.csv.gz")
    found = lnk.datasets.protein()
    assert found.x.shape == (45_730, 9)
    assert (found.surface >= 20_000).sum() == 1_139
    assert 0 <= found.y.min() < found.y.max() < 21
