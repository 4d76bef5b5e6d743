"""The report: one file that needs nothing from elsewhere, and says what it is given."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from lnkernel.experiments.figures import new_figure
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.report import Report

VOID = {"meta", "img"}


class Page(HTMLParser):
    """The elements in order, and whether each is closed where it should be."""

    def __init__(self, text: str):
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words, self._open = "", list[str]()
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.words += data


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = Folder(tmp_path_factory.mktemp("report"), "trial", quick=True, progress=False)
    with new_figure(folder, "line", height=1.0, width=1.0):
        pass
    report = Report("a < b & c", "`x < y` is code.")
    report.heading("Result")
    report.figure(folder.path / "line.png", "A line.", 'alt "text"')
    values = {
        "big": 6e12,
        "many": 81_040.0,
        "four": 1378.4,
        "small": -1.6e-4,
        "none": None,
        "inf": float("inf"),
    }
    report.table([{"name": "<one>", **values}], "Numbers.")
    folder.record(seeds=[3, 4])
    return report.html(folder.finish())


def test_needs_nothing_from_elsewhere(text: str) -> None:
    page = Page(text)
    assert {tag for tag, _ in page.found}.isdisjoint({"script", "link", "iframe", "object"})
    addresses = [a[k] or "" for _, a in page.found for k in ("src", "href", "srcset") if k in a]
    assert len(addresses) == 1 and addresses[0].startswith("data:image/png;base64,iVBOR")
    assert re.findall(r"https?:|url\(|@import", text) == []


def test_fits_a_phone_and_the_dark(text: str) -> None:
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
    assert "prefers-color-scheme: dark" in text and "overflow-x: auto" in text


def test_takes_text_literally(text: str) -> None:
    page = Page(text)
    assert "a < b & c" in page.words and "<one>" in page.words
    assert "<code>x &lt; y</code> is code." in text
    (image,) = [attributes for tag, attributes in page.found if tag == "img"]
    assert image["alt"] == 'alt "text"'


def test_numbers_as_one_writes_them(text: str) -> None:
    for cell in ("6 × 10<sup>12</sup>", "81,040", "1,378", "−1.6 × 10<sup>−4</sup>", "–", "∞"):
        assert f"<td>{cell}</td>" in text


def test_tells_how_it_was_made(text: str) -> None:
    words = Page(text).words
    assert "Seeds of the networks: 3, 4." in words and "lnkernel 0." in words and "cores" in words
    assert "quick version" in words


def test_without_an_experiment() -> None:
    """What a program printed is kept as it is, and no manifest is promised."""
    report = Report("Printed", "")
    report.printed("a  <  b\n1     2")
    assert "<pre>a  &lt;  b\n1     2</pre>" in report.html()
    assert "manifest" not in report.html()


def test_a_figure_that_fails_leaves_no_file(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "trial", quick=True, progress=False)
    with pytest.raises(ZeroDivisionError), new_figure(folder, "line", height=1.0):
        _ = 1 / 0
    assert not (tmp_path / "line.png").exists()
