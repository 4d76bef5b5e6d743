"""Tables as CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lnkernel.experiments.folder import Folder

Rows = Sequence[Mapping[str, Any]]


def write_table(folder: Folder, name: str, rows: Rows) -> tuple[Path, Path]:
    """`name.csv` and `name.json`, with a column for each key of the first row.

    A cell that has no value is None: empty in the CSV, null in the JSON. Infinity and NaN are text.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    content = json.dumps(plain(list(rows)), indent=1, ensure_ascii=False, allow_nan=False)
    return folder.write(f"{name}.csv", text.getvalue()), folder.write(
        f"{name}.json", content + "\n"
    )


def plain(value: Any) -> Any:
    """The same as JSON knows it: arrays as lists, paths and infinities as text.

    >>> import numpy as np
    >>> plain({"C": np.inf, "x": np.arange(2)})
    {'C': 'inf', 'x': [0, 1]}
    """
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Path) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value
