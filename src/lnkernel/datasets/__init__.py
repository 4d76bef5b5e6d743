"""The data of the experiments. A file is found, or downloaded; otherwise it says what to put where."""

from lnkernel.datasets.proteins import Proteins, protein
from lnkernel.datasets.utk import Faces, utkface

__all__ = ["Faces", "Proteins", "protein", "utkface"]
