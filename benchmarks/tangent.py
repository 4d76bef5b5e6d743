"""The spectrum of a network's tangent kernel without its Jacobian: time, memory, agreement.

    python -m benchmarks.tangent [--inputs 5000] [--json out/tangent.json]

A network with a million parameters; the 20 largest eigenvalues of K = J Jᵀ by Lanczos' method on
products, beside scipy's eigensolver on the dense matrix of `Tangent.gram`, each in a process of its
own. The claims: the eigenvalues agree within their residuals and the rounding of float32, and the
products take less than a tenth of the memory of the Jacobian.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.memory import peak

WIDTH, DIMENSION, PAIRS = 600, 784, 20
PREPARE = """
import numpy as np, lnkernel as lnk
network = lnk.finite.network(lnk.mlp(hidden=3, b_std=0.1), {dimension}, width={width}, rngs=0)
t = lnk.tangent(network)
x = np.random.default_rng(0).normal(size=({inputs}, {dimension})).astype(np.float32)
"""
CALLS = {
    "lanczos": 's = t.spectrum(x, {pairs}, method="lanczos")',
    "dense": 's = t.spectrum(x, {pairs}, method="dense")',
}
KEEP = '\nnp.savez("{path}", values=s.values, residuals=s.residuals, size=t.size, resolution=s.resolution)'


def measure(method: str, inputs: int) -> dict[str, object]:
    """The eigenvalues by one method, with seconds and bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "spectrum.npz")
        prepare = PREPARE.format(dimension=DIMENSION, width=WIDTH, inputs=inputs)
        call = CALLS[method].format(pairs=PAIRS) + KEEP.format(path=path)
        memory, seconds = peak(prepare, call)
        found = np.load(path)
        return {
            "method": method,
            "seconds": seconds,
            "bytes": memory,
            "parameters": int(found["size"]),
            "values": found["values"].tolist(),
            "residuals": found["residuals"].tolist(),
            "resolution": float(found["resolution"]),
        }


def main() -> int:
    """Both methods, a line for each, and whether the claims hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=5000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = {method: measure(method, given.inputs) for method in CALLS}
    jacobian = given.inputs * int(str(rows["lanczos"]["parameters"])) * 4
    for row in rows.values():
        print(f"{row['method']:8} {row['seconds']:8.1f} s  {row['bytes']} bytes")
    lanczos, dense = (np.array(rows[method]["values"]) for method in CALLS)
    allowed = np.array(rows["lanczos"]["residuals"]) + float(str(rows["dense"]["resolution"]))
    agree = bool((np.abs(lanczos - dense) <= allowed).all())
    memory = rows["lanczos"]["bytes"]
    small = memory is None or int(str(memory)) < jacobian / 10
    print(f"the Jacobian would take {jacobian} bytes; a tenth is kept: {small}; agree: {agree}")
    print(f"largest relative difference {np.abs(lanczos / dense - 1).max():.1e}")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps({"rows": list(rows.values()), "agree": agree}, indent=1))
    return 0 if agree and small else 1


if __name__ == "__main__":
    sys.exit(main())
