"""The kernels of infinitely wide networks as kernels of scikit-learn's Gaussian processes."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from sklearn.gaussian_process import kernels as sklearn_kernels

from lnkernel.arch import Node
from lnkernel.errors import InputError
from lnkernel.gp.posterior import KERNELS
from lnkernel.gram.kernel import Kernel
from lnkernel.sklearn.networks import as_network
from lnkernel.types import MorePoints, Points

MatrixWithGradient = tuple[Float64[np.ndarray, "n n"], Float64[np.ndarray, "n n 0"]]


class NTKKernel(sklearn_kernels.Kernel):  # type: ignore[misc]  # scikit-learn is not typed
    r"""$\Theta(x, x')$, or $K(x, x')$, as a kernel of scikit-learn.

    Args:
        arch: the network, or its text, which `lnkernel.parse` reads; by default
            `mlp(hidden=2, norm="first")`.
        kernel: "ntk", $\Theta$, or "nngp", $K$.

    It goes into `GaussianProcessRegressor`, `GaussianProcessClassifier`, `KernelRidge` and `SVR`,
    and into sums and products with scikit-learn's own kernels. The network is fixed: it adds no
    hyperparameter to `theta`, so the optimizer fits what stands around it, such as the scale and
    the noise of `ConstantKernel() * NTKKernel(arch) + WhiteKernel()`.

    >>> import numpy as np, lnkernel as lnk
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> X, arch = np.linspace(-2, 2, 9)[:, None], lnk.mlp(hidden=1, norm="first")
    >>> kernel = lnk.sklearn.NTKKernel(arch, kernel="nngp")
    >>> model = GaussianProcessRegressor(kernel, alpha=0.01).fit(X, np.sin(X[:, 0]))
    >>> post = lnk.posterior(arch, X, np.sin(X[:, 0]), kernel="nngp", noise=0.01)
    >>> mean, std = model.predict([[0.5]], return_std=True)
    >>> bool(np.allclose(mean, post.mean([[0.5]])) and np.allclose(std, post.std([[0.5]])))
    True
    """

    def __init__(self, arch: Node | str | None = None, kernel: str = "ntk"):
        self.arch = arch
        self.kernel = kernel

    def __call__(
        self, X: Points, Y: MorePoints | None = None, eval_gradient: bool = False
    ) -> Float64[np.ndarray, "n m"] | MatrixWithGradient:
        """The matrix of the kernel between X (n, d) and Y (m, d), by default X: (n, m), float64.

        With `eval_gradient` also its gradient in `theta`, (n, n, 0): nothing, as `theta` is empty.
        """
        if eval_gradient and Y is not None:
            raise ValueError(
                "Gradient can only be evaluated when Y is None."
            )  # scikit-learn's text
        matrix = np.asarray(self._function(X, Y))
        return (matrix, np.empty((*matrix.shape, 0))) if eval_gradient else matrix

    def diag(self, X: Points) -> Float64[np.ndarray, " n"]:
        """The kernel of every point with itself."""
        return np.asarray(self._function.diagonal(X))

    def is_stationary(self) -> bool:
        """False: it depends on more than the difference of two points."""
        return False

    def __repr__(self) -> str:
        return f"NTKKernel({as_network(self.arch)!r}, kernel={self.kernel!r})"

    @property
    def _function(self) -> Kernel:
        if self.kernel not in KERNELS:
            raise InputError("kernel", '"ntk" or "nngp"', repr(self.kernel), 'Take "ntk"')
        return Kernel(as_network(self.arch), (self.kernel,))
