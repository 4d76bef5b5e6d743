"""The data of the experiments. A file is found, or downloaded; otherwise an error says what to put where."""

from lnkernel.datasets.cifar import Cifar, cifar
from lnkernel.datasets.mnist import mnist
from lnkernel.datasets.pictures import Pictures
from lnkernel.datasets.proteins import Proteins, protein
from lnkernel.datasets.scenes import edges, scene
from lnkernel.datasets.utk import Faces, utkface

__all__ = [
    "Cifar",
    "Faces",
    "Pictures",
    "Proteins",
    "cifar",
    "edges",
    "mnist",
    "protein",
    "scene",
    "utkface",
]
