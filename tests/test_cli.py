"""The command line: `lnkernel demo` and its help."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel import cli
from lnkernel.cli import reproduce
from lnkernel.cli.command import Command
from lnkernel.demo import Size
from lnkernel.experiments.toy import Plan
from lnkernel.experiments.variants import VARIANTS


class Demo(NamedTuple):
    code: int
    text: str
    folder: Path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """One run of the smallest size, into a folder that does not exist yet."""
    folder = tmp_path_factory.mktemp("cli") / "new" / "folder"
    networks = Plan([0, 1], steps=2, width=4, hidden=1, variants=VARIANTS[:2])
    smallest = Size(networks, kernel_seeds=(0, 1), kernel_points=5)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as text:
        patch.setattr("lnkernel.demo.Size", lambda: smallest)
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


def test_demo_prints_outputs_and_bound(demo: Demo) -> None:
    rows = [line.split() for line in demo.text.splitlines()]
    found = {row[0]: [float(value) for value in row[1:]] for row in rows if row[:1] == ["sinusoid"]}
    x = np.linspace(-5, 5, 100)[:, None]
    b = lnk.bound(lnk.mlp(hidden=1, norm="first"), x, np.sin(x[:, 0]))
    assert len(found["sinusoid"]) == 3 and found["sinusoid"][-1] == pytest.approx(b.rkhs, rel=1e-3)


def test_demo_writes_pictures_and_a_page(demo: Demo) -> None:
    for name in ("extrapolation.png", "extrapolation-far.png", "heatmaps.png"):
        picture = (demo.folder / name).read_bytes()
        width, height = struct.unpack(">II", picture[16:24])
        assert picture.startswith(b"\x89PNG\r\n\x1a\n") and picture[-8:-4] == b"IEND"
        assert len(picture) > 10_000 and width > 1000 and height > 400
        assert (demo.folder / name).with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    page = demo.folder / "report.html"
    assert page.read_text().count("data:image/png;base64,") == 3
    assert demo.text.rstrip().endswith(str(page))


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


@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda command: command.name)
def test_help_shows_an_example_that_is_right(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main([command.name, "--help"])
    assert f"example: {command.example}\n" in capsys.readouterr().out
    program, *arguments = shlex.split(command.example)
    options = cli.parser().parse_args(arguments)
    assert (program, options.command, options.run) == ("lnkernel", command.name, command.run)


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


class Recorded:
    """An experiment that says how it was called, and stops if it is told to."""

    title = "Three functions"

    def __init__(self, **options: str) -> None:
        self.options = options
        self.calls: list[tuple[Path, dict[str, Any]]] = []

    def run(self, out: Path, **options: Any) -> Path:
        if options.get("stop"):
            raise KeyboardInterrupt
        self.calls.append((out, options))
        return out / "report.html"


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    made = Recorded(stop="to be interrupted", a_file="with numbers")
    monkeypatch.setattr(reproduce, "REGISTRY", {"toy": made, "other": Recorded(a_file="an image")})
    return made


def test_reproduce(recorded: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--quick", "--seeds", "3", "--json", "--a-file", "here"]
    assert cli.main(["reproduce", "toy", *asked]) == 0
    assert json.loads(capsys.readouterr().out)["report"] == "out/toy/report.html"
    common = {"quick": True, "seed": 0, "seeds": 3}
    assert recorded.calls == [(Path("out/toy"), {**common, "a_file": "here"})]


@pytest.mark.usefixtures("recorded")
def test_options_of_experiments_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["reproduce", "--help"])
    assert "toy: with numbers; other: an image" in capsys.readouterr().out


def test_reproduce_lists_and_refuses(
    recorded: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["reproduce"]) == 0
    assert "toy        Three functions\n" in capsys.readouterr().out
    assert cli.main(["reproduce", "toi"]) == 2
    assert "got 'toi'. There are toy, other." in capsys.readouterr().err
    assert recorded.calls == []


@pytest.mark.usefixtures("recorded")
def test_an_interrupt_has_its_own_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["reproduce", "toy", "--stop", "now"]) == 130
    assert "interrupted" in capsys.readouterr().err


LONG_LIST = """
from lnkernel import cli
from lnkernel.cli import reproduce
from lnkernel.experiments import REGISTRY
reproduce.REGISTRY = {f"{i:05d}": REGISTRY["toy"] for i in range(50_000)}
raise SystemExit(cli.main(["reproduce"]))
"""


def test_nobody_reads_on() -> None:
    """`lnkernel reproduce | head` ends quietly, though its list does not fit into the pipe."""
    with subprocess.Popen(
        [sys.executable, "-c", LONG_LIST], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.read(6) == b"00000 "
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
