"""The tables of the experiment on alignment: numbers of networks of one kind, over pictures and seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lnkernel.experiments.alignment_plan import PUBLISHED, Kind
from lnkernel.experiments.alignment_start import WIDTHS
from lnkernel.experiments.intervals import correlation_interval, interval
from lnkernel.finite.watching.critical import critical_time

Found = Mapping[str, np.ndarray]
Row = dict[str, Any]
# the order parameters with a critical time, and the rule for it
RULES = {
    "gradient_variance": "peak",
    "loss_rate": "peak",
    "min_cosine": "zero",
    "auc": "sigmoid",
    "cka": "sigmoid",
    "mag_ma": "sigmoid",
    "lambda_max": "sigmoid",
}
NAMES = {
    "gradient_variance": "gradient variance",
    "loss_rate": "loss rate",
    "min_cosine": "least cosine",
    "auc": "AUC of |v₀| for edges",
    "cka": "CKA with the picture",
    "mag_ma": "MAG-Ma",
    "lambda_max": "λ₀",
}


def healthy(found: Found) -> Found:
    """What was found of the networks that did not diverge."""
    kept = found["diverged"] < 0
    return {key: part if key == "steps" else part[kept] for key, part in found.items()}


def _columns(name: str, values: np.ndarray) -> Row:
    """The mean over the networks with its interval; None of no network."""
    ends = interval(values.tolist()) if len(values) else (None, None, None)
    return dict(zip((name, f"{name}, 95 % from", f"{name}, to"), ends, strict=True))


def critical_times(found: Found, name: str) -> list[float]:
    """log10 of the critical time of every network that has one."""
    made = [critical_time(found["steps"], one, name, RULES[name]).time for one in found[name]]
    return [float(np.log10(time)) for time in made if time is not None]


def main_row(kind: Kind, found: Found) -> Row:
    """Ours beside the published."""
    theirs = PUBLISHED[kind]
    row: Row = {"depth/ω₀": kind.label, "networks": len(found["auc"])}
    found = healthy(found)
    row["diverged"] = row["networks"] - len(found["auc"])
    times = [time for name in RULES for time in critical_times(found, name)]
    for name, values in (
        ("ξ at the start", found["length"][:, 0]),
        ("ξ at the end", found["length"][:, -1]),
        ("AUC at the start", found["auc"][:, 0]),
        ("AUC at the end", found["auc"][:, -1]),
        ("largest AUC", found["auc"].max(1)),
        ("log10 t_crit", np.array(times)),
        ("log10 finer loss", np.log10(found["finer loss"])),
    ):
        row |= _columns(name, values)
    names = ("published ξ", "published AUC", "published log10 t_crit", "published log10 loss")
    return row | dict(zip(names, theirs, strict=True))


def time_rows(kind: Kind, found: Found) -> list[Row]:
    """Every order parameter's critical time."""
    rows, found = [], healthy(found)
    for name, how in RULES.items():
        times = critical_times(found, name)
        mean, low, high = interval(times) if times else (None, None, None)
        rows.append(
            {
                "depth/ω₀": kind.label,
                "order parameter": NAMES[name],
                "rule": how,
                "found": len(times),
                "of": len(found["auc"]),
                "log10 t_crit": mean,
                "95 % from": low,
                "to": high,
            }
        )
    return rows


def local_row(kind: Kind, found: Found) -> Row:
    """The local forms against what they stand for, along the training of every network."""
    found = healthy(found)
    row: Row = {"depth/ω₀": kind.label, "networks": len(found["auc"])}
    for name, true, form in (
        ("Pearson of ξ", "length", "local_length"),
        ("Pearson of the least cosine", "min_cosine", "local_min_cosine"),
    ):
        each = [
            float(np.corrcoef(a, b)[0, 1]) for a, b in zip(found[true], found[form], strict=True)
        ]
        mean, low, high = correlation_interval(each) if each else (None, None, None)
        row |= {name: mean, f"{name}, 95 % from": low, f"{name}, to": high}
    half = np.sqrt(2 * np.log(2))  # the local length is that at half height
    for name, values in (
        ("local ξ/measured ξ", found["local_length"] / half / found["length"]),
        ("cosine of v₀ with its local form", found["principal_cosine"]),
        ("cosine of v₀ with K1", found["rows_cosine"]),
    ):
        row[f"{name}, median"] = float(np.median(values)) if values.size else None
    return row


def start_row(kind: Kind, found: Found, start: Found) -> Row:
    """Lengths and floors before training, finite and infinite."""
    found = healthy(found)
    row: Row = {"depth/ω₀": kind.label}
    for name, values in (("ξ as trained", found["length"]), ("c∞ as trained", found["floor"])):
        row[name] = float(values[:, 0].mean()) if len(values) else None
    for number, width in enumerate(WIDTHS):
        floor, length = start["finite"][number].mean(0)
        row |= {f"ξ, width {width}": float(length), f"c∞, width {width}": float(floor)}
    floor, length = start["infinite"]
    return row | {"ξ, infinite width": float(length), "c∞, infinite width": float(floor)}
