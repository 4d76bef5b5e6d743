"""`lnkernel verify`: a certificate is proved again."""

from __future__ import annotations

import argparse

from lnkernel.cli.command import FAILED, OK, Command, add_json, data_file, print_json, read_bytes


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        type=data_file,
        help="what Certificate.save wrote, or `lnkernel bound --certify`; - for standard input",
    )
    add_json(parser)


def _run(options: argparse.Namespace) -> int:
    """A file that is no certificate is wrong use; one that cannot be proved has failed."""
    from lnkernel.bounds.certified.certificate import read
    from lnkernel.errors import LnkernelError

    certificate = read(read_bytes(options.file), options.file)
    if not options.json:
        print(f"{options.file}: {certificate.arch}", flush=True)
    try:
        verdict = certificate.verify()
    except LnkernelError as problem:
        if options.json:
            print_json({"file": options.file, "valid": False, "problem": str(problem)})
        else:
            print(f"{options.file}: {problem}")
        return FAILED
    if options.json:
        findings = {found.statement: found.holds for found in verdict.findings}
        print_json({"file": options.file, "valid": verdict.valid, "findings": findings})
    else:
        print(verdict)
    return OK if verdict.valid else FAILED


COMMAND = Command(
    "verify",
    "prove the statements of a certificate again, from its data alone",
    "lnkernel verify out/bound/certificate.json",
    _add_arguments,
    _run,
)
