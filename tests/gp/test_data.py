"""Bad data, duplicates, singular matrices, too little memory: what the errors say."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.errors import DuplicateInputsError, InputError, NotEnoughMemoryError
from lnkernel.errors import SingularGramError as Singular
from lnkernel.gp import mixed_precision
from lnkernel.gp.diagnosis import nearest
from lnkernel.gp.duplicates import different_points
from lnkernel.gram import memory

LN = lnk.mlp(hidden=1, norm="first")
UNBIASED = lnk.mlp(hidden=1, b_std=0.0)
X = np.array([[1.0, 0.0], [0.5, 2.0], [-1.0, 1.0]])
Y = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.empty((0, 2)), [], r"X: expected at least one point"),
        (X[:, 0], Y, r"X: expected a 2-D array"),
        (
            X,
            Y[:2],
            r"y: expected one target per point of X, shape \(3,\) or \(3, k\), got .*\(2,\)",
        ),
        (X, Y[None], r"got shape \(1, 3\)\. Write y\.T"),
        (X, Y[:, None, None], r"got shape \(3, 1, 1\)"),
        (X, 1.0, r"got shape \(\)"),
        (X, np.empty((3, 0)), r"got shape \(3, 0\)"),
        (X, [1.0, math.nan, 2.0], r"y: expected finite numbers, got nan for point 1"),
        (X, [[1, 2], [3, math.inf], [0, 0]], r"y: expected finite numbers, got inf for point 1"),
        (X * np.array([1, np.nan]), Y, r"X: expected finite numbers"),
        (X, ["a", "b", "c"], r"y: expected real numbers"),
        (X, Y * 1j, r"y: expected real numbers"),
        (X, [[1.0], [1.0, 2.0], [3.0]], r"y: expected an array of numbers"),
    ],
)
def test_bad_data(x: Any, y: Any, message: str) -> None:
    for call in (lambda: lnk.posterior(LN, x, y), lambda: lnk.merge_duplicates(x, y)):
        with pytest.raises(InputError, match=message):
            call()


@pytest.mark.parametrize("noise", [-1e-9, math.nan, math.inf, "some", None, True])
def test_bad_noise(noise: Any) -> None:
    with pytest.raises(InputError, match="noise: expected a variance, at least 0"):
        lnk.posterior(LN, X, Y, noise=noise)


@pytest.mark.parametrize("kernel", ["NTK", "rbf", None, lnk.ntk(LN)])
def test_bad_kernel(kernel: Any) -> None:
    with pytest.raises(InputError, match='kernel: expected "ntk" or "nngp"'):
        lnk.posterior(LN, X, Y, kernel=kernel)


def test_bad_inputs_to_predict_at() -> None:
    post = lnk.posterior(LN, X, Y)
    spreads = post.ensemble_variance, post.ensemble_covariance
    for method in (post.mean, post.variance, post.std, post.covariance, *spreads):
        with pytest.raises(InputError, match="x: expected the dimension of the training inputs, 2"):
            method([[1.0]])
        with pytest.raises(InputError, match="x: expected a 2-D array"):
            method([1.0, 2.0])
    with pytest.raises(InputError, match="x: expected finite numbers"):
        post.mean([[math.nan, 0.0]])


def test_what_comes_in_is_neither_kept_nor_changed() -> None:
    x, y = X.copy(), Y.copy()
    post = lnk.posterior(LN, x, y)
    before = post.mean(X)
    x[:], y[:] = 0, 0
    assert np.array_equal(post.mean(X), before)
    assert np.array_equal(lnk.posterior(LN, X, Y).mean(X), before)


def test_integers_and_zero_targets() -> None:
    post = lnk.posterior(LN, [[1, 0], [0, 1]], [0, 0])
    assert (post.mean(X) == 0).all() and post.mean(X).dtype == np.float64


# ------------------------------------------------------------------ duplicates


def test_duplicates_are_named() -> None:
    x = np.array([[1.0, 0.0], [2.0, 1.0], [1.0, -0.0], [2.0, 1.0], [3.0, 3.0], [1.0, 0.0]])
    with pytest.raises(DuplicateInputsError) as caught:
        lnk.posterior(LN, x, [1.0, 2.0, 1.0, 5.0, 0.0, 1.0])
    message = str(caught.value)
    assert "0 = 2 = 5 (equal targets); 1 = 3 (different targets)" in message
    assert "lnk.merge_duplicates(X, y)" in message and "noise=" in message
    assert caught.value.groups == [[0, 2, 5], [1, 3]] and caught.value.agree == [True, False]


def test_many_duplicates_are_not_all_written_out() -> None:
    with pytest.raises(DuplicateInputsError) as caught:
        lnk.posterior(LN, np.repeat(np.arange(8.0), 6)[:, None], np.zeros(48))
    message = str(caught.value)
    assert "0 = 1 = 2 = 3 = ... (6 points)" in message and "; and 3 more" in message
    assert len(caught.value.groups) == 8


def test_points_that_occur_once_are_not_listed() -> None:
    firsts, repeated = different_points(np.array([[3.0], [0.0], [1.0], [-0.0], [2.0], [1.0]]))
    assert firsts.tolist() == [0, 1, 2, 4]
    assert repeated == [[1, 3], [2, 5]]


def test_duplicates_with_noise_are_allowed() -> None:
    post = lnk.posterior(LN, np.concatenate([X, X]), np.concatenate([Y, Y]), noise=0.1)
    assert np.isfinite(post.mean(X)).all()


def test_merged() -> None:
    x = [[2.0], [0.0], [2.0], [-0.0], [1.0], [2.0]]
    y = np.array([[1.0, 0.1], [4.0, 0.2], [2.0, 0.1], [5.0, 0.2], [7.0, 0.3], [6.0, 0.1]])
    merged_x, merged_y = lnk.merge_duplicates(x, y)
    assert merged_x.tolist() == [[2.0], [0.0], [1.0]]
    assert merged_y.tolist() == [[3.0, 0.1], [4.5, 0.2], [7.0, 0.3]]  # equal ones stay as they are
    assert lnk.merge_duplicates(x, y[:, 0])[1].tolist() == [3.0, 4.5, 7.0]
    lnk.posterior(LN, *lnk.merge_duplicates(x, y))


def test_merging_does_not_overflow() -> None:
    assert lnk.merge_duplicates([[1.0]] * 2, [1.7e308, -1.7e308])[1].tolist() == [0.0]


def test_merged_in_64_bit_mode() -> None:
    with jax.enable_x64(True):
        x, y = lnk.merge_duplicates([[1.0], [1.0]], [1.0, 2.0])
    assert isinstance(x, np.ndarray) and y.dtype == np.float64 and float(y[0]) == 1.5


# ------------------------------------------------------------------ singular matrices


def test_near_duplicates() -> None:
    x = np.concatenate([np.random.default_rng(0).normal(size=(10, 3)), np.ones((2, 3))])
    x[11, 0] += 2**-52
    with pytest.raises(Singular) as caught:
        lnk.posterior(LN, x, np.zeros(12))
    error, message = caught.value, str(caught.value)
    assert error.nearest == (10, 11, 2**-52) and error.alike[:2] == (10, 11)
    assert abs(error.lambda_min) < error.resolution < 1e-12 and not error.scaled
    for part in ("10 and 11, at distance 2.22e-16", "merge_duplicates", "noise=", "float64"):
        assert part in message
    assert f"{error.lambda_min:.2g}" in message and f"{error.resolution:.2g}" in message


def test_the_kernel_knows_better_than_the_distance() -> None:
    """Without bias LayerNorm forgets the length: 0 and 3 are the same, 1 and 2 only near."""
    x = np.array([[1.0, 2.0], [-1.0, 3.0], [-1.0, 3.1], [100.0, 200.0]])
    with pytest.raises(Singular) as caught:
        lnk.posterior(lnk.mlp(hidden=1, b_std=0.0, norm="first"), x, np.zeros(4))
    assert caught.value.nearest[:2] == (1, 2) and caught.value.alike[:2] == (0, 3)
    assert "Most alike to the kernel are 0 and 3, equal up to rounding" in str(caught.value)


def test_collinear_points_without_bias() -> None:
    """The kernel of a line through 0 has rank 2: its diagonal is not constant, so it is scaled."""
    x = np.array([[1.0], [2.0], [-1.0]])
    with pytest.raises(Singular, match="after scaling to unit diagonal") as caught:
        lnk.posterior(UNBIASED, x, np.zeros(3))
    assert caught.value.scaled and caught.value.alike[:2] == (0, 1)
    assert np.isfinite(lnk.posterior(UNBIASED, x, Y, noise=1e-3).mean(x)).all()


def test_a_zero_of_the_kernel() -> None:
    with pytest.raises(Singular, match="The kernel of point 1 with itself is 0: drop this point"):
        lnk.posterior(UNBIASED, [[1.0], [0.0]], [0.0, 1.0])
    with pytest.raises(Singular, match="point 0 with itself is 0"):
        lnk.posterior(UNBIASED, [[0.0]], [0.0])


def test_singular_though_the_factor_exists() -> None:
    """Cholesky's method may get through on rounding noise: the result would be noise as well.

    Nearer and nearer pairs: each is either refused, or interpolated to the digits that its
    smallest eigenvalue leaves: 0.61 eps/lambda_min was the largest error found.
    """
    refused = 0
    for distance in 2.0 ** -np.arange(30, 53):
        x = np.array([[1.0, 1.0], [1.0 + distance, 1.0], [0.0, 2.0]])
        try:
            post = lnk.posterior(LN, x, Y)
        except Singular as error:
            refused += 1
            assert error.lambda_min <= 10 * error.resolution
        else:
            smallest = np.linalg.eigvalsh(lnk.ntk(LN)(x))[0]
            np.testing.assert_allclose(post.mean(x), Y, rtol=3 * np.finfo(float).eps / smallest)
    assert 0 < refused < 23


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_nearest_pair(scale: float) -> None:
    x = np.random.default_rng(5).normal(size=(2100, 3))
    x[2050] = x[17] + [1e-7, 0, 0]
    i, j, distance = nearest(x * scale)
    assert (i, j) == (17, 2050)
    assert distance == pytest.approx(1e-7 * scale, rel=1e-6)


def test_nearest_of_one() -> None:
    assert nearest(np.ones((1, 2))) is None


# ------------------------------------------------------------------ memory

LINUX = Path("/proc/meminfo").exists()


def test_more_points_than_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(200_000.0)[:, None]
    monkeypatch.setattr(memory, "available_memory", lambda: 2**30)
    with pytest.raises(NotEnoughMemoryError) as caught:
        lnk.posterior(LN, x, x[:, 0])
    assert "Half of the Gram matrix of 200000 points needs 149.4 GiB" in str(caught.value)
    assert "1.0 GiB are available" in str(caught.value) and isinstance(caught.value, MemoryError)
    assert caught.value.needed >= 4 * 200_000**2
    monkeypatch.setattr(memory, "available_memory", lambda: 2**34)
    with pytest.raises(NotEnoughMemoryError, match=r"about 46340 fit"):  # not the 67,000 of memory
        lnk.posterior(LN, x, x[:, 0])


def test_a_preconditioner_without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(3000.0)[:, None]
    monkeypatch.setattr(memory, "available_memory", lambda: 2**20)
    message = (
        r"The preconditioner of rank 750 for 3000 points needs .* a lower rank= \(about 10 has"
    )
    with pytest.raises(NotEnoughMemoryError, match=message):
        lnk.posterior(LN, x, x[:, 0], noise=0.1, tolerance=0.1)


def test_available_memory() -> None:
    total = 1024 * int(Path("/proc/meminfo").read_text().split()[1]) if LINUX else 2**60
    assert 2**20 < memory.available_memory() <= total


PEAK = """
import sys
from pathlib import Path
import numpy as np
import lnkernel as lnk
from lnkernel.gp import mixed_precision

n, arch = int(sys.argv[1]), lnk.mlp(hidden=1, norm="first")
mixed_precision.MOST = int(sys.argv[2])
x = np.random.default_rng(0).normal(size=(n, 3))

def kilobytes(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))

lnk.ntk(arch)(x)                                       # compiled, and given back
lnk.posterior(arch, x[:1500], x[:1500, 0], noise=0.1)  # the work space of LAPACK
Path("/proc/self/clear_refs").write_text("5")          # from here on a new peak is recorded
before = kilobytes("VmRSS")
post = lnk.posterior(arch, x, x[:, 0])
print((kilobytes("VmHWM") - before) * 1024)
print(abs(post.mean(x[:50]) - x[:50, 0]).max())
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells the peak")
@pytest.mark.parametrize(
    ("n", "most", "bytes_per_entry"),
    [
        (4000, 0, 8),  # in place, as it is done for more points than single precision is for
        (4000, mixed_precision.MOST, 12),
        pytest.param(20_000, mixed_precision.MOST, 8, marks=pytest.mark.slow),
    ],
)
def test_the_memory_that_factorising_takes(n: int, most: int, bytes_per_entry: int) -> None:
    """A second copy would show as a second matrix: of 128 MB, of 3.2 GB.

    The tiles of the kernel and LAPACK's work space take some 40 to 60 MB, whatever n is.
    """
    command = [sys.executable, "-c", PEAK, str(n), str(most)]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    peak, error = map(float, said.stdout.split())
    assert (bytes_per_entry - 1) * n * n < peak < bytes_per_entry * n * n + 100e6
    assert error < 1e-8
