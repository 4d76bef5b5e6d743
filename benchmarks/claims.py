"""How a benchmark ends: its claims said, its numbers written, its exit code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lnkernel.experiments.machine import hardware, versions
from lnkernel.tables import plain


def conclude(checks: Mapping[str, bool], path: Path, **results: Any) -> int:
    """Print which claims hold, write all to a JSON file, and return 1 if one fails, else 0."""
    for claim, holds in checks.items():
        print(f"{claim}: {'yes' if holds else 'NO'}")
    report = {"hardware": hardware(), "versions": versions(), **results, "checks": dict(checks)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(plain(report), indent=1, ensure_ascii=False) + "\n")
    print(f"written to {path}")
    return 0 if all(checks.values()) else 1
