"""Where data enters: float64 exactly or not at all, and a clear message for bad data.

64-bit mode is a scope in every test here, on or off, because the process is shared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from own_process import warned_lines

import lnkernel as lnk
from lnkernel.errors import InputError, KernelOverflowError, PrecisionError

# few architectures and shapes, because each compiles anew
LINE = lnk.nngp(lnk.serial(lnk.Dense(1)))  # x.x'/d
THETA = lnk.ntk(lnk.mlp(hidden=1, norm="first"))
ON_INPUT = lnk.serial(lnk.LayerNorm(), lnk.Dense(1))

X = np.array([[1.0, 2.0], [3.0, -1.0], [3.0, -1.0 + 1e-9]])
POINTS = np.array([[0.1, 0.2], [-3.0, 7.0]])
TO_PASTE = re.escape('jax.config.update("jax_enable_x64", True)')


@contextmanager
def x64(on: bool) -> Iterator[None]:
    """64-bit mode on or off, and proof that nothing inside has changed it."""
    with jax.enable_x64(on):
        before = dict(jax.config.values)
        yield
        assert jnp.result_type(float) == (jnp.float64 if on else jnp.float32)
        assert dict(jax.config.values) == before


both_modes = pytest.mark.parametrize("on", [False, True], ids=["x64 off", "x64 on"])


# ---- bad data ----

REAL = "x: expected real numbers, got dtype {}. "
RANK = (
    "x: expected a 2-D array of shape (points, dimension), got shape {}. For one point write "
    "x[None, :]; for points on a line write x[:, None]."
)
EMPTY = (
    "x: expected at least one point and one dimension, got shape {}. Check how the data was loaded "
    "or filtered."
)
FINITE = (
    "x: expected finite numbers, got {} at point {}, coordinate {}. Drop such points, e.g. "
    "x[np.isfinite(x).all(1)]."
)
EXACT = "x: expected numbers that float64 holds exactly, got dtype {} with values that it does not."
RAGGED = "x: expected an array of numbers, got a list that is no array ("

BAD: dict[str, tuple[Any, str]] = {
    "NaN": ([[1.0, 2.0], [3.0, math.nan]], FINITE.format("nan", 1, 1)),
    "infinity": ([[1.0, math.inf], [3.0, 4.0]], FINITE.format("inf", 0, 1)),
    "minus infinity": ([[1.0, 2.0], [-math.inf, 4.0]], FINITE.format("-inf", 1, 0)),
    "the first of several": ([[1.0, 2.0], [math.inf, math.nan]], FINITE.format("inf", 1, 0)),
    "NaN in float32": (np.float32([[math.nan, 1.0]]), FINITE.format("nan", 0, 0)),
    "NaN in float16": (np.float16([[1.0, math.nan]]), FINITE.format("nan", 0, 1)),
    "NaN in longdouble": (np.longdouble([[1.0], [math.nan]]), FINITE.format("nan", 1, 0)),
    "NaN in a jax.Array": (jnp.asarray([[1.0, math.nan]]), FINITE.format("nan", 0, 1)),
    "a number": (1.0, RANK.format("()")),
    "one point": ([1.0, 2.0], RANK.format("(2,)")),
    "three axes": (np.ones((1, 2, 3)), RANK.format("(1, 2, 3)")),
    "one point in a jax.Array": (jnp.ones(3), RANK.format("(3,)")),
    "nothing": ([], RANK.format("(0,)")),
    "no points": (np.empty((0, 2)), EMPTY.format("(0, 2)")),
    "no dimensions": ([[]], EMPTY.format("(1, 0)")),
    "ragged": ([[1.0], [1.0, 2.0]], RAGGED),
    "strings": ([["1.0", "2.0"]], REAL.format("<U3")),
    "None": (None, "x: expected an array of numbers, got None. Give a value for x."),
    "objects": (np.array([[1.0, None]], dtype=object), REAL.format("object")),
    "integers without bound": (
        [[10**400, 1]],
        REAL.format("object") + "Some entry is no number, or an integer of more than 64 bits",
    ),
    "complex": (
        [[1.0 + 0j, 2.0]],
        REAL.format("complex128") + "Give the real and the imaginary part as coordinates",
    ),
    "a dict": (
        {"a": 1.0},
        "x: expected an array of numbers, got a dict. Put its numbers into the columns",
    ),
    "dates": (np.array([["2024-01-01"]], dtype="datetime64[D]"), REAL.format("datetime64[D]")),
    "2^53 + 1": (np.array([[2**53 + 1, 1]]), EXACT.format("int64")),
    "-2^53 - 1": (np.array([[-(2**53) - 1, 1]]), EXACT.format("int64")),
    "2^63 - 1": (np.array([[2**63 - 1, 1]]), EXACT.format("int64")),
    "2^64 - 1": (np.array([[2**64 - 1, 1]], dtype=np.uint64), EXACT.format("uint64")),
}


@both_modes
@pytest.mark.parametrize(("x", "message"), BAD.values(), ids=BAD)
def test_bad_data(x: Any, message: str, on: bool) -> None:
    for call in (LINE, LINE.diagonal):
        with x64(on), pytest.raises(InputError, match=f"^{re.escape(message)}"):
            call(x)


@pytest.mark.filterwarnings("error")
def test_a_generator() -> None:
    """Without a warning of JAX's beside the message."""
    message = r"got a generator\. Write list\(...\) around it"
    network = lnk.finite.network(lnk.mlp(hidden=1, width=4), 1, rngs=0)
    calls: tuple[Callable[[Any], Any], ...] = (
        *(LINE, LINE.diagonal, network, lnk.tangent(network).gram),
        lambda x: lnk.posterior(lnk.mlp(), [[1.0]], x),
    )
    for call in calls:
        with pytest.raises(InputError, match=message):
            call(number for number in [1.0])


RAGGED_LIST = [[1.0], [1.0, 2.0]]


def test_ragged_lists_for_finite_networks() -> None:
    arch = lnk.mlp(hidden=1, width=4)
    network, y = lnk.finite.network(arch, 1, rngs=0), [0.0, 1.0]
    calls: tuple[Callable[[], Any], ...] = (
        lambda: lnk.finite.empirical_ntk(network, RAGGED_LIST),
        lambda: lnk.tangent(network).gram(RAGGED_LIST),
        lambda: lnk.finite.train_ensemble(arch, RAGGED_LIST, y, steps=1),
        lambda: lnk.finite.train_ensemble(arch, [RAGGED_LIST] * 2, [y] * 2, seeds=2, steps=1),
    )
    for call in calls:
        with pytest.raises(InputError, match="Give every point the same number of coordinates"):
            call()


def test_long_floats_for_finite_networks() -> None:
    network = lnk.finite.network(lnk.mlp(hidden=1, width=4), 1, rngs=0)
    np.testing.assert_array_equal(network(np.longdouble([[0.5]])), network([[0.5]]))


def test_bad_data_is_a_value_error() -> None:
    assert issubclass(InputError, ValueError) and issubclass(InputError, lnk.errors.LnkernelError)


@pytest.mark.parametrize("case", ["NaN", "infinity", "one point", "no points", "strings", "ragged"])
def test_the_second_argument_is_named(case: str) -> None:
    x2, message = BAD[case]
    named = message.replace("x:", "x2:", 1).replace("x[", "x2[").replace("(x)", "(x2)")
    with pytest.raises(InputError, match=f"^{re.escape(named)}"):
        LINE(POINTS, x2)


def test_dimensions_must_agree() -> None:
    message = (
        "x2: expected the dimension of x, 2, got shape (4, 3). Give both the same number of "
        "columns."
    )
    with pytest.raises(InputError, match=re.escape(message)):
        LINE(POINTS, np.ones((4, 3)))


LONG = np.finfo(np.longdouble)
wide_longdouble = pytest.mark.skipif(LONG.eps >= 2.0**-52, reason="longdouble is float64 here")


@wide_longdouble
@pytest.mark.parametrize("value", ["0.1", "1e400", "1e-400"])
def test_longdouble_that_does_not_fit(value: str) -> None:
    x = np.array([[np.longdouble(value), 1]])
    with pytest.raises(InputError, match=re.escape(EXACT.format(x.dtype))):
        LINE(x)


# ---- data that is converted ----

INTEGERS = [[3, -7], [2, 100]]
EXACTLY: dict[str, Any] = {
    "float64": POINTS,
    "list": POINTS.tolist(),
    "tuple": tuple(map(tuple, POINTS)),
    "float32": POINTS.astype(np.float32),
    "float16": POINTS.astype(np.float16),
    "longdouble that fits": POINTS.astype(np.longdouble),
    "the other byte order": POINTS.astype(POINTS.dtype.newbyteorder()),
    "not contiguous": np.repeat(POINTS, 2, axis=1)[:, ::2],
    "read-only": np.broadcast_to(POINTS[0], (2, 2)),
    "subnormal float16": np.float16([[6e-8, 0], [0, 6e-8]]),
    "jax float32": jnp.asarray(POINTS, jnp.float32),
    "jax bfloat16": jnp.asarray(POINTS, jnp.bfloat16),
    "jax int32": jnp.asarray(INTEGERS),
    "integers": INTEGERS,
    "int8": np.int8(INTEGERS),
    "uint64": np.uint64([[2**53, 0], [2**63, 1]]),
    "int64 beyond 2^53": np.array([[2**53 + 2, -(2**62)], [1, 2]]),
    "bool": [[True, False], [True, True]],
}


def _exact(x: Any) -> np.ndarray:
    """x.x'/2 in rational numbers, rounded once."""
    rows = [[Fraction(float(entry)) for entry in row] for row in np.asarray(x)]
    return np.array([[float((a[0] * b[0] + a[1] * b[1]) / 2) for b in rows] for a in rows])


@both_modes
@pytest.mark.parametrize("x", EXACTLY.values(), ids=EXACTLY)
def test_converted_exactly(x: Any, on: bool) -> None:
    with x64(on):
        k, ends = np.asarray(LINE(x)), np.asarray(LINE.diagonal(x))
    exact = _exact(x)
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert k.dtype == ends.dtype == np.float64
    assert np.all(np.abs(k - exact) <= 4e-16 * scale)
    assert np.all(np.abs(ends - np.diag(exact)) <= 4e-16 * np.diag(exact))


def test_both_arguments_are_converted() -> None:
    x, x2 = POINTS.astype(np.float32), POINTS.astype(np.float16)
    mixed, double = LINE(x, x2), LINE(x.astype(float), x2.astype(float))
    assert np.array_equal(mixed, double)
    assert not np.array_equal(mixed, LINE(POINTS, POINTS.copy()))


# ---- LayerNorm on the raw input ----

TOO_THIN = "x: expected at least 2 dimensions, because a LayerNorm acts on the raw input, got 1"
ON_INPUT_SOMEWHERE = {
    "first": ON_INPUT,
    "behind an Identity": lnk.serial(lnk.Identity(), lnk.LayerNorm(1e-5), lnk.Dense(1)),
    "behind an RMSNorm": lnk.serial(lnk.RMSNorm(), lnk.LayerNorm(), lnk.Dense(1)),
    "in a branch": lnk.parallel(lnk.Dense(1), lnk.serial(lnk.LayerNorm(), lnk.Dense(1))),
}


@pytest.mark.parametrize("arch", ON_INPUT_SOMEWHERE.values(), ids=ON_INPUT_SOMEWHERE)
def test_layer_norm_on_one_dimension_is_refused(arch: lnk.Node) -> None:
    kernel, line = lnk.ntk(arch), np.ones((3, 1))
    for call in (kernel, kernel.diagonal, lambda x: kernel(x, 2 * x)):
        with pytest.raises(InputError, match=re.escape(TOO_THIN)):
            call(line)
    with x64(True), pytest.raises(InputError, match=re.escape(TOO_THIN)):
        jax.eval_shape(kernel, line)


def test_layer_norm_on_two_dimensions_warns() -> None:
    kernel = lnk.nngp(ON_INPUT)
    for call in (kernel, kernel.diagonal):
        with pytest.warns(UserWarning, match="raw input of 2 dimensions: with eps=0 it "):
            call(X)
    with pytest.warns(UserWarning):
        k = kernel(X)
    assert np.array_equal(k, np.outer([-1, 1, 1], [-1, 1, 1]))


def test_that_warning_points_at_the_caller(tmp_path: Path) -> None:
    script = """import lnkernel as lnk
kernel = lnk.nngp(lnk.serial(lnk.LayerNorm(), lnk.Dense(1)))
kernel([[1.0, 2.0]])
kernel.diagonal([[1.0, 2.0]])
lnk.kernels(kernel.arch)([[1.0, 2.0]])
"""
    assert warned_lines(tmp_path, script, "UserWarning") == [3, 4, 5]


@pytest.mark.parametrize("before", [[], [lnk.RMSNorm()]], ids=["alone", "behind RMSNorm"])
def test_layer_norm_on_the_raw_input_gives_correlations(before: list[lnk.Node]) -> None:
    """And from three dimensions on it does so without a warning."""
    x = np.array([[1.0, 2.0, 4.0], [5.0, -1.0, 2.0], [0.5, 0.5, -3.0]])
    k = lnk.nngp(lnk.serial(*before, ON_INPUT))(x)
    assert np.allclose(k, np.corrcoef(x), rtol=0, atol=1e-15)


# ---- the range of float64 ----


TOO_LONG = np.array([[1.0, 2.0], [1e200, 1e200], [3.0, 4.0]])
OVERFLOWS: dict[str, tuple[str, Callable[[], Any]]] = {
    "symmetric": ("x", lambda: LINE(TOO_LONG)),
    "diagonal": ("x", lambda: LINE.diagonal(TOO_LONG)),
    "first argument": ("x", lambda: LINE(TOO_LONG, X)),
    "second argument": ("x2", lambda: LINE(X, TOO_LONG)),
}


@both_modes
@pytest.mark.parametrize(("name", "call"), OVERFLOWS.values(), ids=OVERFLOWS)
def test_overflow_names_the_point(name: str, call: Callable[[], Any], on: bool) -> None:
    message = f"{name}: the kernel's exact value at point 1 (norm 1.41e+200) with itself is not in "
    with x64(on), pytest.raises(KernelOverflowError, match=f"^{re.escape(message)}"):
        call()


def test_overflow_is_an_overflow_error() -> None:
    assert issubclass(KernelOverflowError, OverflowError)
    assert "put a LayerNorm before the last layer" in str(KernelOverflowError("x", 0, [1e200]))


def test_the_largest_value_in_range() -> None:
    largest = math.sqrt(np.finfo(float).max / 2) * (1 - 1e-15)
    k = LINE(np.full((2, 2), largest))
    assert np.all(np.isfinite(k)) and np.all(k > 0.9 * np.finfo(float).max / 2)


def _far_away(cosine: float) -> float:
    """Θ of `THETA` where the first bias is negligible, written out."""
    angle = math.acos(cosine)
    relu = (math.sin(angle) + (math.pi - angle) * cosine) / math.pi
    return relu + 0.1**2 + cosine * (math.pi - angle) / math.pi


@pytest.mark.parametrize("scale", [1e100, 2.0**600, 2.0**1000, 1.7e308], ids=repr)
def test_layer_norm_brings_huge_values_into_range(scale: float) -> None:
    x = np.array([[1.0, 1.0], [1.0, -0.5], [0.25, 1.0]])
    unit = x / np.linalg.norm(x, axis=1)[:, None]
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, 1.0)
    expected = np.vectorize(_far_away)(cosines)
    assert np.allclose(THETA(scale * x), expected, rtol=0, atol=1e-14)
    assert np.allclose(THETA.diagonal(scale * x), 2.01, rtol=0, atol=1e-14)


# ---- float64 in and out, whatever the mode ----


@both_modes
def test_results_are_float64(on: bool) -> None:
    with x64(on):
        results = [
            LINE(POINTS),
            LINE(POINTS, X),
            LINE.diagonal(POINTS),
            *lnk.kernels(LINE.arch)(POINTS),
            LINE(jnp.asarray(POINTS)),
        ]
    for result in results:
        assert isinstance(result, np.ndarray) and result.flags.writeable
        assert result.dtype == np.float64
    assert [result.shape for result in results[:3]] == [(2, 2), (2, 3), (2,)]


def test_the_mode_changes_no_digit() -> None:
    with x64(False):
        off = LINE(POINTS)
    with x64(True):
        on = LINE(POINTS)
    assert np.array_equal(off, np.asarray(on))


def test_double_arrays_are_taken_with_the_mode_off() -> None:
    with x64(True):
        double = jnp.asarray(POINTS)
    with x64(False):
        assert np.array_equal(LINE(double), LINE(POINTS))


# ---- inside the user's own transformations ----


def _theta_of(W_std: Any) -> lnk.Kernel:
    return lnk.ntk(lnk.mlp(hidden=1, norm="first", W_std=W_std))


def _value_beside_gradient(x: Any) -> Any:
    def total(x: Any) -> tuple[Any, Any]:
        theta = THETA(x)
        return theta.sum(), theta

    return jax.jit(jax.grad(total, has_aux=True))(x)[1]


def _double(x: Any) -> Any:
    """A float64 `jax.Array`, which exists also where the mode is off."""
    with jax.enable_x64(True):
        return jnp.asarray(x)


DOUBLE = _double(X)

# each gives THETA(X), from inside a transformation
INSIDE: dict[str, Callable[[], Any]] = {
    "jit": lambda: jax.jit(THETA)(X),
    "jit of the second argument": lambda: jax.jit(lambda x2: THETA(X, x2))(X),
    "vmap": lambda: jax.jit(jax.vmap(lambda p: THETA(p[None], X)[0]))(X),
    "grad": lambda: _value_beside_gradient(X),
    "jit of a hyperparameter": lambda: jax.jit(lambda s: _theta_of(s)(X))(2**0.5),
    "jit of an architecture": lambda: jax.jit(lambda arch: lnk.ntk(arch)(X))(THETA.arch),
    "concrete data in jit": lambda: jax.jit(lambda: THETA(X))(),
    "a concrete list in jit": lambda: jax.jit(lambda: THETA(X.tolist()))(),
    "a concrete jax.Array in jit": lambda: jax.jit(lambda: THETA(_double(X)))(),
    "a jax.Array from outside in jit": lambda: jax.jit(lambda: THETA(DOUBLE))(),
    "diagonal in jit": lambda: jax.jit(THETA.diagonal)(X),
    "diagonal of concrete data in jit": lambda: jax.jit(lambda: THETA.diagonal(X))(),
}


@pytest.mark.parametrize("inside", INSIDE.values(), ids=INSIDE)
def test_inside_a_transformation_with_the_mode_off(inside: Callable[[], Any]) -> None:
    with x64(False), pytest.raises(PrecisionError, match=TO_PASTE):
        inside()


@pytest.mark.parametrize("inside", INSIDE.values(), ids=INSIDE)
def test_inside_a_transformation_with_the_mode_on(inside: Callable[[], Any]) -> None:
    plain = THETA(X)
    with x64(True):
        result = inside()
    assert isinstance(result, jax.Array) and result.dtype == jnp.float64
    expected = plain if result.ndim == 2 else np.diag(plain)
    assert np.allclose(result, expected, rtol=0, atol=1e-14)


def test_the_precision_error_says_what_happened() -> None:
    error = PrecisionError()
    assert isinstance(error, RuntimeError)
    for part in ("float64", "cut to float32", "with jax.enable_x64(True):", "Outside of transf"):
        assert part in str(error)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (
            jax.ShapeDtypeStruct((2,), np.float64),
            RANK.format("(2,)")[:-1]
            + "; over the points of a jax.vmap write lambda x: f(x[None])[0].",
        ),
        (jax.ShapeDtypeStruct((0, 2), np.float64), EMPTY.format("(0, 2)")),
        (jax.ShapeDtypeStruct((2, 2), np.complex128), REAL.format("complex128")),
    ],
    ids=["rank", "empty", "complex"],
)
def test_shapes_are_checked_inside_transformations(x: Any, message: str) -> None:
    for call in (LINE, LINE.diagonal):
        with x64(True), pytest.raises(InputError, match=re.escape(message)):
            jax.eval_shape(call, x)


def test_dimensions_must_agree_inside_transformations() -> None:
    with x64(True), pytest.raises(InputError, match="x2: expected the dimension of x, 2, got shap"):
        jax.eval_shape(LINE, POINTS, np.ones((4, 3)))


def test_narrow_data_inside_transformations_is_computed_in_double() -> None:
    x = POINTS.astype(np.float32)
    with x64(True):
        k = jax.jit(LINE)(x)
    assert k.dtype == jnp.float64
    assert np.allclose(np.asarray(k), _exact(x), rtol=1e-15, atol=0)


@pytest.mark.parametrize("case", ["NaN", "infinity", "ragged", "strings", "2^53 + 1"])
def test_concrete_data_is_checked_although_a_hyperparameter_is_traced(case: str) -> None:
    x, message = BAD[case]
    with x64(True), pytest.raises(InputError, match=re.escape(message)):
        jax.eval_shape(lambda s: _theta_of(s)(x), 1.5)
