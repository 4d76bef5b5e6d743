"""Kernel matrices over several devices; those of a CPU are virtual, and take a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

import lnkernel as lnk
from lnkernel.errors import InputError, KernelOverflowError, TransformationError

THETA = lnk.ntk(lnk.mlp(hidden=1))
X = np.arange(6.0)[:, None]


def test_the_same_numbers_over_many_devices() -> None:
    script = Path(__file__).with_name("over_devices.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "the same on 1, 2, 4 and 8 devices\n"


def test_layouts_that_are_none() -> None:
    mesh = Mesh(np.array(jax.devices()[:1]).reshape(1, 1, 1), ("a", "b", "c"))
    with pytest.raises(InputError, match="a mesh with one axis or two, for rows and columns"):
        THETA(X, sharding=mesh)
    with pytest.raises(InputError, match=r"a jax.sharding.Sharding or Mesh, got int"):
        THETA(X, sharding=4)  # type: ignore[arg-type]  # what a user might give


def test_it_takes_plain_numbers_in_the_range_of_float64() -> None:
    mesh = Mesh(np.array(jax.devices()[:1]), ("rows",))
    with pytest.raises(TransformationError), jax.enable_x64(True):
        jax.jit(lambda x: THETA(x, sharding=mesh))(X)
    with pytest.raises(KernelOverflowError):
        lnk.ntk(lnk.mlp(hidden=3, activation=lnk.RectifiedPower(3.0)))(X * 1e100, sharding=mesh)
