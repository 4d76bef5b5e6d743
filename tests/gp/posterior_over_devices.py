"""A script: posteriors over virtual devices of a CPU, beside those of one. It prints what was checked."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import lnkernel as lnk
from lnkernel.errors import NotEnoughMemoryError, SingularGramError, SpreadMatrixError
from lnkernel.gp import strips
from lnkernel.gp.sharded_cholesky import ShardedCholesky
from lnkernel.gram import memory

ARCH = lnk.mlp(hidden=1, norm="first")
RNG = np.random.default_rng(0)
N = 150
X, Y, NEW = RNG.normal(size=(N, 3)), RNG.normal(size=(N, 2)), RNG.normal(size=(5, 3))


def compare(layout: object, noise: object, names: tuple[str, ...]) -> None:
    """What a posterior says is the same to 1e-12, and so is its likelihood."""
    one = lnk.posterior(ARCH, X, Y, noise=noise)
    many = lnk.posterior(ARCH, X, Y, noise=noise, sharding=layout)
    assert isinstance(many._fit.factor, ShardedCholesky)
    for name in names:
        found, expected = getattr(many, name)(NEW), getattr(one, name)(NEW)
        assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max(), name
    found, expected = many.log_marginal_likelihood(), one.log_marginal_likelihood()
    assert abs(found - expected) <= 1e-12 * abs(expected)
    if len(names) == 1:
        return
    bounds = lnk.bound(many), lnk.bound(one)
    assert abs(bounds[0].rkhs / bounds[1].rkhs - 1) <= 1e-11
    errors = bounds[0].lambda_error + bounds[1].lambda_error
    assert abs(bounds[0].lambda_min - bounds[1].lambda_min) <= errors


def refuse(mesh: Mesh) -> None:
    """What a matrix over devices cannot do is said, and a singular one is explained."""
    many = lnk.posterior(ARCH, X, Y, noise=0.1, sharding=mesh)
    with jax.enable_x64(True):  # the mean takes no matrix
        inside = jax.jit(lambda x: many.mean(x))(NEW)
    assert np.abs(inside - many.mean(NEW)).max() < 1e-12
    for call in (
        lambda: many.at(1.0).mean(NEW),
        lambda: jax.tree.map(lambda a: a, many).variance(NEW),
        lambda: jax.jit(many.variance)(NEW),
    ):
        try:
            with jax.enable_x64(True):
                call()
        except SpreadMatrixError as problem:
            assert f"got one of {N} points whose matrix is spread over" in str(problem)
        else:
            raise AssertionError("no error")
    twice = X.copy()
    twice[40] = twice[90] * (1 + 1e-15)
    try:
        lnk.posterior(ARCH, twice, Y, sharding=mesh)
    except SingularGramError as problem:
        assert problem.nearest is not None and problem.nearest[:2] == (40, 90)
    else:
        raise AssertionError("no error")
    memory.available_memory = lambda: 1000
    try:
        lnk.posterior(ARCH, X, Y, sharding=mesh)
    except NotEnoughMemoryError as problem:
        assert "This host's part (2 of 2 devices) of half of the Gram matrix" in str(problem)
    else:
        raise AssertionError("no error")


def main() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    strips.GROUP = 60  # two groups
    devices = np.array(jax.devices())
    compare(Mesh(devices[:2], ("rows",)), 0.0, ("mean", "variance", "ensemble_variance"))
    for count in (1, 4):
        compare(Mesh(devices[:count], ("rows",)), 0.0, ("mean",))
    grid = Mesh(devices.reshape(4, 2), ("rows", "columns"))
    compare(
        NamedSharding(grid, PartitionSpec("rows", "columns")), np.linspace(0.1, 0.2, N), ("mean",)
    )
    refuse(Mesh(devices[:2], ("rows",)))
    print("the same on 1, 2, 4 and 8 devices")


if __name__ == "__main__":
    main()
