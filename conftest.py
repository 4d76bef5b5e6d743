"""Settings for all tests: those of `tests`, and the examples in `src`, `docs` and the README."""

from __future__ import annotations

import os

import pytest

# One thread for NumPy's matrix products: those of `montecarlo.py` are small, and pytest runs as
# many processes as there are cores. It has to be said before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

LONG_PAGES = {"finite.md"}  # it trains networks


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name in LONG_PAGES:
            item.add_marker(pytest.mark.slow)
