"""Checkpoints of a run, by Orbax: written as a whole or not at all, and only for the same run.

Orbax writes a checkpoint under a temporary name and renames it when it is complete, so that a
process that is killed leaves the last complete one. With it is stored what the run is: digests of
the data, of what network and optimizer compute, and of the start. Another run is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from orbax.checkpoint.checkpoint_managers import LatestN

from lnkernel.errors import CheckpointError
from lnkernel.finite.training.fingerprint import digest, optimizer_text, trace_text
from lnkernel.finite.training.program import Learner, TrainingState
from lnkernel.finite.watching.measured import Measured

Identity = dict[str, str]
START = "initial parameters"
ELSEWHERE = "Give another path, or delete this one to start anew"
NO_WATCH = "none"  # the identity of what is not watched
TAKEN = "measurements"  # how many there are, beside the identity


class Saved(NamedTuple):
    """A run after so many steps."""

    done: int
    state: TrainingState
    losses: np.ndarray  # (networks, done)
    measured: Measured | None = None  # by a watch


class Checkpoints:
    """The checkpoints of one run, in a folder of their own; only the latest is kept."""

    def __init__(self, path: Any, identity: Identity):
        self.path, self.identity = Path(path).expanduser().absolute(), identity
        if self.path.exists() and not self.path.is_dir():
            raise CheckpointError(self.path, "is a file, and a folder is needed", ELSEWHERE)
        options = ocp.CheckpointManagerOptions(
            preservation_policy=LatestN(1),
            cleanup_tmp_directories=True,
            enable_async_checkpointing=False,
        )
        self.manager = ocp.CheckpointManager(
            self.path, options=options, item_names=("state", "run")
        )

    def save(self, saved: Saved) -> None:
        if self.manager.latest_step() == saved.done:
            return
        tree = {"losses": saved.losses, **_arrays(saved.state), **_measured_arrays(saved.measured)}
        taken = 0 if saved.measured is None else len(saved.measured.steps)
        facts = self.identity | {TAKEN: str(taken)}
        arguments = ocp.args.Composite(
            state=ocp.args.StandardSave(tree), run=ocp.args.JsonSave(facts)
        )
        self.manager.save(saved.done, args=arguments, force=True)

    def latest(
        self, start: TrainingState, measurements: Callable[[int], Measured] | None = None
    ) -> Saved | None:
        """The last complete checkpoint, if there is one; it has to be of this run.

        `measurements` makes arrays of the shapes of so many measurements, of a run that is watched.
        """
        done = self.manager.latest_step()
        if done is None:
            return None
        facts = self._restore(done, run=ocp.args.JsonRestore()).run
        different = self._different(facts)
        if [name for name in different if name != START]:
            raise self._of_another_run(different)
        arrays = _arrays(start)
        networks = len(jax.tree.leaves(start.params)[0])
        template = {
            "losses": np.zeros((networks, done), jnp.result_type(*jax.tree.leaves(start.params))),
            **arrays,
        }
        empty = None if measurements is None else measurements(int(facts.get(TAKEN, 0)))
        template |= _measured_arrays(empty)
        found = self._restore(done, state=ocp.args.StandardRestore(template)).state
        measured = None if empty is None else _as_measured(found, empty)
        saved = Saved(done, _state(found, start), found["losses"], measured)
        if different and digest_of(saved.state.params) != digest_of(start.params):
            raise self._of_another_run(different)  # nor is the start where an earlier call stopped
        return saved

    def close(self) -> None:
        self.manager.close()

    def _restore(self, done: int, **items: Any) -> Any:
        try:
            return self.manager.restore(done, args=ocp.args.Composite(**items))
        except Exception as problem:  # of whatever kind: Orbax raises many
            raise CheckpointError(
                self.path, f"cannot be read at step {done} ({problem})", ELSEWHERE
            ) from problem

    def _different(self, found: Identity) -> list[str]:
        return [name for name, value in self.identity.items() if found.get(name, NO_WATCH) != value]

    def _of_another_run(self, different: list[str]) -> CheckpointError:
        others = ", ".join(f"other {name}" for name in different)
        return CheckpointError(self.path, f"was made by another run: {others}", ELSEWHERE)


def identity(learner: Learner, start: TrainingState, x: Any, y: Any, seeds: list[int]) -> Identity:
    """What makes a run this very run. The number of steps is no part of it: a run can go on."""
    one = jax.tree.map(lambda leaf: leaf[0], start)
    point = x[0, :1] if learner.own_data else x[:1]
    return {
        "data": digest(np.asarray(x), np.asarray(y)),
        "network": digest(trace_text(learner.outputs, one.params, one.rest, point)),
        "optimizer": digest(optimizer_text(learner.optimizer, one.params)),
        "batch size": str(learner.batches.size),
        "seeds": str(seeds),
        START: digest_of(start.params, start.rest),
    }


def digest_of(*trees: Any) -> str:
    return digest(*(np.asarray(_plain(leaf)) for leaf in jax.tree.leaves(trees)))


def _arrays(state: TrainingState) -> dict[str, np.ndarray]:
    """The state's leaves by number; Orbax does not store arrays without elements."""
    leaves = [np.asarray(_plain(leaf)) for leaf in jax.tree.leaves(state)]
    return {str(i): leaf for i, leaf in enumerate(leaves) if leaf.size}


def _state(arrays: dict[str, np.ndarray], like: TrainingState) -> TrainingState:
    leaves, structure = jax.tree.flatten(like)
    made = [
        _as_before(arrays[str(i)], leaf) if str(i) in arrays else leaf
        for i, leaf in enumerate(leaves)
    ]
    return jax.tree.unflatten(structure, made)


def _measured_arrays(measured: Measured | None) -> dict[str, np.ndarray]:
    if measured is None or not len(measured.steps):
        return {}
    values = enumerate(measured.values.values())
    return {f"{TAKEN} at": measured.steps} | {f"{TAKEN} {i}": np.asarray(one) for i, one in values}


def _as_measured(arrays: dict[str, np.ndarray], like: Measured) -> Measured:
    if not len(like.steps):
        return like
    values = {name: np.asarray(arrays[f"{TAKEN} {i}"]) for i, name in enumerate(like.values)}
    return Measured(np.asarray(arrays[f"{TAKEN} at"]), values)


def _plain(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _as_before(array: np.ndarray, like: Any) -> Any:
    if _is_key(like):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(like))
    return jnp.asarray(array)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
