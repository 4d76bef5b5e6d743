r"""LAPACK's rectangular full packed format: half of a symmetric matrix without gaps, at the speed of a whole one.

With k = n/2 for even n, the lower half of A stands in an array of n + 1 rows and k columns: the entry (i, j) with
$i \ge j$ at (i + 1, j) if j < k, and otherwise, transposed, at (j - k, i - k). For odd n and k = (n + 1)/2 the array
has n rows and k columns, and these places are (i, j) and (j - k, i - k + 1) (Gustavson, Waśniewski, Dongarra and
Langou 2010).
"""

from __future__ import annotations

import numpy as np
import scipy  # its parts load at their first use, so that `import lnkernel` stays quick

MOST = 46_340  # points: n (n + 1) is a 32-bit integer for LAPACK, as SciPy ships it


def make_array(n: int) -> np.ndarray:
    """Room for half of a symmetric matrix of n rows, in the order of LAPACK."""
    shape = (n, (n + 1) // 2) if n % 2 else (n + 1, n // 2)
    return np.empty(shape, order="F")


def write_rows(packed: np.ndarray, start: int, rows: np.ndarray) -> None:
    """Write the rows of A from `start` on. They are given up to the diagonal: (m, start + m) numbers."""
    m, stop = rows.shape
    _, k, shift = dimensions(packed)
    left = min(k, start)  # columns of the left part, all of whose entries are below the diagonal
    packed[start + shift : stop + shift, :left] = rows[:, :left]
    if start > k:
        packed[: start - k, start - k + 1 - shift : stop - k + 1 - shift] = rows[:, k:start].T
    for i in range(m):  # the last entries of each row, up to the diagonal
        row = start + i
        ends = row + 1
        if left < min(k, ends):
            packed[row + shift, left : min(k, ends)] = rows[i, left : min(k, ends)]
        if max(k, start) < ends:
            place = row - k + 1 - shift
            packed[max(k, start) - k : ends - k, place] = rows[i, max(k, start) : ends]


def factorise_in_place(packed: np.ndarray) -> bool:
    """Write the Cholesky factor over the matrix; False where there is none."""
    n, _, _ = dimensions(packed)
    numbers = packed.reshape(-1, order="F")  # a view
    _, failed = scipy.linalg.lapack.dpftrf(n, numbers, uplo="L", overwrite_a=1)
    return not failed


def diagonal_of(packed: np.ndarray) -> np.ndarray:
    """The diagonal of what is stored."""
    n, k, shift = dimensions(packed)
    first, second = np.arange(k), np.arange(n - k)
    return np.concatenate([packed[first + shift, first], packed[second, second + 1 - shift]])


def dimensions(packed: np.ndarray) -> tuple[int, int, int]:
    """n and k, and by how many rows the first columns are shifted."""
    rows, k = packed.shape
    odd = rows == 2 * k - 1
    return (rows, k, 0) if odd else (rows - 1, k, 1)
