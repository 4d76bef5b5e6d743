"""A peer's process and environment, with a script of a few lines instead of a library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import lnkernel as lnk
from benchmarks.peers import environment, process
from benchmarks.peers.environment import Environment, EnvironmentFailedError
from benchmarks.peers.kernel_peer import GPJax, KernelPeer, NeuralTangents

SCRIPT = f"""
import sys
sys.path.insert(0, {str(process.INSIDE)!r})
import protocol

def fail():
    print("noise on stdout")
    raise ValueError("no such thing")

def end():
    print("last words", file=sys.stderr)
    raise SystemExit(3)

protocol.serve({{"square": lambda number: {{"result": number**2}}, "fail": fail, "end": end}})
"""


class Here(Environment):
    """The running Python: nothing is built."""

    def ensure(self) -> Path:
        return Path(sys.executable)


class Fake(process.Peer):
    environment: ClassVar[Environment] = Here("nowhere", "none.txt")
    script: ClassVar[str]


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Fake]:
    path = tmp_path / "fake.py"
    path.write_text(SCRIPT)
    monkeypatch.setattr(Fake, "script", str(path), raising=False)
    return Fake


def test_questions_and_answers(peer: type[Fake]) -> None:
    with peer() as fake:
        assert fake.ask("square", number=3) == {"result": 9}
        with pytest.raises(process.PeerFailedError, match="ValueError: no such thing"):
            fake.ask("fail")
        with pytest.raises(process.PeerFailedError, match="unknown op 'fly'"):
            fake.ask("fly")
        assert fake.ask("square", number=-1) == {"result": 1}
        saved = fake.write_arrays("some.npz", x=np.arange(3))
        assert list(fake.read_arrays("some.npz")["x"]) == [0, 1, 2]
    assert not Path(saved).exists()


def test_a_process_that_ends(peer: type[Fake]) -> None:
    with peer() as fake, pytest.raises(process.PeerFailedError, match="last words"):
        fake.ask("end")


def test_another_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    old = Environment(".venv-old", "neural_tangents.txt", (3, 4))
    assert not old.is_current()
    with pytest.raises(EnvironmentFailedError, match=r"pinned for Python 3.4.*`python3.4 bench"):
        old.ensure()


def test_environments_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert environment.main(["jax"]) == 2
    assert "no peer jax; there are neural-tangents" in capsys.readouterr().err
    monkeypatch.setitem(environment.BY_NAME, "gpjax", Here("nowhere", "none.txt"))
    assert environment.main(["gpjax"]) == 0
    assert capsys.readouterr().out.strip() == sys.executable


def test_requirements_are_pinned() -> None:
    for each in environment.BY_NAME.values():
        lines = [line for line in each.file.read_text().splitlines() if line[:1] not in ("", "#")]
        assert lines and [line for line in lines if "==" not in line] == []


# ---------------------------------------------------------------- with the peers themselves

ARCH = lnk.serial(lnk.Dense(8, W_std=1.3, b_std=0.2), lnk.Relu())


@pytest.mark.slow
@pytest.mark.parametrize("library", [NeuralTangents, GPJax])
def test_file_in_file_out(library: type[KernelPeer]) -> None:
    """The command on its own says what the process that stays up says."""
    x, x2 = np.random.default_rng(0).normal(size=(2, 5, 3))
    once = library.once(ARCH, x, x2, y=x[:, 0], repeats=2)
    assert once["warm"].shape == (2,) and once["first"] > 0
    np.testing.assert_allclose(once["nngp"], lnk.nngp(ARCH)(x, x2), rtol=1e-12, atol=1e-14)
    with library() as peer:
        peer.load(ARCH, x, x2)
        np.testing.assert_array_equal(peer.kernels()["nngp"], once["nngp"])
    if library is NeuralTangents:
        expected = lnk.posterior(ARCH, x, x[:, 0]).mean(x2)
        # its Θ is off by 1e-8 on the diagonal, which the inverse of five points makes larger
        np.testing.assert_allclose(once["mean"], expected, atol=1e-6)
