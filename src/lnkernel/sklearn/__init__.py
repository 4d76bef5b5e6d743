"""Infinitely wide networks in scikit-learn; needs the extra `lnkernel[sklearn]`."""

from lnkernel.errors import MissingPackageError

try:
    import sklearn as _installed  # noqa: F401  # only whether it is there
except ImportError as problem:
    raise MissingPackageError("lnkernel.sklearn", "scikit-learn", "sklearn") from problem

from lnkernel.sklearn.classifier import NTKClassifier
from lnkernel.sklearn.kernel import NTKKernel
from lnkernel.sklearn.regressor import NTKRegressor

__all__ = ["NTKClassifier", "NTKKernel", "NTKRegressor"]
