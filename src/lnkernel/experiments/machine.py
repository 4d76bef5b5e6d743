"""Versions and hardware, for the record."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

from lnkernel.version import __version__

LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "flax", "optax", "matplotlib", "python-flint")
OPTIONAL = ("scikit-learn", "torch", "torchvision", "xgboost", "xgboost-cpu")


def versions() -> dict[str, str]:
    """The versions of lnkernel, Python and the libraries that results depend on, as far as they are installed.

    >>> sorted(versions())[:3]
    ['flax', 'jax', 'jaxlib']
    """
    found = {name: importlib.metadata.version(name) for name in LIBRARIES}
    for name in OPTIONAL:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return {"lnkernel": __version__, "python": platform.python_version(), **found}


def hardware() -> dict[str, Any]:
    """The processor, how many cores this process may use, and JAX's devices.

    >>> sorted(hardware())
    ['cores', 'devices', 'platform', 'processor']
    """
    import jax

    allowed = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return {
        "platform": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(allowed(0)) if allowed else os.cpu_count(),
        "devices": [device.device_kind for device in jax.devices()],
    }


def _processor() -> str:
    """Its name, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
