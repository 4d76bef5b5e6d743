"""A script: kernel matrices over eight virtual devices of a CPU, beside those of one. It prints what was checked."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import lnkernel as lnk
from lnkernel.gram import sharded

ARCH = lnk.mlp(hidden=1, norm="first")
RNG = np.random.default_rng(0)
X, X2 = RNG.normal(size=(240, 3)), RNG.normal(size=(160, 3))


def compare(layout: object, one: np.ndarray, two: np.ndarray | None, at_most: float) -> None:
    """A matrix over devices has the numbers of the whole one, in the places that the layout says."""
    expected = lnk.ntk(ARCH)(one, two)
    found = lnk.ntk(ARCH)(one, two, sharding=layout)
    assert isinstance(found, jax.Array) and found.dtype == np.float64
    assert found.sharding == sharded.as_sharding(layout)
    assert np.abs(np.asarray(found) - expected).max() <= at_most
    for part in found.addressable_shards:
        assert np.abs(np.asarray(part.data) - expected[part.index]).max() <= at_most


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    devices = np.array(jax.devices())
    for count in (1, 2, 4, 8):
        mesh = Mesh(devices[:count], ("rows",))
        compare(mesh, X, None, 1e-14)
        compare(NamedSharding(mesh, PartitionSpec(None, "rows")), X, X2, 1e-14)
        compare(NamedSharding(mesh, PartitionSpec()), X, X2, 1e-14)  # a copy on every device
    grid = Mesh(devices.reshape(4, 2), ("rows", "columns"))
    compare(grid, X, None, 1e-14)
    both = lnk.kernels(ARCH)(X, X2, sharding=grid)
    assert both.nngp.sharding == both.ntk.sharding
    sharded.HOSTS = ()  # as on an accelerator: all is computed on the devices
    compare(Mesh(devices[:2], ("rows",)), X[:40], X2[:16], 1e-13)
    print("the same on 1, 2, 4 and 8 devices")


if __name__ == "__main__":
    main()
