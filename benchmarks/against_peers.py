"""lnkernel beside its peers: agreement, accuracy, speed and memory, measured in one run.

The claim: on every task that a peer can do, it agrees with us as far as its own accuracy goes, and we
are as exact as our own bound says; against neural-tangents, GPJax, PyTorch and laplace-torch we are faster, by the
factors that each row states. With scikit-learn the claim is the same posterior, not the time.

    python -m benchmarks.against_peers [--quick] [--only gpjax] [--publish | --renew]

Peers: neural-tangents, scikit-learn (with our kernel), GPJax, `torch.func`, PyTorch and laplace-torch,
each but scikit-learn in an environment of its own (`benchmarks/peers/`). Calls of the two sides alternate,
warm; memory is that of fresh processes. The report goes to `out/peers/`; with `--publish` also into
docs/peers.md, docs/peers.json and the README. `--only NAME --renew` puts the rows of that peer alone there, among
those of the last whole report, and the page says that they are of a run of their own. The exit code is
1 if a claim fails or a peer does not run.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.claims import conclude
from benchmarks.comparisons import page
from benchmarks.comparisons.renewal import renew
from benchmarks.comparisons.row import Row, Size
from benchmarks.peers.environment import EnvironmentFailedError
from benchmarks.peers.process import PeerFailedError

ROOT = Path(__file__).resolve().parents[1]
PAGE, DATA, README = ROOT / "docs" / "peers.md", ROOT / "docs" / "peers.json", ROOT / "README.md"
PEERS = {  # name, and the file of `comparisons` that measures it
    "neural-tangents": "neural_tangents",
    "scikit-learn": "scikit_learn",
    "gpjax": "gpjax",
    "torch": "pytorch",
    "laplace": "laplace",
}


def measure(name: str, size: Size) -> tuple[list[Row], dict[str, str], str | None]:
    """The rows of one peer, its versions, and why there are no more rows, if it failed."""
    module = importlib.import_module(f"benchmarks.comparisons.{PEERS[name]}")
    rows: list[Row] = []
    try:
        versions: dict[str, str] = module.versions()
        for row in module.rows(size):
            rows.append(row)
            print(line(row), flush=True)
    except (EnvironmentFailedError, PeerFailedError) as failure:
        return rows, {}, str(failure)
    return rows, versions, None


def line(row: Row) -> str:
    """One row, for the terminal."""

    def number(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    return (
        f"{row.peer:16} {row.task:76.76} {number(row.agreement, '.0e'):>6} "
        f"{number(row.error, '.0e'):>6} {number(row.peer_error, '.0e'):>6} "
        f"{number(row.seconds, '.4f'):>8} {number(row.peer_seconds, '.4f'):>8} "
        f"{number(row.ratio, '.1f'):>6}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, no claims of speed")
    parser.add_argument("--only", choices=PEERS, action="append", help="one of the peers")
    parser.add_argument("--publish", action="store_true", help="into docs/ and the README")
    parser.add_argument(
        "--renew", action="store_true", help="the rows of --only into docs/ and the README"
    )
    parser.add_argument("--remark", default="", help="what readers should know about this run")
    parser.add_argument("--out", type=Path, default=Path("out/peers"), help="folder of the report")
    options = parser.parse_args(arguments)
    if options.publish and (options.quick or options.only):
        parser.error("what is published is the whole report: neither --quick nor --only")
    if options.renew and (options.quick or options.publish or not options.only):
        parser.error("--renew takes --only, and neither --quick nor --publish")

    head = ("agrees", "error", "peer", "seconds", "peer", "ratio")
    print(f"{'peer':16} {'task':76} {head[0]:>6} {head[1]:>6} {head[2]:>6} ", end="")
    print(f"{head[3]:>8} {head[4]:>8} {head[5]:>6}")
    rows: list[Row] = []
    peers: dict[str, dict[str, str]] = {}
    checks: dict[str, bool] = {}
    for name in options.only or PEERS:
        found, versions, failure = measure(name, Size(options.quick))
        rows += found
        peers[name] = versions
        if failure is not None:
            print(f"{name} did not run: {failure}")
            checks[f"{name} runs"] = False
    checks |= {
        f"{row.peer}, {row.task}: {claim}": holds
        for row in rows
        for claim, holds in row.checks.items()
    }
    print()
    path = options.out / "peers.json"
    lines = [asdict(row) | {"ratio": row.ratio} for row in rows]
    about = {"quick": options.quick, "remark": options.remark, "peers": peers}
    code = conclude(checks, path, **about, rows=lines)
    report: dict[str, Any] = json.loads(path.read_text())
    (options.out / "peers.md").write_text(page.table(report) + "\n")
    if (options.publish or options.renew) and all(peers.values()):
        if options.renew:
            report = renew(json.loads(DATA.read_text()), report, PEERS)
        DATA.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
        page.publish(report, PAGE, README)
        print(f"published in {PAGE}, {DATA} and {README}")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
