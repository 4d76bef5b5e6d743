"""Programs that are kept between processes."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import lnkernel as lnk
from lnkernel.gram.stored import store_programs_unless_told

# some tenths of a second of compilation, above what is worth keeping; of more layers NumPy would take all these pairs
ARCH = "mlp(hidden=2, activation=Gelu())"
COMMAND = ["kernel", "--arch", ARCH, *["--x", "-5", "5", "150", "--json"]]


@pytest.fixture
def as_it_was():
    names = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
    before = {name: getattr(jax.config, name) for name in names}
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def run(home: Path, **more: str) -> str:
    given = {name: value for name, value in os.environ.items() if not name.startswith("JAX")}
    given |= {"HOME": str(home), "XDG_CACHE_HOME": str(home), **more}
    call = [sys.executable, "-m", "lnkernel.cli", *COMMAND]
    done = subprocess.run(call, env=given, capture_output=True, text=True, timeout=300, check=True)
    assert done.stderr == ""
    return done.stdout


def test_the_command_keeps_its_programs(tmp_path: Path) -> None:
    """The second process finds all that the first one compiled, and computes the same."""
    first = run(tmp_path)
    kept = {path.name for path in tmp_path.rglob("*_batch*-cache")}
    assert kept
    assert run(tmp_path) == first
    assert {path.name for path in tmp_path.rglob("*_batch*-cache")} == kept


def test_the_users_own_folder_is_kept_to(tmp_path: Path) -> None:
    run(tmp_path / "home", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "own"))
    assert not list((tmp_path / "home").rglob("*-cache"))


def test_a_folder_by_name(tmp_path: Path, as_it_was: None) -> None:
    assert lnk.store_programs(tmp_path / "here") == (tmp_path / "here").resolve()
    store_programs_unless_told()
    assert jax.config.jax_compilation_cache_dir == str((tmp_path / "here").resolve())


def test_the_library_changes_no_option() -> None:
    call = "import jax, lnkernel; print(jax.config.jax_compilation_cache_dir)"
    given = {name: value for name, value in os.environ.items() if not name.startswith("JAX")}
    done = subprocess.run([sys.executable, "-c", call], env=given, capture_output=True, text=True)
    assert done.stdout.strip() == "None"
