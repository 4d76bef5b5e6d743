"""The pages are doctests. The one that trains networks takes as long as all others together."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name == "finite.md":
            item.add_marker(pytest.mark.slow)
