"""What the suite runs: a script for each claim."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Benchmark:
    """One script. `{out}` in its arguments is its own folder."""

    name: str
    claim: str
    module: str
    arguments: tuple[str, ...]
    quick: tuple[str, ...]  # in addition
    results: str  # its JSON, in its folder
    seeded: bool = False
    resumable: bool = False

    def command(self, out: Path, quick: bool, seed: int) -> list[str]:
        """How it is started. A run that left no results was interrupted, and goes on."""
        arguments = self.arguments + self.quick if quick else self.arguments
        chosen = ["--seed", str(seed)] if self.seeded else []
        if self.resumable and not (out / self.results).exists():
            chosen.append("--resume")
        filled = [each.format(out=out) for each in (*arguments, *chosen)]
        return [sys.executable, "-m", f"benchmarks.{self.module}", *filled]


BENCHMARKS = (
    Benchmark(
        "accuracy",
        "every kernel is exact to a few units in the last place, wherever the inputs lie",
        "accuracy",
        ("--out", "{out}/accuracy.json"),
        ("--quick",),
        "accuracy.json",
    ),
    Benchmark(
        "gram",
        "the Gram matrix takes a fraction of the time of neural-tangents",
        "gram",
        ("--json", "{out}/gram.json"),
        ("--quick", "--repeats", "3"),
        "gram.json",
    ),
    Benchmark(
        "posterior",
        "the posterior takes a fraction of the time of neural-tangents, and is as accurate",
        "posterior",
        ("--json", "{out}/posterior.json"),
        ("--repeats", "2"),  # the claim is of 5,000 points
        "posterior.json",
    ),
    Benchmark(
        "tightness",
        "each bound holds; this is how far each is from the truth",
        "bound_tightness",
        ("--out", "{out}"),
        (),
        "bound_tightness.json",
    ),
    Benchmark(
        "training",
        "an ensemble trains in a fraction of the time that PyTorch needs one by one",
        "training",
        ("--json", "{out}/training.json"),
        ("--dimensions", "1"),
        "training.json",
    ),
    Benchmark(
        "tangent",
        "eigenvalues of a large network's kernel come from products alone, in little memory",
        "tangent",
        ("--json", "{out}/tangent.json"),
        ("--quick",),
        "tangent.json",
    ),
    Benchmark(
        "width",
        "the tangent kernel of finite networks tends to Θ, at the rate that theory says",
        "width",
        ("--json", "{out}/width.json"),
        ("--quick",),
        "width.json",
    ),
    Benchmark(
        "growth",
        "the tangent kernel of finite networks grows with |x| as theory says, or stays bounded",
        "growth",
        ("--json", "{out}/growth.json"),
        ("--width", "1024", "--seeds", "4"),
        "growth.json",
    ),
    Benchmark(
        "bound_vs_output",
        "with LayerNorm the output stays bounded, however far the input lies from the data",
        "bound_vs_output",
        ("--out", "{out}"),
        ("--quick",),
        "table.json",
        seeded=True,
        resumable=True,
    ),
    Benchmark(
        "peers",
        "each peer agrees with us as far as its own accuracy goes",
        "against_peers",
        ("--out", "{out}"),
        ("--quick",),
        "peers.json",
    ),
)
