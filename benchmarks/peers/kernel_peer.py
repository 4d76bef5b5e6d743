"""Ask a library for kernels and timings, from our own Python.

    with NeuralTangents() as peer:
        peer.load(arch, x)
        seconds = [peer.time() for _ in range(5)]
        theta = peer.kernels()["ntk"]

    NeuralTangents.once(arch, x)["ntk"]     # a process for one problem, file in, file out

An architecture is lnkernel's, or a description of one (`description.py`).
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .description import describe
from .environment import GPJAX, NEURAL_TANGENTS
from .process import Arrays, Peer, PeerFailedError, command


class KernelPeer(Peer):
    """A library with kernels, in a process that stays up: it can be timed in turns with ours."""

    def load(self, arch: Any, x: Any, x2: Any = None) -> float:
        """Take an architecture and inputs; seconds of the first evaluation, with compilation.

        Args:
            arch: an lnkernel architecture, or a description of one.
            x: inputs, one a row.
            x2: second inputs; without them the kernel is that of `x` with itself.
        """
        given = self.write_arrays("inputs.npz", **arrays(x=x, x2=x2))
        return float(self.ask("load", arch=as_description(arch), npz=given)["first"])

    def time(self) -> float:
        """Seconds of one warm evaluation."""
        return float(self.ask("time")["seconds"])

    def processor_time(self) -> float:
        """Processor seconds of one warm evaluation, of all its threads."""
        return float(self.ask("time")["processor"])

    def kernels(self) -> Arrays:
        """The kernels of what was loaded, `ntk` (if it has it) and `nngp`."""
        self.ask("save", npz=self.path("kernels.npz"))
        return self.read_arrays("kernels.npz")

    @classmethod
    def once(cls, arch: Any, x: Any, x2: Any = None, y: Any = None, repeats: int = 1) -> Arrays:
        """All that the script says of one problem: kernels, timings, perhaps a posterior mean."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "arch.json").write_text(json.dumps(as_description(arch)))
            np.savez(folder / "in.npz", **arrays(x=x, x2=x2, y=y))
            files = [folder / file for file in ("arch.json", "in.npz", "out.npz")]
            line = command(cls.environment, cls.script, *files, "--repeats", str(repeats))
            done = subprocess.run(line, capture_output=True, text=True, check=False)
            if done.returncode:
                raise PeerFailedError(done.stderr[-2000:])
            with np.load(folder / "out.npz") as found:
                return dict(found)


class NeuralTangents(KernelPeer):
    """NTK, timed, and NNGP of everything that `describe` can describe; posteriors."""

    environment, script = NEURAL_TANGENTS, "neural_tangents_kernel.py"

    def posterior(
        self, arch: Any, x: Any, y: Any, x2: Any, spread: bool = False
    ) -> tuple[float, Arrays]:
        """Seconds of a posterior given (x, y), predicting at x2; its `mean`, perhaps `variance`.

        The first call for an architecture and for shapes of data compiles.
        """
        given = self.write_arrays("data.npz", **arrays(x=x, y=y, x2=x2))
        made = self.path("made.npz")
        reply = self.ask("posterior", arch=as_description(arch), npz=given, spread=spread, out=made)
        return float(reply["seconds"]), self.read_arrays("made.npz")


class GPJax(KernelPeer):
    """NNGP of one Dense and one rectified power of degree 0, 1 or 2."""

    environment, script = GPJAX, "gpjax_kernel.py"


def as_description(arch: Any) -> dict[str, Any]:
    return arch if isinstance(arch, dict) else describe(arch)


def arrays(**given: Any) -> dict[str, Any]:
    """The arrays that are not None, in float64."""
    return {name: np.asarray(a, np.float64) for name, a in given.items() if a is not None}
