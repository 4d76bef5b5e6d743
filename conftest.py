"""Settings for all tests: those of `tests`, and the examples in `src`, `docs` and the README."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pooch

# Compiled programs outlive the processes, in JAX's own cache: the second run finds them, and so do the other
# worker, the scripts and the notebooks that tests start. The folder may be emptied at any time. Counting
# compilations counts right: a program that is found is announced like one that is compiled.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(pooch.os_cache("lnkernel")) / "tests"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.02")

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
    "lnkernel.tangents",
]
install_import_hook(TYPECHECKED, "typechecked.results")

# Of tests over many networks, those that take longest to compile and show the least of their own.
LONG = {
    "finite.md",  # it trains networks
    "test_a_wrong_rule_is_caught[arch0-forget_the_mean-20]",
    "test_both_ways_agree[general 1.5-symmetric]",
    "test_against_random_networks",  # of the layer from outside
    "test_random_networks[Clip(low=0.0, high=1.0)]",
    "test_many_pairs_by_a_table",
    "test_delicate_pairs[elu]",
    "test_what_is_known[tanh]",
    "test_what_is_known[relu]",
    "test_mean_bound_far_out[1-1.25]",
    "test_reach_of_other_networks[linear first]",
    "test_analytic_networks_tend_to_their_limit[tanh, affine]",
    "test_closed_forms[gelu-quick]",
    "test_closed_forms[erf-quick]",
    "test_every_pair_at_every_length[Sin(omega=1.0, phase=0.0)]",
    "test_every_pair_at_every_length[Cos(omega=0.7)]",
    "test_tables_are_the_series[Sin(omega=1.5, phase=0.4)]",
    "test_tables_are_the_series[Gelu(approximate=True)]",
    "test_twice_the_terms_change_nothing",
    "test_both_ways_agree[residual-symmetric]",
    "test_a_loop_over_blocks_is_the_blocks_one_by_one[residual]",
    "test_gradient_by_hyperparameters[slope, b_std = 0, eps = 0]",
    "test_gradient_is_finite_everywhere[general .75]",
    "test_both_ends_along_a_ray[Sin(omega=1.0, phase=0.3)]",
    "test_both_ends_along_a_ray[Cos(omega=1.0)]",
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
    "test_symmetric_matrix_and_diagonal_by_programs[scale and bias]",
    "test_the_chain[last-0.0]",
    "test_anisotropy_is_the_mixed_derivative",  # of a LeNet; tests/tangents has one of an MLP
    "test_runs_and_says_what_it_was_committed_with[08_edge_of_stability]",  # it trains networks
    "test_delicate_pairs[clip by a table]",
    "test_gradient_by_hyperparameters[eps, scale, bias]",
    "test_gradient_by_hyperparameters[a loop over 20 blocks]",
    "test_gradient_by_the_input[scale and bias, p2]",
    "test_gradient_of_the_diagonal[general .75]",
    "test_the_diagonal_of_long_images[sigmoid]",
    "test_beside_integrals[clip-pooled]",
    "test_by_programs[degrees 3, .75, linear]",
    "test_by_programs[LN after, eps]",
    "test_is_the_product_of_jacobians[twin-float64-methods2]",
    "test_the_bend_of_an_mlp_bounds_its_hessian[0.0]",
    "test_a_layernorm_behind_it[Softplus(beta=1.0)-inf]",
    "test_programs_compute_what_numpy_does[GAP, branches]",
    "test_programs_compute_what_numpy_does[branches]",
    "test_programs_compute_what_numpy_does[circular, strides]",
    "test_finite_networks_agree[LN all]",
    "test_finite_networks_agree[no LN]",
    "test_a_loop_over_blocks_is_the_blocks_one_by_one[relu]",
    "test_runs_and_says_what_it_was_committed_with[02_kernel_heatmaps]",
    "test_runs_and_says_what_it_was_committed_with[04_theory_against_training]",
    "test_runs_and_says_what_it_was_committed_with[06_layernorm_group_size]",
    "test_runs_and_says_what_it_was_committed_with[09_nonlinearity_and_the_law]",
    "test_finite_networks_agree[residual]",
    "test_finite_networks_agree[LN last]",
    "test_gradient_by_the_input[LN first, p1.5]",
    "test_the_chain[last-0.1]",
    "test_the_chain[first-0.0]",
    "test_the_memory_that_factorising_takes[4000-10000-12]",
    "test_gradient_by_hyperparameters[residual]",
    "test_both_ways_agree[LN after-symmetric]",
    "test_finite_networks_agree[residual of features]",
    "test_rules_are_in_step[polynomial-True]",
}


STALE = pytest.StashKey[set[str]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.name in LONG:
            item.add_marker(pytest.mark.slow)
    all_were_collected = config.args == config.getini("testpaths")
    config.stash[STALE] = LONG - {item.name for item in items} if all_were_collected else set()


@pytest.fixture
def stale_names(request: pytest.FixtureRequest) -> set[str]:
    """Names in LONG that no test has. A test asks for them: an error while a worker collects would not be shown."""
    return request.config.stash[STALE]


PROGRAMS = Path(pooch.os_cache("lnkernel")) / "tests"  # a folder of the user's own is left alone
MOST_PROGRAMS = 2 * 2**30  # bytes of the folder, beyond which the oldest are deleted


def pytest_configure(config: pytest.Config) -> None:
    """Delete the oldest stored programs, once, before the workers start."""
    if hasattr(config, "workerinput") or not PROGRAMS.is_dir():
        return
    stored = sorted(PROGRAMS.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    total = 0
    for path in stored:
        total += path.stat().st_size
        if total > MOST_PROGRAMS:
            path.unlink(missing_ok=True)


# Linux allows a process 65,530 maps, every compiled program takes some, and XLA crashes without
MAPS = 20_000
RESIDENT = 1.9e9  # bytes; the modules themselves take 0.8e9, the programs of one file 1.0e9 at most


@pytest.fixture(autouse=True, scope="module")
def _memory() -> Iterator[None]:
    """Forget compiled programs between modules, before they take too many maps or too much memory."""
    yield
    maps, pages = Path("/proc/self/maps"), Path("/proc/self/statm")
    if not maps.exists():
        return
    resident = int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if resident > RESIDENT or maps.read_bytes().count(b"\n") > MAPS:
        jax.clear_caches()
        gc.collect()
        if sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)  # what compilers have freed goes back to the system


@pytest.fixture
def programs_for_all_but_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of programs: of cheap networks too they are compiled from 10,000 pairs on."""
    from lnkernel.gram import eager

    monkeypatch.setattr(eager, "MOST_CHEAP", eager.MOST)
