r"""ELLA: Laplace's approximation in the few directions that matter (Deng, Zhou and Zhu 2022).

From M training inputs, one output each, the rows $J_M$ and the eigenpairs of $K_M = J_M J_M^T$ give the
directions $V = J_M^T u/\sqrt\lambda$, which are orthonormal. The features $\Psi(x) = J(x) V$ come by forward
products, and with $G = \sum_i \Psi_i^T \Lambda_i \Psi_i + \tau$ the covariance is $\Psi G^{-1} \Psi^T$. It is
below the exact one in the order of matrices, because the variance outside of the directions is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax import Array
from jaxtyping import Float64, Integer

from lnkernel.check.numbers import positive_integer
from lnkernel.errors import InputError
from lnkernel.gram.memory import demand_memory
from lnkernel.tangents import products
from lnkernel.tangents.differential import Differential
from lnkernel.tangents.evidence import Evidence
from lnkernel.tangents.function import Apply, Function
from lnkernel.tangents.laplace import Laplace, own_products, squared_distance, standard_normal
from lnkernel.tangents.likelihoods import Likelihood
from lnkernel.tangents.model import Tree

SAMPLES = 512  # for the probabilities on validation data


@dataclass(frozen=True, eq=False, repr=False)
class NystromLaplace(Laplace):
    """Laplace's approximation in some directions of the parameters.

    Attributes:
        used: training inputs that were taken into account; all, unless stopped early.
        losses: on the validation data, (inputs taken so far, −log p): where it stopped is the least.
    """

    _basis: Tree  # (directions, ...) for every parameter
    _precision: Float64[np.ndarray, "r r"]  # G
    used: int
    losses: list[tuple[int, float]]

    def _covariance(self, x: np.ndarray, k: int, *, full: bool) -> np.ndarray:
        half = _half(self._precision, features(self._tangent, x, self._basis))
        if not full:
            return own_products(half)
        rows = half.reshape(len(x) * k, -1)
        return (rows @ rows.T).reshape(len(x), k, len(x), k)


@dataclass(frozen=True)
class OneOutput:
    """The model as a function of inputs that end in the number of an output: it gives that output."""

    apply: Apply
    shape: tuple[int, ...]

    def __call__(self, params: Tree, rest: Tree, z: Array) -> Array:
        x, output = z[:, :-1].reshape(1, *self.shape), z[0, -1].astype(jnp.int32)
        return jnp.ravel(self.apply(params, rest, x))[output]


class Validation(NamedTuple):
    """Data that tell when to stop, with what the model says of them."""

    outputs: Float64[np.ndarray, "v k"]
    features: Float64[np.ndarray, "v k r"]
    targets: np.ndarray
    normal: Float64[np.ndarray, "samples k"]

    def loss(self, likelihood: Likelihood, precision: Float64[np.ndarray, "r r"]) -> float:
        """The mean of −log p with this G."""
        covariance = covariance_of(self.features, precision)
        return likelihood.predictive(self.outputs, covariance, self.targets, self.normal)


def nystrom_laplace(
    tangent: Differential,
    x: np.ndarray,
    y: np.ndarray,
    likelihood: Likelihood,
    prior_precision: float | None,
    prior_mean: float,
    basis: Tree,
    validation: tuple[np.ndarray, np.ndarray] | None,
    check_every: int,
    seed: int,
) -> NystromLaplace:
    """G over the training inputs in a random order, with the validation loss on the way."""
    if validation is not None and prior_precision is None:
        raise InputError(
            "prior_precision",
            "a number where validation data say when to stop",
            "None",
            "Give a number, or leave out the validation data",
        )
    values = _values(tangent, x)
    (n, k), size = values.shape, jax.tree.leaves(basis)[0].shape[0]
    held = None
    if validation is not None:
        normal = standard_normal(None, SAMPLES, k)
        psi = features(tangent, validation[0], basis)
        held = Validation(_values(tangent, validation[0]), psi, validation[1], normal)
    order, data = np.random.default_rng(seed).permutation(n), np.zeros((size, size))
    stops: list[tuple[int, float, np.ndarray]] = []  # inputs so far, loss, G
    for first in range(0, n, check_every):
        some = order[first : first + check_every]
        data += likelihood.curvature(values[some], features(tangent, x[some], basis))
        if held is not None and prior_precision is not None:
            done = first + len(some)  # with so many the prior counts as much as with all of them
            precision = data + done / n * prior_precision * np.eye(size)
            stops.append((done, held.loss(likelihood, precision), precision))
    evidence = Evidence(
        likelihood.log_likelihood(values, y),
        squared_distance(tangent.params, prior_mean),
        np.maximum(np.linalg.eigvalsh(data), 0.0),
    )
    tau = evidence.best() if prior_precision is None else prior_precision
    last = (n, 0.0, data + tau * np.eye(size))
    used, _, precision = min(stops, key=lambda stop: stop[1], default=last)
    losses = [(done, loss) for done, loss, _ in stops]
    return NystromLaplace(
        tangent, likelihood, tau, evidence(tau), lambda: evidence, basis, precision, used, losses
    )


def features(tangent: Differential, x: Any, basis: Tree) -> Float64[np.ndarray, "m k r"]:
    """Ψ(x) = J(x) V: (m, k, r)."""
    with tangent.open(("x", x)) as (function, (points,)):
        return products.features(function, points, basis, tangent.batch_size).astype(np.float64)


def directions(
    tangent: Differential, x: np.ndarray, y: np.ndarray, k: int, rank: int, m: int, seed: int
) -> Tree:
    """Orthonormal directions of the parameters, (r, ...) for every one of them, from m inputs."""
    chosen, outputs = draw_rows(y, m, k, seed)
    some = x[chosen]
    single = _single_output(tangent, some.shape[1:])
    rows = np.concatenate([some.reshape(len(some), -1), outputs[:, None]], 1)
    values, vectors = scipy.linalg.eigh(single.gram(rows).astype(np.float64))
    noise = len(rows) * float(jnp.finfo(tangent.dtype).eps) * values[-1]
    kept = [i for i in range(len(values) - 1, -1, -1) if values[i] > noise][:rank]
    if not kept:
        raise InputError(
            "X", "inputs at which the gradient is not zero", "none", "Choose more parameters by wrt"
        )
    demand_memory(
        tangent.size,
        2 * len(kept),
        f"A set of {len(kept)} directions",
        1,
        remedy="Take a lower rank",
    )
    columns = [single.vjp(rows, vectors[:, i] / np.sqrt(values[i])) for i in kept]
    with jax.enable_x64(tangent.dtype == np.float64):
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *columns)


def as_subsample(m: int | None, rank: int, n: int) -> int:
    """How many of the n inputs the directions come from; by default ten for each.

    >>> as_subsample(None, rank=20, n=5000), as_subsample(None, rank=20, n=50)
    (200, 50)
    """
    if m is None:
        return min(n, 10 * rank)
    if not rank <= positive_integer("subsample", m) <= n:
        expected = (
            f"from {rank}, the rank, to {n} inputs" if rank <= n else f"a rank of at most {n}"
        )
        raise InputError("subsample", expected, f"{m!r} for the rank {rank}", "Lower the rank")
    return int(m)


def as_pair(name: str, value: Any) -> tuple[Any, Any]:
    """Inputs and targets that came as a pair."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InputError(
            name, "a pair (inputs, targets)", type(value).__name__, f"Write {name}=(x, y)"
        )
    return value[0], value[1]


def draw_rows(
    y: np.ndarray, m: int, k: int, seed: int
) -> tuple[Integer[np.ndarray, " m"], Integer[np.ndarray, " m"]]:
    """The rows of J that directions come from: m of the inputs, and one of the k outputs for each.

    >>> inputs, outputs = draw_rows(np.array([0, 0, 0, 1]), m=2, k=2, seed=0)
    >>> 3 in inputs, outputs.shape                          # as many of each class as there are
    (True, (2,))
    """
    rng = np.random.default_rng(seed)
    return _draw_balanced(y, m, rng), rng.integers(k, size=m)


def _single_output(tangent: Differential, shape: tuple[int, ...]) -> Differential:
    model = tangent._model
    old = model.function
    function = Function(OneOutput(old.apply, shape), old.params, old.rest, 0)
    return replace(tangent, _model=model._replace(function=function, structured=False, joint=None))


def _draw_balanced(y: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """m of the inputs; of classes as equally many as there are of each."""
    shuffled = rng.permutation(len(y))
    if y.ndim == 2:
        return shuffled[:m]
    labels, place = y[shuffled], np.empty(len(y), int)
    for label in np.unique(labels):
        here = np.flatnonzero(labels == label)
        place[here] = np.arange(len(here))
    return shuffled[np.argsort(place, kind="stable")[:m]]


def _half(
    precision: Float64[np.ndarray, "r r"], psi: Float64[np.ndarray, "m k r"]
) -> Float64[np.ndarray, "m k r"]:
    """Ψ times the inverse of a factor of G, so that it times its transpose is Ψ G⁻¹ Ψᵀ."""
    factor = scipy.linalg.cholesky(precision, lower=True)
    rows = psi.reshape(-1, psi.shape[2])
    return scipy.linalg.solve_triangular(factor, rows.T, lower=True).T.reshape(psi.shape)


def covariance_of(
    psi: Float64[np.ndarray, "m k r"], precision: Float64[np.ndarray, "r r"]
) -> Float64[np.ndarray, "m k k"]:
    """Ψ G⁻¹ Ψᵀ at every input.

    >>> covariance_of(np.ones((1, 1, 1)), np.array([[4.0]]))
    array([[[0.25]]])
    """
    return own_products(_half(precision, psi))


def _values(tangent: Differential, x: np.ndarray) -> Float64[np.ndarray, "n k"]:
    with tangent.open(("X", x)) as (function, (points,)):
        return products.values(function, points, tangent.batch_size).astype(np.float64)
