"""What `compare` found: one row for every width, as a table, as HTML, as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from lnkernel.errors import InputError
from lnkernel.finite.comparison.row import HEAD, Row, cells
from lnkernel.page import html_table

FORMAT = "lnkernel.finite.Comparison 1"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Finite networks beside their limit. `compare` makes it; it prints as a table.

    Attributes:
        rows: one `Row` for every width.
        exponent, exponent_se: the power of the width that fits the NTK error, and its standard error; theory
            says -1/2. None for a single width, or where the kernel has no error.
        bound: B(D), for the mean output of infinitely wide networks anywhere; inf where Θ(x, x) is not
            bounded, NaN where its growth is not known.
        rkhs: the tighter bound of `lnkernel.Bound`.
        x_eval: the points, (m, d).
        limit_mean, limit_std: mean and deviation of infinitely wide networks trained to convergence, (m, k).
        seeds: the seeds of the networks.
        points: number of training points.
        arch: the network, as text.

    >>> import numpy as np
    >>> one, two = np.array([[1.0]]), np.array([[2.0]])
    >>> row = Row(64, 0.1, 0.01, 0.02, 0.001, one, two, one, two, 3.0, 0.5, 0.4, 0.1, 20, True)
    >>> c = Comparison([row], None, None, np.inf, np.inf, one, one, two, [0, 1], 5, "mlp()")
    >>> print(c)
    width        NTK error            drift  mean error  max |z|  spread  (theory)  max |f| ...
       64  0.1000 ± 0.0100  0.0200 ± 0.0010           0     0.00       2         2        3 ...
    ...
    Θ(x, x) grows without limit, so the output of this network has no bound: B(D) = inf.
    """

    rows: list[Row]
    exponent: float | None
    exponent_se: float | None
    bound: float
    rkhs: float
    x_eval: Float64[np.ndarray, "m d"]
    limit_mean: Float64[np.ndarray, "m k"]
    limit_std: Float64[np.ndarray, "m k"]
    seeds: list[int]
    points: int
    arch: str

    def __str__(self) -> str:
        table = [HEAD, *(cells(row, len(self.seeds)) for row in self.rows)]
        widths = [max(len(line[i]) for line in table) for i in range(len(HEAD))]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in table
        ]
        return "\n".join([*lines, "", *self.notes()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [cells(row, len(self.seeds)) for row in self.rows]
        return html_table(HEAD, rows, self.notes())

    def notes(self) -> list[str]:
        """What the table means, in sentences."""
        said = [
            f"{len(self.seeds)} networks of each width, {self.points} training points, "
            f"{len(self.x_eval)} points of evaluation."
        ]
        if self.exponent is not None:
            said.append(
                f"NTK error ~ width^{self.exponent:.3f} ± {self.exponent_se:.3f} (theory: -1/2)."
            )
        said.append(self._bound_in_words())
        early = [row for row in self.rows if not row.converged]
        if early:
            gap = max(float(np.abs(row.expected_mean - self.limit_mean).max()) for row in early)
            said.append(
                f"Not converged at width {', '.join(str(row.width) for row in early)}: compared "
                "with posterior.after(steps, learning_rate), which is up to "
                f"{gap:.2g} away from the posterior mean at x_eval."
            )
        return said

    def _bound_in_words(self) -> str:
        if math.isnan(self.bound):
            return "No bound on the output of this network is known: sup_diagonal(arch) says why."
        if math.isinf(self.bound):
            return "Θ(x, x) grows without limit, so the output of this network has no bound: B(D) = inf."
        return (
            f"Bound on the mean output of infinitely wide networks: B(D) = {self.bound:.4g}, "
            f"√(C yᵀΘ⁻¹y) = {self.rkhs:.4g}."
        )

    def save(self, path: str | Path) -> None:
        """Write everything to a JSON file."""
        fields = {name: getattr(self, name) for name in _names(Comparison)}
        fields["rows"] = [{n: getattr(row, n) for n in _names(Row)} for row in self.rows]
        text = json.dumps({"format": FORMAT, **_plain(fields)}, indent=1, allow_nan=False)
        Path(path).write_text(text + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Comparison:
        """What `save` wrote."""
        try:
            fields = json.loads(Path(path).read_text())
        except ValueError as problem:
            raise _no_comparison(path, f"a file that is no JSON ({problem})") from None
        if not isinstance(fields, dict) or fields.pop("format", None) != FORMAT:
            raise _no_comparison(path, "another file")
        fields["rows"] = [Row(**_arrays(row)) for row in fields["rows"]]
        return cls(**_arrays(fields))


def _names(of: type) -> list[str]:
    return [field.name for field in dataclasses.fields(of)]


def _plain(value: Any) -> Any:
    """JSON has no infinities: they become texts, which `float` reads."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


ARRAYS = ("mean", "std", "expected_mean", "expected_std", "x_eval", "limit_mean", "limit_std")
INFINITE = ("bound", "rkhs")


def _arrays(fields: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {
        name: np.asarray(value, float) for name, value in fields.items() if name in ARRAYS
    }
    made |= {name: float(value) for name, value in fields.items() if name in INFINITE}
    return fields | made


def _no_comparison(path: str | Path, got: str) -> InputError:
    return InputError(
        "path", "a file that Comparison.save wrote", f"{got}, {path}", "Check the path"
    )
