"""A script: networks over virtual devices of a CPU, beside those of one. It prints what was checked."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import numpy as np
from jax.sharding import Mesh

import lnkernel as lnk
from lnkernel.errors import InputError

ARCH = lnk.mlp(hidden=1, norm="first", width=8)
X = np.linspace(-1, 1, 12)[:, None]
Y, NEW = np.sin(3 * X[:, 0]), [[0.5], [3.0]]


def train(steps: int, **options: object) -> lnk.finite.Ensemble:
    return lnk.finite.train_ensemble(
        ARCH, X, Y, seeds=8, steps=steps, dtype=np.float64, progress=False, **options
    )


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    devices, one = np.array(jax.devices()), train(20)
    many = train(20, sharding=Mesh(devices, ("seeds",)))
    # in another order of summation, after 20 steps of Adam
    assert np.abs(many(NEW) - one(NEW)).max() < 1e-9
    assert np.abs(many.losses - one.losses).max() < 1e-9
    assert len(jax.tree.leaves(many._state.params)[0].sharding.device_set) == 8
    checkpoint = Path(sys.argv[1])
    mesh = Mesh(devices[:4].reshape(2, 2), ("a", "b"))
    train(10, sharding=mesh, checkpoint=checkpoint, checkpoint_every=5)
    on = train(20, sharding=mesh, checkpoint=checkpoint, checkpoint_every=5)
    assert np.abs(on(NEW) - one(NEW)).max() < 1e-9
    try:
        train(2, sharding=Mesh(devices[:3], ("seeds",)))
    except InputError as problem:
        assert "seeds: expected a multiple of the 3 devices" in str(problem)
    else:
        raise AssertionError("no error")
    print("the same on 1, 4 and 8 devices")


if __name__ == "__main__":
    main()
