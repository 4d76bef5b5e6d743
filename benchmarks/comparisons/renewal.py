"""Rows of some peers measured anew, among those of the last whole report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Report = dict[str, Any]


def renew(whole: Report, some: Report, order: Mapping[str, Any]) -> Report:
    """The whole report with the rows, versions and checks of the peers that `some` has, in place of theirs.

    What was measured in a run of its own is named under `apart`, with the machine, our versions and
    the remark there, because the rest of the report says nothing about them.

    Args:
        whole: a report of all peers, or of all but those that `some` has.
        some: a report of some peers, without failures.
        order: the names of the peers, in the order of the report.
    """
    mine = {row["peer"] for row in some["rows"]}
    names = list(some["peers"])
    kept = {
        claim: holds
        for claim, holds in whole["checks"].items()
        if not any(claim.startswith((f"{peer}, ", f"{peer} ")) for peer in (*mine, *names))
    }
    circumstances = {key: some[key] for key in ("hardware", "versions", "remark")}
    peers = {**whole["peers"], **some["peers"]}
    return {
        **whole,
        "peers": {name: peers[name] for name in order if name in peers},
        "rows": [row for row in whole["rows"] if row["peer"] not in mine] + some["rows"],
        "checks": {**kept, **some["checks"]},
        "apart": {**whole.get("apart", {}), **dict.fromkeys(names, circumstances)},
    }
