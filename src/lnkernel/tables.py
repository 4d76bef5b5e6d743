"""Tables as the text of CSV and JSON files."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Rows = Sequence[Mapping[str, Any]]


def format_csv(rows: Rows) -> str:
    """A header with the keys of the first row, and a line for each row; None is an empty cell.

    >>> format_csv([{"n": 2, "n²": 4}, {"n": 3, "n²": None}])
    'n,n²\\n2,4\\n3,\\n'
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def format_json(rows: Rows) -> str:
    """The rows as a list of objects; None is null, and infinity and NaN are text.

    >>> print(format_json([{"C": float("inf")}]), end="")
    [
     {
      "C": "inf"
     }
    ]
    """
    return json.dumps(plain(list(rows)), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


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
