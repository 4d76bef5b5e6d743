"""Wrong use and unfit data: exit code 2, no traceback, and remedies that the command line has."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lnkernel import cli
from lnkernel.cli import bench, command
from lnkernel.errors import (
    DuplicateInputsError,
    LnkernelError,
    SingularGramError,
    UnresolvedEigenvalueError,
)

ROWS = "x,y\n1,0\n1.5,4\n1e10,8\n"


class Run:
    """A call of the command line in a folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]):
        self.folder, self.capsys = folder, capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        code = cli.main(list(arguments))
        captured = self.capsys.readouterr()
        return code, captured.out, captured.err

    def file(self, content: str | bytes, name: str = "data.csv") -> str:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> Run:
    monkeypatch.chdir(tmp_path)
    return Run(tmp_path, capsys)


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of ones, for tests of what is around them."""
    kernel = sys.modules["lnkernel.gram.kernel"]
    monkeypatch.setattr(kernel, "ntk", lambda arch: lambda x: np.ones((len(x), len(x))))


# ---------------------------------------------------------------- inputs that cannot be told apart

UNRESOLVED: dict[str, tuple[LnkernelError, list[str], list[str]]] = {
    "one pair": (
        SingularGramError(3, 1e-17, 1e-14, nearest=(0, 1, 0.5), alike=(0, 1, 0.0)),
        [],
        [
            "    lines 2 and 3: the nearest inputs, at distance 0.5; to the kernel equal up to rounding\n",
            "comes out as 1e-17, and float64 resolves 1e-14 in it",
            "by --noise, well above 1e-14.",
        ],
    ),
    "two pairs": (
        SingularGramError(3, 0, 1e-14, nearest=(0, 1, 0.5), alike=(1, 2, 1e-9), scaled=True),
        [],
        [
            "    lines 2 and 3: the nearest inputs, at distance 0.5\n",
            "    lines 3 and 4: most alike to the kernel, with correlation 1 - 1.0e-09\n",
            "by --noise, well above 1e-14 times Θ(x, x).",
        ],
    ),
    "zero": (
        SingularGramError(3, 0, 1e-14, zero=1),
        [],
        ["line 3: the kernel with itself is 0", "Leave this line out, or give the Dense layers"],
    ),
    "sizes": (
        UnresolvedEigenvalueError(3, -1.0, 100.0),
        [],
        [
            "lines 2 and 3: the nearest inputs, at distance 0.5\n",
            "lines 2 and 4: the smallest and the largest inputs, with numbers up to 1 and 1e+10\n",
            "Scale the inputs to one size with --standardise; or leave out lines",
            "by --noise, well above 1e+02.",
        ],
    ),
    "sizes, scaled": (
        UnresolvedEigenvalueError(3, -1.0, 3.0),
        ["--standardise", "--noise", "1"],
        [
            "Leave out lines that nearly coincide",
            "after scaling",
            "state a larger variance of the targets' noise by --noise, well above 3e+01.",
        ],
    ),
    "equal when scaled": (
        DuplicateInputsError([[0, 1]], [False]),
        ["--standardise"],
        ["lines 2, 3: equal\nLeave out all but one of them; or state the variance"],
    ),
}


@pytest.mark.parametrize("case", UNRESOLVED)
def test_inputs_that_cannot_be_told_apart(
    case: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, more, texts = UNRESOLVED[case]

    def refuse(*_: Any, **__: Any) -> None:
        raise problem

    monkeypatch.setattr(sys.modules["lnkernel.bounds"], "bound", refuse)
    code, out, err = run("bound", run.file(ROWS), "--target", "y", *more)
    assert (code, out) == (2, "")
    assert [text for text in texts if text not in err] == []
    assert [text for text in ("lnk.", "noise=", "points ") if text in err] == []
    assert len(set(err.splitlines())) == len(err.splitlines())
    _, _, proved = run("bound", run.file(ROWS), "--target", "y", "--certify", *more)
    assert proved == err  # --certify takes noise, too


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    "content",
    [gzip.compress(ROWS.encode())[:-12], b"\x1f\x8b\x08" + b"\xff" * 40],
    ids=["cut off", "garbled"],
)
def test_half_a_compressed_file(content: bytes, run: Run) -> None:
    code, _, err = run("bound", run.file(content, "data.csv.gz"), "--target", "y")
    assert code == 2 and "expected a whole gzip file" in err


@pytest.mark.usefixtures("instant")
def test_kernel_of_a_file_with_a_missing_number(run: Run) -> None:
    path = run.file("x,y\n1,0\n,1\n3,2\n")
    code, _, err = run("kernel", "--csv", path)
    assert code == 2 and "line 3: x is empty\n" in err and "--drop-nan" in err
    code, out, err = run("kernel", "--csv", path, "--drop-nan", "--columns", "x, y")
    assert code == 0 and "2 points in 2 dimensions" in out
    assert err == f"{path}: 1 line left out, without a number: 3\n"


def test_no_line_is_left(run: Run) -> None:
    code, _, err = run("kernel", "--csv", run.file("x,y\n1,\n,1\n"), "--drop-nan")
    assert code == 2 and "none is left" in err


# ---------------------------------------------------------------- options of kernel


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--x 0 1 inf", "--x: expected a whole number of points, 1 to 1000000, got inf"),
        ("--x 0 1 nan", "--x: expected a whole number of points, 1 to 1000000, got nan"),
        ("--x 0 1 1e300", "--x: expected a whole number of points, 1 to 1000000, got 1e+300"),
        ("--x nan 1 3", "--x: expected finite ends, less than 1.8e308 apart, got nan and 1"),
        ("--x 0 inf 3", "--x: expected finite ends, less than 1.8e308 apart, got 0 and inf"),
        ("--x 0 1 3 --columns x", "--columns: expected --csv with it, got none"),
        ("--x 0 1 3 --drop-nan", "--drop-nan: expected --csv with it, got none"),
        ("--x 0 1 3 --format csv", "--format: expected --out with it, got none"),
    ],
)
def test_wrong_use_of_kernel(arguments: str, message: str, run: Run) -> None:
    code, out, err = run("kernel", *arguments.split())
    assert (code, out) == (2, "") and err.startswith(f"lnkernel kernel: {message}. ")


@pytest.mark.usefixtures("instant")
@pytest.mark.parametrize(
    ("ends", "labels"), [("0 1 3", ("$x'$", "$x$")), ("1 1 3", ("point", "point")), ("1 1 1", None)]
)
def test_picture(
    ends: str, labels: tuple[str, str] | None, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Points that are all the same have no axis, and one point has no picture."""
    from matplotlib.figure import Figure

    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, dpi: drawn.append(figure))
    code, out, _ = run("kernel", "--x", *ends.split(), "--out", "here")
    assert code == 0 and ("picture" in out) == bool(labels)
    assert (run.folder / "here" / "kernel.npz").exists()
    axes = [figure.axes[0] for figure in drawn]
    assert [(ax.get_xlabel(), ax.get_ylabel()) for ax in axes] == [labels] * bool(labels)


@pytest.mark.usefixtures("instant")
def test_many_points_are_announced(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MANY", 12)
    assert run("kernel", "--x", "0", "1", "11")[2] == ""
    assert run("kernel", "--x", "0", "1", "12")[2].startswith("computing with 12 points")


# ---------------------------------------------------------------- bench


@pytest.mark.parametrize(
    ("arguments", "folder"),
    [("", "out/bench"), ("--quick", "out/bench-quick"), ("--quick --out there", "there")],
)
def test_a_quick_bench_replaces_no_full_one(
    arguments: str, folder: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[list[str]] = []

    class Ended:
        returncode = 0

    monkeypatch.setattr(bench.subprocess, "run", lambda asked, **_: called.append(asked) or Ended)
    assert run("bench", *arguments.split())[0] == 0
    assert called[0][called[0].index("--out") + 1] == str(run.folder / folder)
