"""Infinitely wide networks as scikit-learn regressors."""

from __future__ import annotations

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from lnkernel.bounds import Bound, bound
from lnkernel.check.arrays import refuse_containers, refuse_masked
from lnkernel.sklearn.estimator import NTKEstimator
from lnkernel.types import MorePoints, Outputs, Points, Targets


class NTKRegressor(MultiOutputMixin, RegressorMixin, NTKEstimator):  # type: ignore[misc]  # untyped
    r"""$f(x) = \Theta(x, X)\,(\Theta(X, X) + \mathrm{noise}\cdot I)^{-1} y$: what infinitely wide networks,
    trained on the data, predict in the mean.

    Args:
        arch: the network, or its text, which `lnkernel.parse` reads. By default it is `mlp` with the
            words below; give one or the other.
        hidden: number of hidden layers.
        norm: which of them have a LayerNorm: None, "first", "last" or "all".
        activation: an activation, its name or its text: `"gelu"`, `"LeakyRelu(0.2)"`.
        W_std, b_std: standard deviations of the weights and biases of every Dense.
        kernel: "ntk", all layers are trained, or "nngp", the Bayesian network.
        noise: variance of the targets' noise, the only thing ever added to the diagonal. The
            default, 0, interpolates the data.
        merge_duplicates: whether equal inputs may occur where `noise` is 0. They are merged
            then, and their targets averaged, which is where training on the squared error ends.
            False makes them an error that names them. With noise every row counts by itself.

    After `fit` there are `posterior_`, the `Posterior` of the data; `arch_`, the network; `bound_`;
    and scikit-learn's `n_features_in_` and `feature_names_in_`.

    Nothing is scaled for you: put a `StandardScaler` in front, as for any network.

    >>> import numpy as np, lnkernel as lnk
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X = np.linspace(-5, 5, 40)[:, None]
    >>> model = make_pipeline(StandardScaler(), lnk.sklearn.NTKRegressor(noise=1e-4))
    >>> model = model.fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[0.5], [1e6]])).max() < model[-1].bound_.rkhs)
    True
    >>> lnk.sklearn.NTKRegressor(hidden=3, activation="gelu", noise=0.1)  # what a grid search prints
    NTKRegressor(activation='gelu', hidden=3, noise=0.1)
    """

    def fit(self, X: Points, y: Targets) -> NTKRegressor:
        """Factorise the Gram matrix of the inputs X (n, d), with targets y (n,) or (n, k).

        It raises `SingularGramError` where float64 cannot tell that matrix from a singular one.

        >>> import lnkernel as lnk
        >>> lnk.sklearn.NTKRegressor().fit([[1.0], [2.0], [2.0]], [0.0, 1.0, 3.0]).posterior_
        Posterior(kernel='ntk', points=2, dimension=1, outputs=1, noise=0.0)
        """
        refuse_containers("X", X)
        refuse_masked("y", y)
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        self._fit_posterior(X, y)
        self._bound: Bound | None = None
        return self

    def predict(self, X: MorePoints, return_std: bool = False) -> Outputs | tuple[Outputs, Outputs]:
        """The mean at the points X (m, d): (m,) or (m, k); with `return_std` also a standard deviation
        of the same shape.

        It is that of what the mean is the mean of: with kernel="ntk" the outputs of trained
        networks over their random starts (`Posterior.ensemble_variance`), with "nngp" the function
        given the data (`Posterior.variance`). Noise of the targets is not part of it.

        >>> import lnkernel as lnk
        >>> model = lnk.sklearn.NTKRegressor("mlp(norm='first')").fit([[1.0], [2.0]], [0.0, 1.0])
        >>> [part.round(3).tolist() for part in model.predict([[2.0], [0.0]], return_std=True)]
        [[1.0, -0.387], [0.0, 0.898]]
        """
        check_is_fitted(self)
        refuse_containers("X", X)
        points = validate_data(self, X, dtype=np.float64, reset=False)
        mean = np.asarray(self.posterior_.mean(points))
        if not return_std:
            return mean
        bayesian = self.kernel == "nngp"
        spread = self.posterior_.variance if bayesian else self.posterior_.ensemble_variance
        std = np.sqrt(np.asarray(spread(points)))
        return mean, std if mean.ndim == 1 else np.repeat(std[:, None], mean.shape[1], axis=1)

    @property
    def bound_(self) -> Bound:
        """`lnkernel.bound` of the data: how large a prediction can be, at whatever input.

        Computed when it is first asked for, because it takes the eigenvalues of the Gram matrix,
        which for thousands of points take longer than `fit`. There is none for kernel="nngp".

        >>> import lnkernel as lnk
        >>> model = lnk.sklearn.NTKRegressor().fit([[1.0], [2.0]], [0.0, 1.0])
        >>> model.predict([[-1e9]])[0] < model.bound_.rkhs < model.bound_.value
        True
        """
        check_is_fitted(self)
        if self.kernel != "ntk":
            raise AttributeError(  # scikit-learn's way to say that it does not exist
                f'bound_ speaks of networks trained as a whole, kernel="ntk"; this one has '
                f"kernel={self.kernel!r}."
            )
        if self._bound is None:
            self._bound = bound(self.posterior_)
        return self._bound
