"""Compiled programs that outlive a process, by JAX's own cache."""

from __future__ import annotations

from pathlib import Path

import jax

WORTH_KEEPING = 0.05  # seconds of compilation; smaller programs take as long to read


def store_programs(folder: str | Path | None = None) -> Path:
    """Keep compiled programs on disk, so that the next process need not compile them: one line at the start of a script
    or notebook.

    It sets JAX's own options `jax_compilation_cache_dir` and `jax_persistent_cache_min_compile_time_secs` for this
    process, so that it serves all programs that you compile, and returns the folder: the user's cache folder, unless
    another one is named. The library never does so by itself; the command `lnkernel` does, unless JAX's option (or
    `JAX_COMPILATION_CACHE_DIR`) is set.

    >>> import lnkernel as lnk
    >>> lnk.store_programs("out/programs").name     # doctest: +SKIP
    'programs'
    """
    place = _usual() if folder is None else Path(folder)
    place = place.expanduser().resolve()
    place.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(place))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)
    return place


def store_programs_unless_told() -> None:
    """Keep programs in the usual folder, if the user has named none and it can be written to."""
    if jax.config.values["jax_compilation_cache_dir"] is None:
        try:
            store_programs()
        except OSError:  # a machine without a home: everything works, but has to be compiled
            return


def _usual() -> Path:
    import pooch

    return Path(pooch.os_cache("lnkernel")) / "programs"
