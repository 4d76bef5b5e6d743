"""Reference kernels of neural-tangents for images and sequences, for tests that run without it.

    python -m benchmarks.peers.golden_images          # writes tests/peers/neural_tangents_images.npz
    python -m benchmarks.peers.golden_images --check  # compares it with what comes out now

The file holds the inputs, `images` (n, height, width, channels) and `sequences` (n, length, channels), and `ntk` and
`nngp`, one matrix for each network; `about` is a JSON text with the networks (`description.py`), which inputs each
takes, the command and the versions.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import lnkernel as lnk
from lnkernel import (
    Abs,
    Attention,
    AvgPool,
    Conv,
    Dense,
    Erf,
    Flatten,
    GlobalAvgPool,
    LayerNorm,
    LeakyRelu,
    Node,
    PositionalEmbedding,
    Relu,
    SumPool,
    serial,
)

from .description import describe
from .environment import ROOT
from .golden import differences
from .kernel_peer import NeuralTangents

FILE = ROOT / "tests" / "peers" / "neural_tangents_images.npz"
COMMAND = "python -m benchmarks.peers.golden_images"


def conv(filter: tuple[int, ...] = (3, 3), **options: Any) -> Conv:
    return Conv(16, filter, **{"W_std": 1.3, "b_std": 0.2, **options})


def architectures() -> dict[str, Node]:
    """Networks on images; those on sequences have names that say so."""
    dense = Dense(1, W_std=1.2, b_std=0.3)
    ends = {"flat": (Flatten(), dense), "pooled": (GlobalAvgPool(), dense)}
    table: dict[str, Node] = {}
    for end, last in ends.items():
        bodies: dict[str, tuple[Node, ...]] = {
            "same": (conv(), Relu(), conv(), Relu()),
            "valid": (conv(padding="VALID"), Relu(), conv((2, 2), padding="VALID"), Relu()),
            "circular": (conv(padding="CIRCULAR"), Relu(), conv(padding="CIRCULAR"), Relu()),
            "strides": (conv(strides=2), Relu(), conv((2, 3)), Relu()),
            "strides, circular": (conv(strides=(1, 2), padding="CIRCULAR"), Relu(), conv(), Relu()),
            "no bias": (conv(b_std=0.0), LeakyRelu(0.2), conv(b_std=0.0), Abs()),
            "LN": (conv(), LayerNorm(), Relu(), conv(), LayerNorm(eps=1e-3), Relu()),
            "LN all": (
                conv(),
                LayerNorm(axes="all"),
                Relu(),
                conv(),
                LayerNorm(1e-3, axes="all"),
                Relu(),
            ),
            "average": (conv(), Relu(), AvgPool((2, 2)), conv(), Relu()),
            "average, same": (conv(), Relu(), AvgPool((3, 2), (2, 1), "SAME"), conv(), Relu()),
            "sum": (conv(), Relu(), SumPool((2, 2)), conv(), Relu()),
            "dense inside": (conv(), Relu(), Dense(16, W_std=1.4, b_std=0.1), Erf()),
            "residual": (conv(), lnk.residual(Relu(), conv(), Relu(), conv()), Relu()),
        }
        table |= {f"{name}, {end}": serial(*body, *last) for name, body in bodies.items()}
        sequences: dict[str, tuple[Node, ...]] = {
            "same": (conv((3,)), Relu(), conv((4,)), Relu()),
            "strides": (conv((3,), strides=2, padding="VALID"), Relu(), conv((2,)), Abs()),
            "circular": (conv((5,), padding="CIRCULAR"), LayerNorm(), Relu(), AvgPool((2,))),
        }
        sequences |= attentive()
        table |= {
            f"sequence, {name}, {end}": serial(*body, *last) for name, body in sequences.items()
        }
    return table


def attentive() -> dict[str, tuple[Node, ...]]:
    """Attention in all its forms, with embeddings for queries and keys, or for all."""

    def look(**options: Any) -> Attention:
        return Attention(16, 2, **{"QK_std": 0.7, "OV_std": 1.2, "b_std": 0.2, **options})

    first, random = Dense(16, W_std=1.3, b_std=0.2), {"weights": "identity", "scaling": "sqrt"}
    near = PositionalEmbedding(0.6, 2.0, 1.0)
    return {
        "attention at once": (look(), Relu()),
        "attention": (first, Relu(), look(), Relu(), look(b_std=0.0)),
        "attention, LN": (first, LayerNorm(), look(), LayerNorm(eps=1e-3), Relu()),
        "attention, identity": (first, look(weights="identity"), Relu()),
        "attention, relu": (first, look(weights="relu"), Relu()),
        "attention, abs": (first, look(weights="abs"), Relu()),
        "attention, random scores": (first, Relu(), look(**random), Relu()),
        "embedded keys": (first, look(embedding=PositionalEmbedding(0.6)), Relu()),
        "embedded keys, near": (first, Relu(), look(embedding=near), Relu()),
        "embedded keys, random scores": (first, look(**random, embedding=near), Relu()),
        "embedded": (first, PositionalEmbedding(0.6), look(), Relu()),
        "embedded, random scores": (first, near, look(**random), Relu()),
    }


def inputs() -> dict[str, np.ndarray]:
    """Few and small, since neural-tangents compares all pairs of positions."""
    rng = np.random.default_rng(2)
    images = rng.normal(size=(4, 6, 5, 3))
    images[2] *= 100.0
    images[3] = 0.5 * images[0]
    return {"images": images, "sequences": rng.normal(size=(3, 9, 4))}


def kind_of(name: str) -> str:
    return "sequences" if name.startswith("sequence") else "images"


def compute() -> dict[str, Any]:
    """What goes into the file, from neural-tangents as it is installed."""
    table, given = architectures(), inputs()
    found: dict[str, np.ndarray] = {}
    with NeuralTangents() as peer:
        for name, arch in table.items():
            peer.load(arch, given[kind_of(name)])
            found |= {f"{kernel}: {name}": matrix for kernel, matrix in peer.kernels().items()}
        about = {
            "command": COMMAND,
            "versions": peer.versions(),
            "architectures": {name: describe(arch) for name, arch in table.items()},
        }
    return {**given, **found, "about": np.array(json.dumps(about))}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--out", type=Path, default=FILE, help="the file")
    options = parser.parse_args(arguments)
    new = compute()
    if options.check:
        with np.load(options.out) as old:
            found = list(differences(old, new))
        print("\n".join(found) or f"{options.out} is what neural-tangents gives")
        return 1 if found else 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(options.out, **new)
    print(
        f"{len(architectures())} networks, {options.out.stat().st_size // 1000} kB: {options.out}"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
