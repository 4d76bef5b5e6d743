"""Reference kernels of neural-tangents, for tests that run without it.

    python -m benchmarks.peers.golden          # writes tests/peers/neural_tangents.npz
    python -m benchmarks.peers.golden --check  # compares it with what comes out now

The file holds everything that is needed to use it: the inputs `x`, whose `tags` say what is special
about each, `ntk` and `nngp` (one matrix for each network), the data `X`, `y` and the points `x2` of
posteriors with their `mean`, and `about`, a JSON text with the networks (`description.py`), the
command and the versions.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import lnkernel as lnk
from lnkernel import (
    Abs,
    Dense,
    LayerNorm,
    LeakyRelu,
    Node,
    PositivelyHomogeneous,
    RectifiedPower,
    Relu,
)

from .description import describe
from .environment import ROOT
from .kernel_peer import NeuralTangents

FILE = ROOT / "tests" / "peers" / "neural_tangents.npz"
COMMAND = "python -m benchmarks.peers.golden"
ACTIVATIONS: dict[str, PositivelyHomogeneous] = {
    "relu": Relu(),
    "leaky": LeakyRelu(0.2),
    "abs": Abs(),
    "square": RectifiedPower(2),
    "cube": RectifiedPower(3),
}
DEPTHS = {"relu": (1, 2, 3, 5, 10, 20), "leaky": (1, 3, 20), "abs": (1, 3, 20)}
DEPTHS |= {"square": (1, 2), "cube": (1, 2)}
BIASES = {"": 0.1, ", no bias": 0.0}
POSTERIORS = ("relu 2", "relu 2, no bias", "abs 3", "relu, LN first", "residual", "relu 20")


def architectures() -> dict[str, Node]:
    """Every kind of network that neural-tangents can express, by name."""
    table: dict[str, Node] = {}
    for end, b_std in BIASES.items():
        for name, act in ACTIVATIONS.items():
            for depth in DEPTHS[name]:
                table[f"{name} {depth}{end}"] = chain(depth, act, b_std)
        table |= {f"{name}{end}": arch for name, arch in norms(b_std).items()}
        table |= {f"{name}{end}": arch for name, arch in sums(b_std).items()}
    return table


def dense(b_std: float) -> Dense:
    return Dense(64, W_std=2**0.5, b_std=b_std)


def chain(
    depth: int, act: PositivelyHomogeneous, b_std: float, norm: LayerNorm | None = None
) -> lnk.Serial:
    """`depth` times (Dense, perhaps LayerNorm, activation), and a last Dense."""
    block = [dense(b_std), *([norm] if norm else []), act]
    return lnk.serial(*block * depth, dense(b_std))


def norms(b_std: float) -> dict[str, Node]:
    """LayerNorm after a Dense: in one layer, in all, with eps, with each activation."""
    first = chain(1, Relu(), b_std, LayerNorm()).layers[:-1]
    last = chain(1, Relu(), b_std).layers[:-1]
    return {
        "relu, LN first": lnk.serial(*first, *last, dense(b_std)),
        "relu, LN last": lnk.serial(*last, *first, dense(b_std)),
        "relu, LN all": chain(3, Relu(), b_std, LayerNorm()),
        "relu 20, LN all": chain(20, Relu(), b_std, LayerNorm(eps=1e-6)),
        "relu, LN eps": chain(2, Relu(), b_std, LayerNorm(eps=1e-2)),
        "abs, LN all": chain(3, Abs(), b_std, LayerNorm()),
        "leaky, LN all": chain(3, LeakyRelu(0.2), b_std, LayerNorm()),
        "square, LN all": chain(2, RectifiedPower(2), b_std, LayerNorm()),
    }


def sums(b_std: float) -> dict[str, Node]:
    """Residual blocks and a sum of two branches."""
    block = lnk.residual(dense(b_std), Relu(), dense(b_std))
    before = lnk.residual(LayerNorm(), dense(b_std), Relu(), dense(b_std))
    branches = lnk.parallel(
        lnk.serial(dense(b_std), Abs(), dense(b_std)),
        lnk.serial(dense(b_std), Relu(), dense(b_std)),
    )
    return {
        "residual": lnk.serial(dense(b_std), block, Relu(), dense(b_std)),
        "residual 10": lnk.serial(dense(b_std), *[block] * 10, Relu(), dense(b_std)),
        "residual, LN": lnk.serial(dense(b_std), before, before, LayerNorm(), Relu(), dense(b_std)),
        "parallel": lnk.serial(dense(b_std), branches, Relu(), dense(b_std)),
    }


def points() -> dict[str, np.ndarray]:
    """Inputs by what is special about them, all in relation to `x`, `y` and `z`."""
    rng = np.random.default_rng(0)
    x, y, z, step = rng.normal(size=(4, 3))
    return {
        "x": x,
        "y": y,
        "z": z,
        "x, 1e-3 apart": x + 1e-3 * step,
        "x, 1e-6 apart": x + 1e-6 * step,
        "x, 1e-9 apart": x + 1e-9 * step,
        "x, collinear": 2 * x,
        "x, collinear, rounded": np.pi * x,
        "x, antipodal": -x,
        "x, nearly antipodal": -x + 1e-7 * step,
        "y, far": 1e6 * y,
        "z, near zero": 1e-6 * z,
    }


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eight points with targets, and five more to predict at, the last one far away."""
    rng = np.random.default_rng(1)
    X, x2 = rng.normal(size=(8, 3)), rng.normal(size=(5, 3))
    x2[-1] *= 1e3
    return X, np.sin(X.sum(axis=1)), x2


def compute() -> dict[str, Any]:
    """What goes into the file, from neural-tangents as it is installed."""
    table, x, (X, y, x2) = architectures(), points(), data()
    inputs = np.stack(list(x.values()))
    found: dict[str, list[np.ndarray]] = {"ntk": [], "nngp": []}
    with NeuralTangents() as peer:
        for arch in table.values():
            peer.load(arch, inputs)
            for name, matrix in peer.kernels().items():
                found[name].append(matrix)
        means = [peer.posterior(table[name], X, y, x2)[1]["mean"] for name in POSTERIORS]
        about = {
            "command": COMMAND,
            "versions": peer.versions(),
            "architectures": {name: describe(arch) for name, arch in table.items()},
            "posteriors": POSTERIORS,
        }
    matrices = {name: np.stack(each) for name, each in found.items()}
    texts = {"tags": np.array(list(x)), "about": np.array(json.dumps(about))}
    return {**texts, "x": inputs, **matrices, "X": X, "y": y, "x2": x2, "mean": np.stack(means)}


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """What is not the same, array by array."""
    for name in sorted({*old, *new}):
        if name not in old or name not in new:
            yield f"{name}: in one of them only"
        elif old[name].shape != new[name].shape:
            yield f"{name}: {old[name].shape} and {new[name].shape}"
        elif old[name].dtype.kind != "f" and (old[name] != new[name]).any():
            yield f"{name}: other texts"
        elif old[name].dtype.kind == "f" and not np.array_equal(
            old[name], new[name], equal_nan=True
        ):
            yield f"{name}: differs by up to {np.nanmax(np.abs(old[name] - new[name])):.1e}"


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
    print(f"{len(new['ntk'])} networks, {options.out.stat().st_size // 1000} kB: {options.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
