"""What the regressor and the classifier have in common: their parameters, and the posterior."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from lnkernel.arch import Elementwise, Node
from lnkernel.gp.duplicates import merge_duplicates
from lnkernel.gp.posterior import posterior
from lnkernel.sklearn.networks import ACTIVATION, B_STD, HIDDEN, NORM, W_STD, choose_network
from lnkernel.types import Points, Targets


class NTKEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """An infinitely wide network with parameters that scikit-learn can read, set and print."""

    def __init__(
        self,
        arch: Node | str | None = None,
        *,
        hidden: int = HIDDEN,
        norm: str | None = NORM,
        activation: Elementwise | str = ACTIVATION,
        W_std: float = W_STD,
        b_std: float = B_STD,
        kernel: str = "ntk",
        noise: float = 0.0,
        merge_duplicates: bool = True,
    ):
        self.arch = arch
        self.hidden = hidden
        self.norm = norm
        self.activation = activation
        self.W_std = W_std
        self.b_std = b_std
        self.kernel = kernel
        self.noise = noise
        self.merge_duplicates = merge_duplicates

    def _fit_posterior(self, X: Points, y: Targets) -> None:
        """Set `arch_` and `posterior_`."""
        self.arch_ = choose_network(
            self.arch,
            hidden=self.hidden,
            norm=self.norm,
            activation=self.activation,
            W_std=self.W_std,
            b_std=self.b_std,
        )
        if self.merge_duplicates and not np.any(self.noise):
            X, y = merge_duplicates(X, y)
        self.posterior_ = posterior(self.arch_, X, y, kernel=self.kernel, noise=self.noise)
