"""The command line: `lnkernel demo` and its help."""

from __future__ import annotations

import contextlib
import io
import struct
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from lnkernel import cli


class Demo(NamedTuple):
    code: int
    text: str
    folder: Path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """One run, into a folder that does not exist yet."""
    folder = tmp_path_factory.mktemp("cli") / "new" / "folder"
    with contextlib.redirect_stdout(io.StringIO()) as text:
        code = cli.main(["demo", "--out", str(folder)])
    return Demo(code, text.getvalue(), folder)


def test_demo_succeeds(demo: Demo) -> None:
    assert demo.code == 0


def test_demo_prints_both_diagonals(demo: Demo) -> None:
    """With |x|² = r it is 6r + 0.06 without a norm, and 3.03 everywhere with one."""
    rows = [line.split() for line in demo.text.splitlines() if line.strip()[:1].isdigit()]
    norms = [0.0, *(10.0**power for power in range(7))]
    assert [float(row[0]) for row in rows] == norms
    assert rows[-1][0] == "1e+06"
    assert [float(row[1]) for row in rows] == pytest.approx([6 * r * r + 0.06 for r in norms], 1e-9)
    assert [float(row[2]) for row in rows] == pytest.approx([3.03] * len(norms), 1e-9)


def test_demo_writes_a_picture(demo: Demo) -> None:
    (path,) = demo.folder.iterdir()
    picture = path.read_bytes()
    width, height = struct.unpack(">II", picture[16:24])
    assert picture.startswith(b"\x89PNG\r\n\x1a\n") and picture[-8:-4] == b"IEND"
    assert len(picture) > 10_000
    assert width > 1000 and height > 400
    assert demo.text.rstrip().endswith(str(path))


HELP = {
    "--help": (
        "usage: lnkernel",
        "Exact kernels of infinitely wide networks",
        "what one LayerNorm",
    ),
    "demo --help": ("usage: lnkernel demo", "--out OUT", "folder of the picture", "example:"),
}


@pytest.mark.parametrize(("arguments", "texts"), HELP.items(), ids=HELP)
def test_help(
    arguments: str,
    texts: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments.split())
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert [text for text in texts if text not in out] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "the following arguments are required: command"),
        ("certify", "invalid choice: 'certify'"),
        ("demo --into here", "unrecognized arguments: --into here"),
        ("demo --out", "argument --out: expected one argument"),
    ],
)
def test_bad_arguments(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments.split())
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_as_a_module() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "lnkernel.cli", "--help"], capture_output=True, text=True
    )
    assert run.returncode == 0 and run.stdout.startswith("usage: lnkernel")
