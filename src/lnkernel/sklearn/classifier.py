"""Infinitely wide networks as scikit-learn classifiers."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Shaped
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from lnkernel.check.arrays import refuse_containers, refuse_masked
from lnkernel.errors import InputError
from lnkernel.sklearn.calibration import Calibration
from lnkernel.sklearn.estimator import NTKEstimator
from lnkernel.types import MorePoints, Points

Labels = Shaped[np.ndarray, " n"] | list[str] | list[int]


class NTKClassifier(ClassifierMixin, NTKEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    r"""$\hat c(x) = \mathrm{argmax}_c\, f_c(x)$, where
    $f = \Theta(x, X)\,(\Theta(X, X) + \mathrm{noise}\cdot I)^{-1} y$
    are infinitely wide networks trained by least squares on the classes as rows $y_i = e_{c_i} - 1/C$.

    Probabilities are $\mathrm{softmax}(\beta f(x))$. How sharp they are, $\beta$, is not read off the training
    data, which $f$ may interpolate, but off the prediction of each training point by all others, which
    is known without training again: $f_{-i}(x_i) = y_i - (A^{-1}y)_i/(A^{-1})_{ii}$. Far from the data
    $f$ is [bounded](bound.md) with a LayerNorm, and so no probability tends to 1 there.

    Args:
        arch: the network, or its text, which `lnkernel.parse` reads. By default it is `mlp` with the
            words below; give one or the other.
        hidden: number of hidden layers.
        norm: which of them have a LayerNorm: None, "first", "last" or "all".
        activation: an activation, its name or its text: `"gelu"`, `"LeakyRelu(0.2)"`.
        W_std, b_std: standard deviations of the weights and biases of every Dense.
        kernel: "ntk", all layers are trained, or "nngp", only the last is.
        noise: variance that is added to the diagonal, the only thing that ever is. The default,
            0, interpolates the data; more of it smooths.
        merge_duplicates: whether equal inputs may occur where `noise` is 0. They are merged
            then, and count as one point of all their classes. False makes them an error that names them.

    After `fit` there are `classes_`; `posterior_`, the `Posterior` of the data, with an output for every
    class; `arch_`, the network; `sharpness_`, which is $\beta$; and scikit-learn's `n_features_in_` and
    `feature_names_in_`.

    >>> import numpy as np, lnkernel as lnk
    >>> X = np.linspace(-3, 3, 40)[:, None]
    >>> model = lnk.sklearn.NTKClassifier(noise=0.1).fit(X, np.where(abs(X[:, 0]) < 1, "near", "far"))
    >>> model.predict([[0.0], [2.0]]).tolist()
    ['near', 'far']
    >>> model.predict_proba([[0.0], [1.0], [2.0]]).round(2)[:, 1].tolist()      # of "near"
    [0.99, 0.13, 0.01]
    """

    def fit(self, X: Points, y: Labels) -> NTKClassifier:
        """Factorise the Gram matrix of the inputs X (n, d) with labels y (n,), of at least two classes.

        It raises `SingularGramError` where float64 cannot tell that matrix from a singular one.

        >>> import lnkernel as lnk
        >>> lnk.sklearn.NTKClassifier().fit([[1.0], [2.0], [3.0]], ["a", "b", "c"]).posterior_
        Posterior(kernel='ntk', points=3, dimension=1, outputs=3, noise=0.0)
        """
        refuse_containers("X", X)
        refuse_masked("y", y)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, which = np.unique(y, return_inverse=True)
        many = len(self.classes_)
        if many < 2:
            raise InputError(
                "y",
                "labels of at least two classes",
                f"one class, {self.classes_.tolist()[0]!r}",
                "Check how the labels were selected",
            )
        self._fit_posterior(X, np.eye(many)[which] - 1 / many)
        self._calibration = Calibration(self.posterior_._fit)
        return self

    def predict(self, X: MorePoints) -> Shaped[np.ndarray, " m"]:
        """The class with the largest output at each of the points X (m, d): (m,).

        >>> import lnkernel as lnk
        >>> lnk.sklearn.NTKClassifier().fit([[1.0], [2.0]], [5, 7]).predict([[0.9], [2.5]]).tolist()
        [5, 7]
        """
        best = self._outputs(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: MorePoints) -> Float64[np.ndarray, "m classes"]:
        r"""$\mathrm{softmax}(\beta f(x))$ at the points X (m, d): a column for each of `classes_`.

        >>> import lnkernel as lnk
        >>> model = lnk.sklearn.NTKClassifier().fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])
        >>> bool(model.predict_proba([[1.0], [1e9]])[:, 1].max() < 0.95)     # four points prove little
        True
        """
        return self._calibration_of_fitted().probabilities(self._outputs(X))

    def predict_log_proba(self, X: MorePoints) -> Float64[np.ndarray, "m classes"]:
        """The logarithm of `predict_proba`.

        >>> import numpy as np, lnkernel as lnk
        >>> model = lnk.sklearn.NTKClassifier().fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])
        >>> bool(np.allclose(np.exp(model.predict_log_proba([[3.0]])), model.predict_proba([[3.0]])))
        True
        """
        return np.log(self.predict_proba(X))

    def decision_function(
        self, X: MorePoints
    ) -> Float64[np.ndarray, " m"] | Float64[np.ndarray, "m classes"]:
        """The outputs at the points X (m, d): (m, classes); for two classes, as is scikit-learn's habit, the
        second less the first: (m,).

        >>> import lnkernel as lnk
        >>> lnk.sklearn.NTKClassifier().fit([[1.0], [2.0]], [5, 7]).decision_function([[1.0], [2.0]]).round(6)
        array([-1.,  1.])
        """
        outputs = self._outputs(X)
        return outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs

    @property
    def sharpness_(self) -> float:
        r"""$\beta$, computed when it or a probability is first asked for, because it takes n³
        operations, and the factor in `fit` n³/3. It is 0 where points left out are predicted no better than by chance.

        >>> import lnkernel as lnk
        >>> lnk.sklearn.NTKClassifier().fit([[1.0], [2.0], [3.0]], [0, 1, 0]).sharpness_
        0.0
        """
        return self._calibration_of_fitted().sharpness

    def _outputs(self, X: MorePoints) -> Float64[np.ndarray, "m classes"]:
        check_is_fitted(self)
        refuse_containers("X", X)
        points = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(self.posterior_.mean(points))

    def _calibration_of_fitted(self) -> Calibration:
        check_is_fitted(self)
        return self._calibration
