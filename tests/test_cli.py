"""The command line: its help, its errors, `lnkernel reproduce`."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lnkernel import cli
from lnkernel.cli import reproduce
from lnkernel.cli.command import Command

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
        ("demo --seed -1", "argument --seed: expected an integer, 0 to 2147483647, got -1"),
        ("bench --seed -1", "argument --seed: expected an integer, 0 to 2147483647, got -1"),
        (
            "reproduce toy --seed 1.5",
            "argument --seed: expected an integer, 0 to 2147483647, got 1.5",
        ),
        ("bound d.csv --target y --seed -1", "argument --seed: expected an integer, 0 to"),
        (f"demo --seed {2**64}", "argument --seed: expected an integer, 0 to 2147483647, got 18"),
        ("bound d.csv --target y --sample 0", "argument --sample: expected an integer, 1 to"),
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
    assert json.loads(capsys.readouterr().out)["report"] == "out/toy-quick/report.html"
    common = {"quick": True, "seed": 0, "seeds": 3}
    assert recorded.calls == [(Path("out/toy-quick"), {**common, "a_file": "here"})]


def test_a_quick_run_replaces_no_full_one(recorded: Recorded) -> None:
    for asked in ([], ["--quick"], ["--quick", "--out", "there"]):
        assert cli.main(["reproduce", "toy", *asked]) == 0
    assert [out.as_posix() for out, _ in recorded.calls] == ["out/toy", "out/toy-quick", "there"]


def test_an_activation_has_a_folder_of_its_own(recorded: Recorded) -> None:
    recorded.options = {"activation": "of the networks"}
    for asked in (["relu"], ["Tanh", "--quick"]):
        assert cli.main(["reproduce", "toy", "--activation", *asked]) == 0
    assert [out.as_posix() for out, _ in recorded.calls] == ["out/toy", "out/toy-tanh-quick"]
    assert [options["activation"] for _, options in recorded.calls] == ["relu", "Tanh"]
    assert cli.main(["reproduce", "toy", "--activation", "tan"]) == 2


@pytest.mark.usefixtures("recorded")
def test_options_of_experiments_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["reproduce", "--help"])
    assert "toy: with numbers; other: an image" in capsys.readouterr().out


def test_reproduce_lists_and_refuses(
    recorded: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["reproduce"]) == 0
    assert "toy          Three functions\n" in capsys.readouterr().out
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
