"""The virtual environments of the peers: made when missing, or when what they hold has changed.

    python3.11 benchmarks/peers/environment.py [neural-tangents] [gpjax] [torch] [laplace] [gpytorch]

builds those that are named, all without names, and prints the path of each one's Python.
Standard library only.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class EnvironmentFailedError(RuntimeError):
    """A peer environment cannot be made; the message says why."""


@dataclass(frozen=True)
class Environment:
    """A folder at the root of the repository, and the file of what pip installs there."""

    folder: str
    requirements: str
    python_version: tuple[int, int] | None = None  # the version that its pinned wheels are for
    without: tuple[str, ...] = ()  # packages that come along, and are taken out again

    @property
    def path(self) -> Path:
        return ROOT / self.folder

    @property
    def python(self) -> Path:
        return self.path / "bin" / "python"

    @property
    def file(self) -> Path:
        return HERE / self.requirements

    def is_current(self) -> bool:
        """Whether it is complete and made from these very requirements."""
        return (
            self.python.exists()
            and self._stamp.exists()
            and self._stamp.read_text() == self._fingerprint
        )

    def ensure(self) -> Path:
        """The path of its Python, after building it if need be."""
        if not self.is_current():
            self._build()
            self._stamp.write_text(self._fingerprint)
        return self.python

    @property
    def _stamp(self) -> Path:
        return self.path / "requirements.sha256"

    @property
    def _fingerprint(self) -> str:
        return hashlib.sha256(self.file.read_bytes()).hexdigest()

    def _build(self) -> None:
        """Make it anew from the running Python."""
        if self.python_version not in (None, sys.version_info[:2]):
            raise EnvironmentFailedError(
                f"{self.folder} is pinned for Python {_dotted(self.python_version)}, and this is "
                f"{_dotted(sys.version_info[:2])}. Build it once with "
                f"`python{_dotted(self.python_version)} benchmarks/peers/environment.py`; "
                "any Python can use it afterwards."
            )
        venv.create(self.path, clear=True, with_pip=True)
        (self.path / ".gitignore").write_text("*\n")
        self._pip("install", "-r", str(self.file))
        if self.without:
            self._pip("uninstall", "--yes", *self.without)

    def _pip(self, action: str, *arguments: str) -> None:
        line = [str(self.python), "-m", "pip", action, "--quiet", *arguments]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise EnvironmentFailedError(f"pip could not {action} {self.file}:\n{done.stderr}")


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


# neural-tangents: its jaxlib 0.4.23 has no wheels from Python 3.13 on
NEURAL_TANGENTS = Environment(".venv-peers", "neural_tangents.txt", (3, 11))
GPJAX = Environment(".venv-gpjax", "gpjax.txt")
TORCH = Environment(".venv-torch", "torch.txt")
# laplace-torch: a torchvision comes along that is for another build of PyTorch than the one for
# processors alone; nothing here uses it, but what finds it imports it, and fails
LAPLACE = Environment(".venv-laplace", "laplace.txt", without=("torchvision",))
GPYTORCH = Environment(".venv-gpytorch", "gpytorch.txt")
BY_NAME = {
    "neural-tangents": NEURAL_TANGENTS,
    "gpjax": GPJAX,
    "torch": TORCH,
    "laplace": LAPLACE,
    "gpytorch": GPYTORCH,
}


def main(names: list[str]) -> int:
    """Build the environments of these names; the exit code."""
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        print(
            f"error: no peer {', '.join(unknown)}; there are {', '.join(BY_NAME)}", file=sys.stderr
        )
        return 2
    try:
        for name in names or BY_NAME:
            print(BY_NAME[name].ensure())
    except EnvironmentFailedError as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
