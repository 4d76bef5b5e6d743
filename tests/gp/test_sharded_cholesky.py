"""Posteriors over several devices; those of a CPU are virtual, and take a process of their own."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

import lnkernel as lnk
from lnkernel.errors import TransformationError
from lnkernel.gp import floor, rounds, strips
from lnkernel.gp import sharded_cholesky as sharded_cholesky_module
from lnkernel.gp.packed import GramRows
from lnkernel.gp.sharded_cholesky import sharded_cholesky
from lnkernel.gp.spectrum import Eigenvalue

ARCH = lnk.mlp(hidden=1, norm="first")
ONE = Mesh(np.array(jax.devices()[:1]), ("rows",))
X = np.random.default_rng(1).normal(size=(70, 3))


def test_the_same_posterior_over_many_devices() -> None:
    script = Path(__file__).with_name("posterior_over_devices.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "the same on 1, 2, 4 and 8 devices\n"


def test_each_operation_beside_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strips, "GROUP", 25)  # three groups, some points added
    scale = np.linspace(0.5, 2.0, len(X))
    factor = sharded_cholesky(GramRows(lnk.ntk(ARCH), X, 0.5, scale), ONE, shift=0.25)
    assert factor is not None and factor.layout.groups == 2 and factor.layout.padded > len(X) - 1
    matrix = scale[:, None] * (lnk.ntk(ARCH)(X) + 0.5 * np.eye(len(X))) * scale
    matrix += 0.25 * np.eye(len(X))
    b = np.random.default_rng(2).normal(size=(len(X), 3))
    np.testing.assert_allclose(factor.times(b), matrix @ b, atol=1e-12)
    half = np.linalg.solve(np.linalg.cholesky(matrix), b)
    np.testing.assert_allclose(factor.half_solve(b), half, atol=1e-12)
    np.testing.assert_allclose(factor.solve(b), np.linalg.solve(matrix, b), atol=1e-12)
    assert factor.frobenius() == pytest.approx(np.linalg.norm(matrix), rel=1e-14, abs=0)
    assert factor.log_determinant() == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-12, abs=0)


def test_a_matrix_without_a_factor() -> None:
    assert sharded_cholesky(GramRows(lnk.ntk(ARCH), X, 0.0), ONE, shift=-0.5) is None
    assert sharded_cholesky(GramRows(lnk.ntk(ARCH), X, 0.0), ONE, shift=-50.0) is None


def test_it_takes_plain_numbers() -> None:
    with pytest.raises(TransformationError), jax.enable_x64(True):
        jax.jit(lambda x: lnk.posterior(ARCH, x, X[:, 0], sharding=ONE).mean(x))(X)


def test_a_floor_of_the_smallest_eigenvalue() -> None:
    matrix = lnk.ntk(ARCH)(X)
    least = np.linalg.eigvalsh(matrix)[0]
    ways = {"over devices": ONE, "here": None}
    for layout in ways.values():
        found = lnk.posterior(ARCH, X, X[:, 0], sharding=layout).eigenvalue_floor()
        assert 0.999 * least < found < least
    noisy = lnk.posterior(ARCH, X, X[:, 0], noise=1e6, sharding=ONE)
    assert (
        noisy.eigenvalue_floor() >= 1e6
    )  # the rounding errors are larger than what the kernel adds
    near = lnk.posterior(ARCH, X, X[:, 0], noise=0.5, tolerance=1e-3)
    assert near.eigenvalue_floor() == 0.5


def test_a_floor_is_none_where_the_method_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guess that is too high is not believed."""
    monkeypatch.setattr(floor, "by_lanczos", lambda *_: Eigenvalue(1e3, 0.0))
    assert lnk.posterior(ARCH, X, X[:, 0]).eigenvalue_floor() == 0.0


def test_a_killed_factorisation_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strips, "GROUP", 15)
    monkeypatch.setattr(rounds, "EVERY", 0.0)
    usual, calls = sharded_cholesky_module.eliminate, []

    def eliminate(*arguments: object, most: int) -> object:
        calls.append(1)
        if len(calls) == most:
            raise KeyboardInterrupt
        return usual(*arguments)

    rows = GramRows(lnk.ntk(ARCH), X, 0.5)
    monkeypatch.setattr(sharded_cholesky_module, "eliminate", partial(eliminate, most=4))
    with pytest.raises(KeyboardInterrupt):
        sharded_cholesky(rows, ONE, folder=tmp_path)
    calls.clear()
    monkeypatch.setattr(sharded_cholesky_module, "eliminate", partial(eliminate, most=0))
    monkeypatch.setattr(strips.GramStrips, "__iter__", None)  # no entry is needed again
    factor = sharded_cholesky(rows, ONE, folder=tmp_path)
    assert factor is not None and factor.layout.groups == 4 and len(calls) == 1
    matrix = lnk.ntk(ARCH)(X) + 0.5 * np.eye(len(X))
    assert factor.log_determinant() == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-12, abs=0)
    found = factor.solve_roughly(X)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, X), atol=1e-12)
    monkeypatch.undo()
    monkeypatch.setattr(strips, "GROUP", 15)
    other = sharded_cholesky(GramRows(lnk.ntk(ARCH), X, 0.25), ONE, folder=tmp_path)
    assert other is not None and other.log_determinant() < factor.log_determinant()
