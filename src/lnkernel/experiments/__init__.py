"""The paper's experiments, by name: `REGISTRY["toy"].run("out/toy", quick=True)`."""

from lnkernel.experiments.experiment import Experiment

REGISTRY: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "toy",
            "Three functions on a line, far outside the data",
            {
                "activation": "the networks' activation, e.g. gelu, tanh or 'Silu(beta=2.0)' (default: relu)"
            },
        ),
        Experiment("heatmaps", "The tangent kernel of narrow networks beside its limit"),
        Experiment(
            "protein",
            "Proteins larger than any in the training data",
            {
                "data": "CASP.csv of UCI, if it is not to be searched for or downloaded",
                "infinite_rows": "training rows of the infinitely wide networks, 10000 by default; 'all' adds those "
                "trained on all rows, for which every fit takes minutes",
                "norms": "LayerNorm in some of the places, with commas: none, first, last, all (default: all of them)",
                "only": "some of the methods, with commas: networks, trees, infinite (default: all of them)",
            },
        ),
        Experiment(
            "utkface",
            "Ages of a group of people that the training data do not have",
            {
                "features": "a .npz with features, age and ethnicity",
                "images": "a folder of UTKFace's images, to make features of",
            },
        ),
        Experiment("finetuning", "Fine-tuning beside the network that is linearized at its start"),
        Experiment(
            "linearized",
            "Networks and their linearizations on the eigenfunctions of their kernel",
            {"cifar": "a .npz with train_images, train_labels, test_images and test_labels"},
        ),
        Experiment(
            "alignment", "Networks of sines learn pictures: their tangent kernel turns to the edges"
        ),
        Experiment(
            "laplace",
            "Honest probabilities: Laplace's approximation, exact and by ELLA",
            {"cifar": "a .npz with pictures of CIFAR-10, if it is not to be searched for"},
        ),
        Experiment(
            "edge",
            "The tangent kernel at the edge of stability",
            {"cifar": "a .npz with pictures of CIFAR-10, if it is not to be searched for"},
        ),
        Experiment("asymptotics", "The law by which the loss of wide networks falls"),
        Experiment(
            "nonlinearity",
            "What LayerNorm alone can do with random labels",
            {"cifar": "a .npz with pictures of CIFAR-10, if it is not to be searched for"},
        ),
        Experiment(
            "images",
            "Kernels of dense and convolutional networks on images of any contrast",
            {"cifar": "a .npz with pictures of CIFAR-10, if it is not to be searched for"},
        ),
    )
}
"""All experiments, by name."""

__all__ = ["REGISTRY", "Experiment"]
