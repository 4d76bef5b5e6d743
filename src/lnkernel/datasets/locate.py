"""Where a file of data is: an explicit path, the folder of an environment variable, a cache."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lnkernel.errors import MissingDataError

VARIABLE = "LNKERNEL_DATA"


def require_file(name: str, path: str | Path) -> Path:
    """A path that the user gave, if there is a file."""
    chosen = Path(path).expanduser()
    if not chosen.is_file():
        raise MissingDataError(
            name, [chosen], "Correct the path, or omit it to search for the file"
        )
    return chosen


def search(names: Sequence[str]) -> Path | None:
    """The first file of such a name in the folder of `LNKERNEL_DATA`, then in the cache."""
    return next((path for path in candidates(names) if path.is_file()), None)


def candidates(names: Sequence[str]) -> list[Path]:
    """Where `search` looks, in its order."""
    told = os.environ.get(VARIABLE)
    folders = [Path(told).expanduser()] if told else []
    return [folder / name for folder in [*folders, cache()] for name in names]


def cache() -> Path:
    """The user's folder for downloaded data of this library, as the system has it."""
    import pooch

    return Path(pooch.os_cache("lnkernel"))


def download(url: str, name: str) -> Path | None:
    """The file at this address, now in the cache under this name; None where it cannot be had.

    Whoever reads it checks its content: see `proteins`.
    """
    import pooch

    target = cache() / name
    logger = pooch.get_logger()
    was, logger.disabled = logger.disabled, True  # its advice, to note the hash, is not for users
    try:
        found = pooch.retrieve(
            url, known_hash=None, fname=target.name, path=target.parent, progressbar=True
        )
        return Path(found)
    except OSError:  # no network, no such address, no room: all of them
        return None
    finally:
        logger.disabled = was
