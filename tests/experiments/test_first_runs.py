"""The first quick run of an experiment takes under a minute."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lnkernel.datasets import locate, proteins

ROWS, LIMIT = 45_730, 60.0


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The folder that LNKERNEL_DATA names, or one with numbers of the same size."""
    found = os.environ.get(locate.VARIABLE)
    if found and any((Path(found) / name).is_file() for name in proteins.NAMES):
        return Path(found)
    draw = np.random.default_rng(0)
    x = draw.gamma(5.0, 1_900.0, (ROWS, 9))  # of F1 2 % are 20,000 or more, as there
    table = np.column_stack([np.sin(x[:, 0] / 3_000) + x[:, 1] / 10_000, x])
    file = tmp_path / "CASP.csv"
    header = ",".join(proteins.HEADER)
    np.savetxt(file, table, fmt="%.6g", delimiter=",", header=header, comments="")
    return file


@pytest.mark.slow
@pytest.mark.parametrize("name", ["toy", "heatmaps", "protein"])
def test_under_a_minute(name: str, tmp_path: Path, data: Path) -> None:
    """Of processor time: what else the machine does is not counted, and two cores count twice."""
    command = [sys.executable, "-m", "lnkernel.cli", "reproduce", name, "--quick"]
    command += ["--out", str(tmp_path / name)]
    if name == "protein" and data.is_file():
        command += ["--data", str(data)]
    before = os.times()
    subprocess.run(command, check=True, env=os.environ | {locate.VARIABLE: str(data)})
    after = os.times()
    user = after.children_user - before.children_user
    assert user + after.children_system - before.children_system < LIMIT
