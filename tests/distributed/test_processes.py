"""One program in several processes on this machine, each with two virtual devices."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import jax
import pytest

import lnkernel as lnk
from lnkernel.errors import InputError

SCRIPT = Path(__file__).with_name("one_of_many.py")


def start(task: str, processes: int, folder: Path) -> list[tuple[int, str, str]]:
    """The exit codes of all processes, and what they said."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(SCRIPT), task, f"127.0.0.1:{port}", str(processes)]
    running = [
        subprocess.Popen(
            [*command, str(i), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(processes)
    ]
    try:
        said = [process.communicate(timeout=600) for process in running]
    finally:
        for process in running:
            process.kill()
    return [(p.returncode, _own(out), err) for p, (out, err) in zip(running, said, strict=True)]


def _own(said: str) -> str:
    """Without what gloo prints of its connections, from several threads, so that its lines may be torn apart."""
    of_gloo = "[Gloo]", "peer ranks"
    lines = said.splitlines(keepends=True)
    return "".join(line for line in lines if not any(words in line for words in of_gloo))


def run(task: str, processes: int, folder: Path) -> list[str]:
    """What the processes printed; all of them have to come through."""
    done = start(task, processes, folder)
    for code, _, complaint in done:
        assert code == 0, complaint
    return [out for _, out, _ in done]


def test_two_processes_agree_with_one(tmp_path: Path) -> None:
    said = run("agree", 2, tmp_path)
    assert said[0].startswith("mean ") and said[0] == said[1]


@pytest.mark.slow
def test_four_processes_agree_with_one(tmp_path: Path) -> None:
    assert len(set(run("agree", 4, tmp_path))) == 1


@pytest.mark.slow
def test_other_data_or_another_mesh_are_refused(tmp_path: Path) -> None:
    assert run("refuse", 3, tmp_path) == ["refused\n"] * 3


@pytest.mark.slow
def test_unequal_hosts_are_refused(tmp_path: Path) -> None:
    for code, _, complaint in start("unequal", 2, tmp_path):
        assert code != 0 and "hosts: expected equal ones, as process 0 (2 devices)" in complaint


@pytest.mark.slow
def test_a_killed_process_ends_the_others_and_the_next_run_goes_on(tmp_path: Path) -> None:
    began = time.monotonic()
    (code, _, complaint), (killed, _, _) = start("die", 2, tmp_path)
    assert (
        killed == -9 and code == -6
    )  # JAX itself ends the other one, after ten seconds of silence
    assert "unhealthy (stopped sending heartbeats):\n1\n" in complaint
    assert time.monotonic() - began < 120  # 60 after the kill, and the start of both
    said = run("resume", 2, tmp_path)
    assert "computed" in said[0] and " 0" not in said[0] and " 0" not in said[1]


@pytest.mark.slow
def test_a_killed_process_is_told_to_one_that_waits_for_it(tmp_path: Path) -> None:
    """Gloo gives up after 30 seconds, before the 60 of the heartbeats are over."""
    (code, _, complaint), (killed, _, _) = start("lose", 2, tmp_path)
    assert killed == -9 and code != 0
    assert "lnkernel.errors.LostProcessError: process 0 of 2: expected all of them" in complaint


def test_arguments_of_initialize(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="processes: expected coordinator, processes and process"):
        lnk.distributed.initialize("127.0.0.1:1", process=0)
    for said, error, text in (
        ("must be called before any JAX calls", RuntimeError, "initialize: expected to be called"),
        ("DEADLINE_EXCEEDED: Barrier timed out", RuntimeError, "all 2 processes within 300 s"),
        ("coordinator_address should be defined.", ValueError, "or a launcher that JAX knows"),
    ):

        def fail(
            *_: object, said: str = said, error: type[Exception] = error, **__: object
        ) -> None:
            raise error(said)

        monkeypatch.setattr(jax.distributed, "initialize", fail)
        with pytest.raises(InputError, match=text):
            lnk.distributed.initialize("127.0.0.1:1", 2, 0)
