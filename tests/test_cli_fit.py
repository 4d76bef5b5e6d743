"""`lnkernel fit`: predictions of a CSV file, on one machine and as several processes."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel import cli

RNG = np.random.default_rng(3)
X, NEW = RNG.normal(2.0, 3.0, size=(60, 2)), RNG.normal(size=(4, 2))
Y = 100 + 10 * np.sin(X[:, 0])
ARCH = "mlp(hidden=1, norm='first')"


def _write(path: Path, header: str, *columns: np.ndarray) -> Path:
    rows = "\n".join(",".join(map(repr, map(float, row))) for row in np.column_stack(columns))
    path.write_text(f"{header}\n{rows}\n")
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    data = _write(tmp_path / "data.csv", "a,b,y", X, Y)
    new = _write(tmp_path / "new.csv", "b,c,a", NEW[:, 1], NEW[:, 0] * 0, NEW[:, 0])
    common = (
        f"fit {data} --target y --predict {new} --out {tmp_path / 'p.csv'} --noise 4 --standardise"
    )
    return [*common.split(), "--arch", ARCH]


def _read(files: list[str]) -> np.ndarray:
    path = Path(files[files.index("--out") + 1])
    return np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)


def _expected() -> tuple[np.ndarray, np.ndarray]:
    middle, spread, centre, unit = X.mean(axis=0), X.std(axis=0), Y.mean(), Y.std()
    post = lnk.posterior(
        lnk.parse(ARCH), (X - middle) / spread, (Y - centre) / unit, noise=4 / unit**2
    )
    new = (NEW - middle) / spread
    return centre + unit * post.mean(new), unit * post.std(new)


def test_predictions_in_the_units_of_the_file(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*files, "--std"]) == 0
    mean, std = _expected()
    np.testing.assert_allclose(_read(files), np.column_stack([mean, std]), rtol=1e-12)
    assert "4 predictions: " in capsys.readouterr().out


def test_a_tolerance_in_the_units_of_the_file(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extra = ["--tolerance", "0.5", "--rank", "5", "--tiles", str(tmp_path / "tiles"), "--json"]
    assert cli.main([*files, *extra]) == 0
    error = json.loads(capsys.readouterr().out)["error"]
    off = np.abs(_read(files)[:, 0] - _expected()[0]).max()
    assert off <= error <= 0.5
    assert any((tmp_path / "tiles").iterdir())


@pytest.mark.parametrize("option", ["data", "--predict"])
def test_one_file_is_standard_input(
    option: str, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = 1 if option == "data" else files.index(option) + 1
    text = Path(files[place]).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert cli.main([*files[:place], "-", *files[place + 1 :]]) == 0
    np.testing.assert_allclose(_read(files)[:, 0], _expected()[0], rtol=1e-12)


def test_wrong_use(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*files, "--rank", "5"]) == 2
    assert "--rank: expected --tolerance with it" in capsys.readouterr().err
    assert cli.main(["fit", "-", *files[2:], "--predict", "-"]) == 2
    assert "--predict: expected a file that is not that of the data" in capsys.readouterr().err
    assert cli.main([*files, "--coordinator", "127.0.0.1:1"]) == 2
    assert "expected coordinator, processes and process together" in capsys.readouterr().err


@pytest.mark.slow
def test_as_two_processes(files: list[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "lnkernel.cli", *files, "--coordinator", f"127.0.0.1:{port}"]
    running = [
        subprocess.Popen([*command, "--processes", "2", "--process", str(i)]) for i in range(2)
    ]
    assert [process.wait(300) for process in running] == [0, 0]
    np.testing.assert_allclose(_read(files)[:, 0], _expected()[0], rtol=1e-12)
