"""A script in a process of its own, without the checks of types that `conftest.py` installs.

They stand between a caller and the library, so that a warning there does not point at the caller.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def warned_lines(folder: Path, script: str, category: str) -> list[int]:
    """The lines of the script that warnings of this category point at."""
    path = folder / "script.py"
    path.write_text(script)
    command = [sys.executable, "-W", "always", str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    marks = [line.removeprefix(f"{path}:").split(": ") for line in said.splitlines()]
    return [int(place) for place, *rest in marks if rest and rest[0] == category]
