"""Make the virtual environment of the peer library, and say where its Python is.

    python3.11 benchmarks/peers/environment.py

It builds `.venv-peers` at the root of the repository when it is missing or when
`requirements.txt` has changed, and prints the path of its Python. Standard library only.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
ENVIRONMENT = Path(__file__).resolve().parents[2] / ".venv-peers"
PYTHON = ENVIRONMENT / "bin" / "python"
STAMP = ENVIRONMENT / "requirements.sha256"
NEEDED_PYTHON = (3, 11)


class EnvironmentFailedError(RuntimeError):
    """The peer environment cannot be made; the message says why."""


def ensure() -> Path:
    """The path of the environment's Python, after building the environment if need be."""
    fingerprint = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if not is_current(fingerprint):
        build()
        STAMP.write_text(fingerprint)
    return PYTHON


def is_current(fingerprint: str) -> bool:
    """Whether the environment is complete and made from these very requirements."""
    return PYTHON.exists() and STAMP.exists() and STAMP.read_text() == fingerprint


def build() -> None:
    """Make the environment anew from the running Python."""
    if sys.version_info[:2] != NEEDED_PYTHON:
        raise EnvironmentFailedError(
            "the peer environment is pinned for Python 3.11 (its jaxlib 0.4.23 has no wheels "
            f"from 3.13 on), and this is {sys.version_info.major}.{sys.version_info.minor}. "
            "Build it once with `python3.11 benchmarks/peers/environment.py`; "
            "any Python can use it afterwards."
        )
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    (ENVIRONMENT / ".gitignore").write_text("*\n")
    install = [str(PYTHON), "-m", "pip", "install", "--quiet", "-r", str(REQUIREMENTS)]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentFailedError(f"pip could not install the requirements:\n{done.stderr}")


if __name__ == "__main__":
    try:
        print(ensure())
    except EnvironmentFailedError as failure:
        sys.exit(f"error: {failure}")
