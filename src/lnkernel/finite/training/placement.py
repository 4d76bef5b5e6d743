"""Networks of an ensemble over several devices: each device trains its own, and they do not talk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from lnkernel.errors import InputError
from lnkernel.gram.sharded import Layout, as_sharding

AXIS = "networks"


@dataclass(frozen=True)
class Placement:
    """Where arrays with the networks along their first axis are, and those that all share."""

    mesh: Mesh

    def of_networks(self, tree: Any) -> Any:
        return jax.device_put(tree, NamedSharding(self.mesh, PartitionSpec(AXIS)))

    def of_all(self, tree: Any) -> Any:
        return jax.device_put(tree, NamedSharding(self.mesh, PartitionSpec()))


def placement(layout: Layout | None, networks: int) -> Placement | None:
    """All devices that are named, in whatever shape they stand; None without a layout."""
    if layout is None:
        return None
    devices: list[Any] = sorted(as_sharding(layout).device_set, key=lambda device: device.id)
    others = [device for device in devices if device.process_index != jax.process_index()]
    if others:
        raise InputError(
            "sharding",
            "devices of this process, because an ensemble is trained by one",
            f"{len(others)} of other processes",
            "Take a mesh of jax.local_devices(), and other seeds in each process",
        )
    if networks % len(devices):
        raise InputError(
            "seeds",
            f"a multiple of the {len(devices)} devices, so that each trains equally many networks",
            f"{networks} networks",
            "Train some more, or take fewer devices",
        )
    return Placement(Mesh(np.array(devices), (AXIS,)))
