"""The command line: `lnkernel demo`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    parser = argparse.ArgumentParser(
        prog="lnkernel",
        description="Exact kernels of infinitely wide networks, with LayerNorm.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser(
        "demo",
        help="what one LayerNorm does to the kernel far from the data",
        epilog="example: lnkernel demo --out out/demo",
    )
    demo.add_argument("--out", type=Path, default=Path("out/demo"), help="folder of the picture")
    options = parser.parse_args(arguments)

    from lnkernel import demo as job

    job.run(options.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
