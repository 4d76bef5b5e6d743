"""Runs that are stopped, by whatever cause, and go on to the same result, bit for bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import interrupted_run
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from interrupted_run import EVERY, STEPS, X, Y, ensemble

import lnkernel as lnk
from lnkernel.errors import CheckpointError, TrainingInterrupted
from lnkernel.progress import Bar

FAR = np.array([[0.3], [5.0], [-40.0]])


@pytest.fixture(scope="module")
def uninterrupted() -> Any:
    return ensemble()


def assert_same(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(one.losses, other.losses)
    np.testing.assert_array_equal(one.loss, other.loss)
    np.testing.assert_array_equal(one(FAR), other(FAR))


def complete(folder: Path) -> list[int]:
    return sorted(int(entry.name) for entry in folder.iterdir() if entry.name.isdigit())


def killed(folder: Path, moment: str) -> None:
    script = Path(interrupted_run.__file__)
    done = subprocess.run([sys.executable, str(script), str(folder), moment], check=False)
    assert done.returncode == -signal.SIGKILL


def test_killed_while_it_writes(uninterrupted: Any, tmp_path: Path) -> None:
    killed(tmp_path / "run", "write")
    assert complete(tmp_path / "run")[-1] < STEPS
    began = complete(tmp_path / "run")[-1]
    calls = []
    resumed = lnk.finite.training.run.TrainingRun.resume

    def spied(run: Any, saved: Any) -> None:
        calls.append(saved.done)
        resumed(run, saved)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lnk.finite.training.run.TrainingRun, "resume", spied)
        assert_same(ensemble(tmp_path / "run"), uninterrupted)
    assert calls == [began]  # it went on, and did not start anew
    assert complete(tmp_path / "run") == [STEPS]
    assert [entry.name for entry in (tmp_path / "run").iterdir() if "tmp" in entry.name] == []


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["0", "0.003", "0.01", "0.02", "0.05", "0.1"])
def test_killed_at_any_moment(uninterrupted: Any, tmp_path: Path, moment: str) -> None:
    killed(tmp_path / "run", moment)
    assert_same(ensemble(tmp_path / "run"), uninterrupted)


def test_a_run_goes_on_step_by_step(uninterrupted: Any, tmp_path: Path) -> None:
    """Also beyond its first end, and a finished one returns at once."""
    for steps in (1, 2, 250, STEPS, STEPS):
        last = ensemble(tmp_path, steps=steps)
    assert_same(last, uninterrupted)


@pytest.fixture
def heard() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also where whoever started these tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
def test_interrupted_by_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real SIGINT leaves the network, the exception and the checkpoint with what was done."""

    def run(net: Any, steps: int, checkpoint: Any) -> Any:
        return lnk.finite.train(
            net, X, Y, optax.adam(1e-3), steps, 4, checkpoint=checkpoint, checkpoint_every=10**7
        )

    arch = lnk.mlp(hidden=1, width=16)
    start, net = (lnk.finite.network(arch, 1, rngs=0) for _ in range(2))
    run(lnk.finite.network(arch, 1, rngs=0), 1, None)  # compiled
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    update = Bar.update

    def under_way(bar: Bar, steps: int, said: str) -> None:
        """Whoever interrupts waits for the first steps, however busy the machine is."""
        update(bar, steps, said)
        if timer.ident is None:
            timer.start()

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt) as caught:
        patch.setattr(Bar, "update", under_way)
        run(net, 10**6, tmp_path)
    timer.join()
    assert isinstance(caught.value, TrainingInterrupted)
    done = caught.value.done
    assert 0 < done < 10**6
    assert caught.value.result.network is net
    assert caught.value.result.losses.shape == (done,)
    assert complete(tmp_path) == [done]
    result = run(net, done + 50, tmp_path)  # in the state in which the interrupt left it
    expected = run(start, done + 50, None)
    np.testing.assert_array_equal(result.losses, expected.losses)
    np.testing.assert_array_equal(net(FAR), start(FAR))


def test_an_interrupted_ensemble_is_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(lnk.finite.training.run.Bar, "update", interrupt)
    with pytest.raises(TrainingInterrupted, match="after 1 steps") as caught:
        ensemble()
    assert caught.value.result(FAR).shape == (2, 3, 1)
    assert np.isnan(caught.value.result.loss).all()  # it was not computed


OTHERS = {
    "data": {"y": -Y},
    "network": {"arch": lnk.mlp(hidden=1, width=16, norm="first", b_std=0.2)},
    "optimizer": {"optimizer": optax.adam(0.01)},
    "batch size": {"batch_size": 5},
    "seeds": {"seeds": [4, 3]},
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_run_is_refused(name: str, tmp_path: Path) -> None:
    ensemble(tmp_path, steps=2)
    before = complete(tmp_path)
    with pytest.raises(CheckpointError, match=f"made by another run: other {name}"):
        ensemble(tmp_path, steps=4, **OTHERS[name])
    assert complete(tmp_path) == before == [2]
    with pytest.raises(CheckpointError, match="is at step 2, beyond steps=1"):
        ensemble(tmp_path, steps=1)


def test_another_start_is_refused(tmp_path: Path) -> None:
    def run(seed: int, steps: int) -> Any:
        net = lnk.finite.network(lnk.mlp(hidden=1, width=16), 1, rngs=seed)
        return lnk.finite.train(net, X, Y, optax.adam(1e-3), steps, checkpoint=tmp_path)

    run(0, 3)
    run(0, 5)
    with pytest.raises(CheckpointError, match="other initial parameters"):
        run(1, 7)


def test_random_keys_and_statistics_are_kept(tmp_path: Path) -> None:
    def run(steps: int, checkpoint: Any) -> Any:
        rngs = nnx.Rngs(0)
        layers = [nnx.Linear(1, 8, rngs=rngs), nnx.BatchNorm(8, rngs=rngs)]
        net = nnx.Sequential(*layers, nnx.Dropout(0.3, rngs=rngs), nnx.Linear(8, 1, rngs=rngs))
        lnk.finite.train(net, X, Y, optax.adam(1e-3), steps, checkpoint=checkpoint)
        return net

    run(3, tmp_path)
    resumed, whole = (jax.tree.leaves(nnx.state(run(8, c))) for c in (tmp_path, None))
    for one, other in zip(resumed, whole, strict=True):
        is_key = jnp.issubdtype(one.dtype, jax.dtypes.prng_key)
        one, other = map(jax.random.key_data, (one, other)) if is_key else (one, other)
        np.testing.assert_array_equal(one, other)


def test_double_precision_is_kept(tmp_path: Path) -> None:
    whole = ensemble(steps=6, dtype=jnp.float64)
    ensemble(tmp_path, steps=3, dtype=jnp.float64)
    assert_same(ensemble(tmp_path, steps=6, dtype=jnp.float64), whole)


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="is a file, and a folder is needed"):
        ensemble(tmp_path / "file", steps=2)
    ensemble(tmp_path / "run", steps=2)
    for damaged in (tmp_path / "run" / "2" / "run").iterdir():
        damaged.write_text("nothing")
    with pytest.raises(CheckpointError, match="cannot be read at step 2"):
        ensemble(tmp_path / "run", steps=4)


def test_interval(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    saved = []
    save = lnk.finite.training.checkpoint.Checkpoints.save

    def spied(checkpoints: Any, what: Any) -> None:
        saved.append(what.done)
        save(checkpoints, what)

    monkeypatch.setattr(lnk.finite.training.checkpoint.Checkpoints, "save", spied)
    ensemble(tmp_path, steps=350)
    assert saved == [EVERY, 2 * EVERY, 3 * EVERY, 350]
