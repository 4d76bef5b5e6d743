"""The paper's experiments, by name: `REGISTRY["toy"].run("out/toy", quick=True)`."""

from lnkernel.experiments.experiment import Experiment

REGISTRY: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment("toy", "Three functions on a line, far outside the data"),
        Experiment("heatmaps", "The tangent kernel of narrow networks beside its limit"),
    )
}

__all__ = ["REGISTRY", "Experiment"]
