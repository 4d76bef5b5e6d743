"""A script: kernel matrices over eight virtual devices of a CPU, beside those of one. It prints what was checked."""

from __future__ import annotations

import jax

jax.config.update("jax_num_cpu_devices", 8)

import numpy as np  # noqa: E402  # after the number of devices is said, as in all that follows
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

import lnkernel as lnk  # noqa: E402
from lnkernel.gram import sharded  # noqa: E402

ARCH = lnk.mlp(hidden=1, norm="first")
RNG = np.random.default_rng(0)
X, X2 = RNG.normal(size=(240, 3)), RNG.normal(size=(160, 3))
DEVICES = np.array(jax.devices())


def compare(layout: object, one: np.ndarray, two: np.ndarray | None, at_most: float) -> None:
    """A matrix over devices has the numbers of the whole one, in the places that the layout says."""
    expected = lnk.ntk(ARCH)(one, two)
    found = lnk.ntk(ARCH)(one, two, sharding=layout)
    assert isinstance(found, jax.Array) and found.dtype == np.float64
    assert found.sharding == sharded.as_sharding(layout)
    assert np.abs(np.asarray(found) - expected).max() <= at_most
    for part in found.addressable_shards:
        assert np.abs(np.asarray(part.data) - expected[part.index]).max() <= at_most


for count in (1, 2, 4, 8):
    mesh = Mesh(DEVICES[:count], ("rows",))
    compare(mesh, X, None, 1e-14)
    compare(NamedSharding(mesh, PartitionSpec(None, "rows")), X, X2, 1e-14)
    compare(NamedSharding(mesh, PartitionSpec()), X, X2, 1e-14)  # a copy on every device
grid = Mesh(DEVICES.reshape(4, 2), ("rows", "columns"))
compare(grid, X, None, 1e-14)
both = lnk.kernels(ARCH)(X, X2, sharding=grid)
assert both.nngp.sharding == both.ntk.sharding
sharded.HOSTS = ()  # as on an accelerator: all is computed on the devices
compare(grid, X[:40], X2[:16], 1e-13)
print("the same on 1, 2, 4 and 8 devices")
