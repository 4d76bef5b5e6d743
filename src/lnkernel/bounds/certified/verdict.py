"""What checking a certificate has found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One statement of a certificate, and whether it was proved."""

    statement: str
    holds: bool


@dataclass(frozen=True)
class Verdict:
    """What `Certificate.verify` has found. It is true if every statement was proved."""

    findings: tuple[Finding, ...]

    @property
    def valid(self) -> bool:
        return all(finding.holds for finding in self.findings)

    def __bool__(self) -> bool:
        return self.valid

    def __str__(self) -> str:
        rows = [f"  {'proved' if f.holds else 'FAILED'}: {f.statement}" for f in self.findings]
        end = (
            "The certificate is valid: every statement was proved again, from the data alone."
            if self.valid
            else "The certificate is NOT valid."
        )
        return "\n".join([*rows, end])
