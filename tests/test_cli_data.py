"""`lnkernel bound` and `lnkernel kernel`: CSV files as people have them, results, exit codes."""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import shows_something

import lnkernel as lnk
from lnkernel import cli
from lnkernel.bounds.digits import at_most
from lnkernel.cli import table, training_data
from lnkernel.errors import DataFileError

X = np.linspace(-2, 2, 9)
ARCH = "mlp(hidden=1, norm='first')"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def rows(*more: str) -> str:
    return "\n".join(["x,y", *(f"{x!r},{float(np.sin(x))!r}" for x in X.tolist()), *more]) + "\n"


class Run:
    """A call of the command line in a folder of its own."""

    def __init__(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        self.folder, self.capsys = tmp_path, capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        code = cli.main([*arguments, "--out", str(self.folder / "out")])
        captured = self.capsys.readouterr()
        return code, captured.out, captured.err

    def bound(self, text: str, *more: str) -> tuple[int, str, str]:
        path = str(written(self.folder, text))
        return self("bound", path, "--target", "y", "--arch", ARCH, *more)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(tmp_path, capsys)


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n",
        "\ufeffa;b\r\n1;2\r\n\r\n3;4",
        'a\t"b"\n1\t2\n\n3\t"4"\n',
        "a, b\n1, 2\n 3 , 4e0\n",
    ],
    ids=["plain", "semicolons, BOM, CRLF", "tabs, quotes", "blanks"],
)
def test_kinds_of_csv(text: str, tmp_path: Path) -> None:
    found = table.read(written(tmp_path, text))
    assert found.columns == ("a", "b")
    assert found.values.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_compressed_file(tmp_path: Path) -> None:
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert table.read(tmp_path / "data.csv.gz").values.tolist() == [[1.0, 2.0]]


def test_lines_are_those_of_an_editor(tmp_path: Path) -> None:
    """Also behind a cell that goes over two lines, and behind an empty line."""
    found = table.read(written(tmp_path, 'a,note\n1,"two\nlines"\n\n2,x\n'), ["a"])
    assert found.lines.tolist() == [2, 5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a header and at least one line of numbers"),
        ("a,b\n", "expected a header and at least one line of numbers"),
        ("1,2\n3,4\n", "expected the names of the columns in the first line"),
        ("a,a\n1,2\n", "expected different names of columns"),
        ("a,b\n1,2\n3,4,5\n6\n", r"line 3: 3 cells\n    line 4: 1 cells"),
        ("a,b\n1,\n3,4\nnan,5\n", r"line 2: b is empty\n    line 4: a is 'nan'\n.*--drop-nan"),
        ("a,b\n1,inf\n3,1_000\n4,5", r"line 2: b is 'inf'\n    line 3: b is '1_000'"),
        ("a,b\nred,1\nblue,2\n", r"these have none, got\n    a, e.g. 'red'\n.*--columns.* in b"),
        ("a,b\n" + "1,\n" * 12 + "1,1\n", r"line 11: b is empty\n    and 2 more"),
    ],
)
def test_what_is_wrong_with_a_file(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=message):
        table.read(written(tmp_path, text))


def test_not_text(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(b"a,b\n1,\xff\n")
    with pytest.raises(DataFileError, match="expected a text in UTF-8"):
        table.read(tmp_path / "data.csv")


# ---------------------------------------------------------------- bound


def test_bound_in_words(run: Run) -> None:
    code, out, err = run.bound(rows())
    b = lnk.bound(lnk.parse(ARCH), X[:, None], np.sin(X))
    assert code == 0 and err == ""
    most = at_most(b.rkhs, 4)
    assert f"stays between -{most} and {most}; the targets run from -0.9975 to 0.9975." in out
    assert "9 points, 1 input (x), target y from -0.997495 to 0.997495" in out
    assert shows_something(run.folder / "out" / "profile.png")


def test_bound_as_json(run: Run) -> None:
    code, out, _ = run.bound(rows(), "--json")
    found = json.loads(out)
    arch = lnk.parse(ARCH)
    b, post = lnk.bound(arch, X[:, None], np.sin(X)), lnk.posterior(arch, X[:, None], np.sin(X))
    far = 1e6 * X.std()
    ends = np.abs(np.asarray(post.mean([[far], [-far]])))
    assert code == 0
    assert found["bounds"] == {
        form: getattr(b, form) for form in ("rkhs", "sharp", "paper", "norms")
    }
    assert found["ingredients"]["C"] == b.C and found["ingredients"]["is_theorem"]
    assert found["principal_direction"]["mean_at_end"] == pytest.approx(ends.max(), rel=1e-6)
    assert found["principal_direction"]["largest_mean"] <= b.rkhs
    assert lnk.parse(found["arch"]) == arch


def test_data_from_a_pipe(run: Run) -> None:
    """As in `lnkernel bound <(cat data.csv)`: what was read once is gone."""
    reader, writer = os.pipe()
    try:
        os.write(writer, rows().encode())
        os.close(writer)
        path = f"/dev/fd/{reader}"
        code, out, err = run("bound", path, "--target", "y", "--arch", ARCH)
    finally:
        os.close(reader)
    assert code == 0, err
    assert f"{path}: 9 points" in out


def standard_input(monkeypatch: Any, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_data_from_standard_input(run: Run, monkeypatch: Any) -> None:
    standard_input(monkeypatch, rows())
    code, out, err = run("bound", "-", "--target", "y", "--arch", ARCH)
    assert code == 0, err
    assert "standard input: 9 points" in out


def test_what_is_wrong_with_standard_input(run: Run, monkeypatch: Any) -> None:
    standard_input(monkeypatch, "x,y\n1,\n2,3\n")
    code, _, err = run("bound", "-", "--target", "y")
    assert code == 2 and "lnkernel bound: standard input: expected" in err and "line 2" in err


def test_a_file_that_is_called_as_messages_call_standard_input(run: Run, monkeypatch: Any) -> None:
    written(run.folder, rows()).rename(run.folder / "standard input")
    monkeypatch.chdir(run.folder)
    code, _, err = run("bound", "standard input", "--target", "y", "--arch", ARCH)
    assert code == 0, err


def test_without_layernorm_there_is_no_bound(run: Run) -> None:
    path = str(written(run.folder, rows()))
    code, out, _ = run("bound", path, "--target", "y", "--arch", "mlp(hidden=1)")
    assert code == 0
    assert "This network has no bound" in out and "norm='first'" in out


def test_certified(run: Run) -> None:
    code, out, _ = run.bound(rows(), "--certify")
    assert code == 0 and "Proved, rounding errors included." in out
    certificate = run.folder / "out" / "certificate.json"
    assert cli.main(["verify", str(certificate), "--json"]) == 0
    verdict = json.loads(run.capsys.readouterr().out)
    assert verdict["valid"] and all(verdict["findings"].values())
    certificate.write_text(certificate.read_text().replace('"n": 9', '"n": 8'))
    assert cli.main(["verify", str(certificate), "--json"]) == 1
    assert not json.loads(run.capsys.readouterr().out)["valid"]


def test_standardised(run: Run) -> None:
    """The bound is that of the scaled data, in the target's own units."""
    text = "\n".join(["x,y", *(f"{9 + 3 * x},{100 + 5 * np.sin(x)}" for x in X.tolist())])
    code, out, _ = run.bound(text, "--standardise", "--json")
    found = json.loads(out)
    x, y = (X - X.mean()) / X.std(), np.sin(X)
    scaled = lnk.bound(lnk.parse(ARCH), x[:, None], (y - y.mean()) / y.std())
    assert code == 0
    assert found["centre"] == pytest.approx(100) and found["unit"] == pytest.approx(5 * y.std())
    assert found["bounds"]["rkhs"] == pytest.approx(5 * y.std() * scaled.rkhs, rel=1e-9)
    _, words, _ = run.bound(text, "--standardise")
    assert f"stays within {at_most(5 * y.std() * scaled.rkhs, 4)} of 100" in words


def test_a_constant_column_is_told(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    training_data.add_arguments(parser)
    path = str(written(tmp_path, "x,z,y\n1,7,2\n2,7,5\n"))
    asked = [path, "--target", "y", "--standardise", "--noise", "9"]
    data = training_data.load(parser.parse_args(asked))
    assert data.X.tolist() == [[-1.0, 0.0], [1.0, 0.0]]
    assert data.targets.tolist() == [2.0, 5.0]
    assert data.noise == 9 / 1.5**2
    assert data.notes == ("z is the same in every line",)


def test_missing_numbers(run: Run) -> None:
    code, out, err = run.bound(rows("7,", "8,oops"))
    assert code == 2 and out == ""
    assert "line 11: y is empty" in err and "line 12: y is 'oops'" in err and "--drop-nan" in err
    code, out, err = run.bound(rows("7,", "8,oops"), "--drop-nan", "--json")
    assert code == 0 and json.loads(out)["ingredients"]["n"] == 9
    assert "2 lines left out, without a number: 11, 12" in err


def test_duplicates(run: Run) -> None:
    text = rows("2.0,5", "0.0,0.0")
    code, _, err = run.bound(text)
    assert code == 2
    assert "lines 6, 12: equal inputs, equal targets" in err
    assert "lines 10, 11: equal inputs, different targets" in err and "--merge-duplicates" in err
    code, out, err = run.bound(text, "--merge-duplicates", "--json")
    assert code == 0 and json.loads(out)["ingredients"]["n"] == 9
    assert "2 lines merged" in err
    assert json.loads(out)["ingredients"]["max_abs_y"] == pytest.approx((5 + np.sin(2)) / 2)
    code, out, _ = run.bound(text, "--noise", "0.1", "--json")
    assert code == 0 and json.loads(out)["ingredients"]["n"] == 11


def test_inputs_that_the_network_cannot_tell_apart_are_told_by_line(run: Run) -> None:
    path = str(written(run.folder, "x,y\n1,0\n2,1\n"))
    arch = "mlp(b_std=0, norm='first')"
    code, _, err = run("bound", path, "--target", "y", "--arch", arch)
    assert code == 2 and "lines 2 and 3: the nearest inputs, at distance 1; to the kernel" in err


def test_sample(run: Run) -> None:
    code, out, err = run.bound(rows(), "--sample", "5", "--seed", "3", "--json")
    first = json.loads(out)
    assert code == 0 and first["ingredients"]["n"] == 5 and "a sample of 5 of 9 lines" in err
    assert json.loads(run.bound(rows(), "--sample", "5", "--seed", "3", "--json")[1]) == first
    assert json.loads(run.bound(rows(), "--sample", "5", "--seed", "4", "--json")[1]) != first


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--target", "z"], "expected columns of the file, got\n    'z'\nIt has x, y"),
        (["--target", "y", "--columns", "x,w"], "'w'"),
        (["--target", "y", "--columns", "x,y"], "--columns: expected inputs, without the target"),
        (["--target", "y", "--arch", "mlp(hiden=1)"], "mlp has no argument 'hiden'"),
        (["--target", "y", "--noise", "-1"], "noise: expected a variance, at least 0"),
    ],
)
def test_wrong_use_of_bound(more: list[str], message: str, run: Run) -> None:
    code, out, err = run("bound", str(written(run.folder, rows())), *more)
    assert (code, out) == (2, "")
    assert err.startswith("lnkernel bound: ") and message in err


def test_no_such_file(run: Run) -> None:
    code, _, err = run("bound", "nowhere.csv", "--target", "y")
    assert code == 2 and "nowhere.csv: there is no such file. Correct its name" in err
    code, _, err = run("bound", str(run.folder), "--target", "y")
    assert code == 2 and "is a directory. Name a file in it." in err


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "file").write_text("x")
    out = ["--out", str(tmp_path / "file" / "inside")]
    assert cli.main(["kernel", "--x", "0", "1", "3", *out]) == 2
    assert "nothing can be written there. Name another place by --out." in capsys.readouterr().err


def test_no_text(run: Run) -> None:
    path = run.folder / "picture.csv"
    path.write_bytes(b"\x89PNG")
    code, _, err = run("bound", str(path), "--target", "y")
    assert code == 2 and "the byte 0x89 at place 0" in err and "codec" not in err


# ---------------------------------------------------------------- kernel


def kernel_matrix(folder: Path, how: str) -> Any:
    path = folder / "out" / f"kernel.{how}"
    return np.load(path)["matrix"] if how == "npz" else np.loadtxt(path, delimiter=",")


@pytest.mark.parametrize("how", ["npz", "csv"])
def test_kernel_of_points_on_a_line(how: str, run: Run) -> None:
    code, out, _ = run("kernel", "--x", "-2", "2", "9", "--arch", ARCH, "--format", how)
    assert code == 0 and "9 points in 1 dimension" in out
    assert (kernel_matrix(run.folder, how) == lnk.ntk(lnk.parse(ARCH))(X[:, None])).all()
    assert shows_something(run.folder / "out" / "kernel.png")


def test_kernel_of_a_file(run: Run) -> None:
    path = str(written(run.folder, "a,b,c\n1,2,3\n4,5,6\n"))
    asked = ("--csv", path, "--columns", "a,c", "--kernel", "nngp", "--arch", ARCH, "--json")
    code, out, _ = run("kernel", *asked)
    found = json.loads(out)
    x = [[1.0, 3.0], [4.0, 6.0]]
    assert code == 0 and found["x"] == x
    assert found["matrix"] == np.asarray(lnk.nngp(lnk.parse(ARCH))(x)).tolist()


def test_kernel_of_standard_input(run: Run, monkeypatch: Any) -> None:
    standard_input(monkeypatch, "a,b\n1,2\n4,5\n")
    code, out, err = run("kernel", "--csv", "-", "--arch", ARCH, "--json")
    assert code == 0, err
    assert json.loads(out)["x"] == [[1.0, 2.0], [4.0, 5.0]]


def test_kernel_of_half_a_point(run: Run) -> None:
    code, _, err = run("kernel", "--x", "0", "1", "2.5")
    assert code == 2 and "expected a whole number of points" in err
