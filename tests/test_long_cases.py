"""The list of long cases in `conftest.py`: a test that was renamed must not become quick, and long, unnoticed."""

from __future__ import annotations


def test_every_name_is_that_of_a_test(stale_names: set[str]) -> None:
    assert not stale_names, f"conftest.LONG names tests that there are not: {sorted(stale_names)}"
