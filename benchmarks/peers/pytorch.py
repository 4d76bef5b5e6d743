"""Ask PyTorch to train networks, from our own Python.

    with Torch() as peer:
        reply = peer.train("start.npz", steps=3000, rate=1e-3, threads=1, how="fused")

PyTorch runs in a process and an environment of its own, `.venv-torch` at the root of the repository,
which holds what the extra `bench` of pyproject.toml asks for and is made at the first use.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Any, Self

from .environment import EnvironmentFailedError

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv-torch"
PYTHON = ENVIRONMENT / "bin" / "python"
STAMP = ENVIRONMENT / "requirements"
SERVER = Path(__file__).with_name("torch_training.py")


def ensure() -> Path:
    """The environment's Python, after building the environment if need be."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = project["optional-dependencies"]["bench"]
    wanted = "\n".join(requirements)
    if not (STAMP.exists() and STAMP.read_text() == wanted):
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        (ENVIRONMENT / ".gitignore").write_text("*\n")
        install = [str(PYTHON), "-m", "pip", "install", "--quiet", *requirements]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise EnvironmentFailedError(f"pip could not install {requirements}:\n{done.stderr}")
        STAMP.write_text(wanted)
    return PYTHON


class Torch:
    """PyTorch in a process of its own; a context manager that ends the process."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [str(ensure()), str(SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.version = self._reply()["torch"]
        return self

    def __exit__(self, *_: object) -> None:
        self._send({"quit": True})
        self._process.wait(timeout=60)

    def train(self, npz: Path, **request: Any) -> dict[str, Any]:
        """Seconds and final losses, or the error that it raised."""
        self._send({"npz": str(npz), **request})
        return self._reply()

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def _reply(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process of PyTorch has ended")
        return dict(json.loads(line))


if __name__ == "__main__":
    try:
        print(ensure())
    except EnvironmentFailedError as failure:
        sys.exit(f"error: {failure}")
