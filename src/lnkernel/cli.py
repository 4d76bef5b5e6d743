"""The command line: `lnkernel demo`, `lnkernel verify FILE`."""

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
    verify = commands.add_parser(
        "verify",
        help="prove the statements of a certificate again, from its data alone",
        epilog="example: lnkernel verify certificate.json",
    )
    verify.add_argument("file", type=Path, help="what Certificate.save wrote")
    options = parser.parse_args(arguments)
    if options.command == "verify":
        return _verify(options.file)

    from lnkernel import demo as job

    job.run(options.out)
    return 0


def _verify(file: Path) -> int:
    """Exit code 0 if every statement of the certificate holds, 1 if not."""
    from lnkernel.bound.certificate import Certificate
    from lnkernel.errors import LnkernelError

    try:
        certificate = Certificate.load(file)
        print(f"{file}: {certificate.arch}")
        verdict = certificate.verify()
    except (LnkernelError, OSError) as problem:
        print(f"{file}: {problem}")
        return 1
    print(verdict)
    return 0 if verdict.valid else 1


if __name__ == "__main__":
    raise SystemExit(main())
