"""Settings for all tests: those of `tests`, and the examples in `src`, `docs` and the README."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# One thread for NumPy's matrix products: those of `montecarlo.py` are small, and pytest runs as
# many processes as there are cores. It has to be said before NumPy is imported, and jaxtyping does.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import pytest
from jaxtyping import install_import_hook

# Modules with public signatures, packages with all that is in them: what their functions return is
# checked in every test (tests/typechecked.py says how). It has to be said before they are imported.
TYPECHECKED = [
    "lnkernel.bounds",
    "lnkernel.datasets",
    "lnkernel.finite.build",
    "lnkernel.finite.comparison",
    "lnkernel.finite.empirical",
    "lnkernel.gp",
    "lnkernel.gram.kernel",
    "lnkernel.plot",
    "lnkernel.sklearn",
    "lnkernel.stax",
]
install_import_hook(TYPECHECKED, "typechecked.results")

# Of tests over many networks, those that take longest to compile and show the least of their own.
LONG = {
    "finite.md",  # it trains networks
    "test_a_wrong_rule_is_caught[arch0-forget_the_mean-20]",
    "test_both_ways_agree[general 1.5-symmetric]",
    "test_closed_forms[cos-quick]",
    "test_closed_forms[gaussian-quick]",
    "test_closed_forms[sin-quick]",
    "test_float64_lies_in_the_ball[LN after, eps]",
    "test_gradient_by_the_input[general .75]",
    "test_layers_that_are_the_same[Homogeneous(1, 1, -1) is Identity]",
    "test_quick_and_careful_agree[Cos(omega=1.2)]",
    "test_random_networks[Softplus(beta=1.0)]",
    "test_random_networks[Tanh()]",
    "test_second_derivatives[p2]",
    "test_symmetric_matrix_and_diagonal[scale and bias]",
    "test_the_chain[last-0.0]",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name in LONG:
            item.add_marker(pytest.mark.slow)


MAPS = 30_000  # Linux allows a process 65,530, every compiled program takes some, and XLA crashes without


@pytest.fixture(autouse=True, scope="module")
def _memory_maps() -> Iterator[None]:
    """Forget compiled programs between modules, before there are too many of them."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and len(maps.read_bytes().splitlines()) > MAPS:
        jax.clear_caches()
