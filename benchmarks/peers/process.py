"""A script of `inside/` as a process that stays up between calls, in its own environment."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from benchmarks.memory import growth, high_water

from .environment import Environment

INSIDE = Path(__file__).with_name("inside")
Arrays = dict[str, np.ndarray]


class PeerFailedError(RuntimeError):
    """A peer, or the process it runs in, failed."""


def command(environment: Environment, script: str, *arguments: str | Path) -> list[str]:
    """How a script of `inside/` is started."""
    options = ("-E", "-s")  # our PYTHONPATH is not for the peer
    return list(map(str, (environment.ensure(), *options, INSIDE / script, *arguments)))


class Peer:
    """One library in a process of its own; a context manager that ends the process.

    The first use on a machine builds the environment, which takes minutes.
    """

    environment: ClassVar[Environment]
    script: ClassVar[str]

    def __init__(self) -> None:
        start = command(self.environment, self.script, "--serve")
        self._files = tempfile.TemporaryDirectory()
        self._log = self.path("log.txt")
        with open(self._log, "w") as log:
            self._process = subprocess.Popen(
                start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )

    def ask(self, op: str, **request: Any) -> dict[str, Any]:
        """Send one request and return the reply to it."""
        requests, replies = self._process.stdin, self._process.stdout
        assert requests is not None and replies is not None  # both are pipes
        try:
            print(json.dumps({"op": op, **request}), file=requests, flush=True)
            line = replies.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            log = Path(self._log).read_text()
            raise PeerFailedError(f"the peer process ended:\n{log[-2000:]}")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise PeerFailedError(reply["error"])
        return reply

    def versions(self) -> dict[str, str]:
        """The versions of the libraries there."""
        return self.ask("versions")

    def peak(self, prepare: Callable[[], Any], call: Callable[[], Any]) -> int | None:
        """Bytes at the highest that one call takes beyond what came before it, if it is known.

        For a process that has done nothing else yet.
        """
        prepare()
        before = high_water(self._process.pid)
        call()
        return growth(before, high_water(self._process.pid))

    def path(self, name: str) -> str:
        """Where a file of this name goes; all are removed in the end."""
        return os.path.join(self._files.name, name)

    def write_arrays(self, name: str, **arrays: Any) -> str:
        """The path of a new file with these arrays."""
        np.savez(self.path(name), **arrays)
        return self.path(name)

    def read_arrays(self, name: str) -> Arrays:
        """The arrays of a file that the peer has written."""
        with np.load(self.path(name)) as arrays:
            return dict(arrays)

    def close(self) -> None:
        """End the process and remove its files."""
        try:
            self._process.communicate('{"op": "quit"}\n', timeout=30)
        except (OSError, ValueError, subprocess.TimeoutExpired):  # it is dead, or stuck
            self._process.kill()
            self._process.wait()
        self._files.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
