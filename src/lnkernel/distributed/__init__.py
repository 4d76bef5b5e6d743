"""The same program in many processes, on one host or many: JAX's own engine, started and checked.

Start one process for each host, let each call `initialize()`, and give `sharding=mesh()` to `ntk(arch)(...)` and
`posterior(...)`. docs/scale.md shows it for SLURM, Kubernetes and a single machine.
"""

from lnkernel.distributed.start import initialize, mesh

__all__ = ["initialize", "mesh"]
