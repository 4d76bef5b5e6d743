"""Ensembles over several devices; those of a CPU are virtual, and take a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_same_networks_over_many_devices(tmp_path: Path) -> None:
    script = Path(__file__).with_name("ensemble_over_devices.py")
    command = [sys.executable, str(script), str(tmp_path / "checkpoint")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "the same on 1, 4 and 8 devices\n"
