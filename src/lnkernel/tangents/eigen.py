"""Three ways to a spectrum: of the matrix, by Lanczos on products, and from some of the inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import jax.numpy as jnp
import numpy as np
import scipy

from lnkernel.check.numbers import as_seed, positive_integer
from lnkernel.errors import InputError
from lnkernel.gram.memory import demand_memory
from lnkernel.tangents import gram as tiled
from lnkernel.tangents.differential import Differential
from lnkernel.tangents.spectrum import NO_GRADIENT, Spectrum
from lnkernel.types import Inputs

METHODS = ("auto", "dense", "lanczos", "nystrom")
DENSE = 4000  # rows of K, up to which the matrix is made
SOME = 20  # eigenvalues, where their number is not said and not all are found
TOLERANCE = 10.0  # of Lanczos, in units of the precision


def spectrum_of(
    tangent: Differential,
    x: Inputs,
    k: int | None,
    method: str,
    outputs: str,
    landmarks: int | None,
    seed: int,
) -> Spectrum:
    """The spectrum by the named method, or by the one that the number of rows suggests."""
    tiled.one_of("method", method, METHODS)
    tiled.one_of("outputs", outputs, tiled.OUTPUTS)
    as_seed(seed)
    if (landmarks is not None) != (method == "nystrom"):
        raise InputError(
            "landmarks",
            'a number of inputs with method="nystrom", and none without',
            f"landmarks={landmarks} with method={method!r}",
            'Write e.g. spectrum(x, 20, method="nystrom", landmarks=500)',
        )
    with tangent.open(("x", x)) as (function, (points,)):
        n, each = len(points), 1 if outputs == "mean" else function.outputs
    rows = n * each
    if method == "auto":
        method = "dense" if rows <= DENSE else "lanczos"
    most = rows if method == "dense" else rows - 1
    some = most if method == "dense" else min(SOME, most)
    wanted = some if k is None else positive_integer("k", k)
    if not 1 <= wanted <= most:
        raise InputError(
            "k", f"at most {most} of {rows} rows", f"{wanted}", 'All of them takes method="dense"'
        )
    if method == "dense":
        return _dense(tangent, points, wanted, outputs, each)
    demand_memory(rows, 3 * wanted + 20, "Lanczos' method", 1, remedy=f"Take fewer than k={wanted}")
    times = _flat_products(tangent, points, outputs, each)

    @cache
    def trace() -> float:
        return _trace(tangent, points, outputs)

    if trace() == 0:
        raise InputError(*NO_GRADIENT)
    if method == "lanczos":
        values, vectors = _lanczos(times, rows, wanted, float(jnp.finfo(tangent.dtype).eps), seed)
    else:
        assert landmarks is not None
        values, vectors = _nystrom(tangent, points, wanted, outputs, each, landmarks, seed)
    residuals = [
        float(np.linalg.norm(times(u) - value * u))
        for value, u in zip(values, vectors.T, strict=True)
    ]

    @cache
    def frobenius() -> float:
        with tangent.open(("x", points)) as (function, (given,)):
            way = tiled.choose_way(tangent.structured, function, "auto", outputs)
            return tiled.frobenius(function, way, given)

    return Spectrum(
        values,
        _by_input(vectors, n, each),
        np.array(residuals),
        resolution(tangent, rows, trace()),
        method,
        times,
        trace,
        frobenius,
    )


def _dense(tangent: Differential, x: np.ndarray, k: int, outputs: str, each: int) -> Spectrum:
    n, rows = len(x), len(x) * each
    demand_memory(rows, 4, "The eigendecomposition of the tangent kernel")
    matrix = tangent.gram(x, outputs=outputs).reshape(rows, rows).astype(np.float64)
    trace, frobenius = float(np.trace(matrix)), float(np.linalg.norm(matrix))
    some = None if k == rows else (rows - k, rows - 1)
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=some, check_finite=False)
    values, vectors = values[::-1].copy(), vectors[:, ::-1].copy()
    residuals = np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
    return Spectrum(
        values,
        _by_input(vectors, n, each),
        residuals,
        resolution(tangent, rows, trace),
        "dense",
        lambda v: matrix @ v,
        lambda: trace,
        lambda: frobenius,
    )


def _lanczos(
    times: Callable[[np.ndarray], np.ndarray], rows: int, k: int, eps: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The largest k pairs, by ARPACK's restarted Lanczos."""
    operator = scipy.sparse.linalg.LinearOperator((rows, rows), matvec=times, dtype=np.float64)
    start = np.random.default_rng(seed).standard_normal(rows)
    values, vectors = scipy.sparse.linalg.eigsh(
        operator, k=k, which="LA", v0=start, tol=TOLERANCE * eps
    )
    order = np.argsort(values)[::-1]
    return values[order], vectors[:, order]


def _nystrom(
    tangent: Differential, x: np.ndarray, k: int, outputs: str, each: int, m: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    r"""The pairs from m of the n inputs: $\lambda \approx \frac nm \lambda_m$, $u \propto K_{nm} u_m$."""
    n, chosen = len(x), positive_integer("landmarks", m)
    if not k <= chosen * each or chosen > n:
        raise InputError(
            "landmarks", f"from {-(-k // each)} to {n} inputs", repr(m), "Take more of the inputs"
        )
    some = x[np.sort(np.random.default_rng(seed).choice(n, chosen, replace=False))]
    demand_memory(n * each, 2, "The matrix of columns of the kernel", chosen * each)
    within = tangent.gram(some, outputs=outputs).reshape(chosen * each, -1).astype(np.float64)
    across = tangent.gram(x, some, outputs=outputs).reshape(n * each, -1).astype(np.float64)
    values, vectors = scipy.linalg.eigh(
        within, subset_by_index=(chosen * each - k, chosen * each - 1), check_finite=False
    )
    extended = across @ vectors[:, ::-1]
    return n / chosen * values[::-1], extended / np.linalg.norm(extended, axis=0)


def _flat_products(
    tangent: Differential, x: np.ndarray, outputs: str, each: int
) -> Callable[[np.ndarray], np.ndarray]:
    """K v for v of shape (rows,)."""
    times, shape = tangent.matvec(x, outputs=outputs), (len(x),) if each == 1 else (len(x), each)
    return lambda v: np.asarray(times(v.reshape(shape)), np.float64).ravel()


def _trace(tangent: Differential, x: np.ndarray, outputs: str) -> float:
    made = tangent.diagonal(x, outputs=outputs).astype(np.float64)
    return float(made.sum() if made.ndim == 1 else np.einsum("aoo->", made))


def resolution(tangent: Differential, rows: int, trace: float) -> float:
    """Rounding of the entries, in the model's precision, and of the eigensolver."""
    entries = 4 * float(jnp.finfo(tangent.dtype).eps)
    return (entries + rows * float(np.finfo(np.float64).eps)) * trace


def _by_input(vectors: np.ndarray, n: int, each: int) -> np.ndarray:
    return vectors if each == 1 else vectors.reshape(n, each, -1)
