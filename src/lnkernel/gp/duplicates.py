"""Inputs that occur more than once: found before anything is factorised, merged on request."""

from __future__ import annotations

import numpy as np

from lnkernel.check.arrays import Data, as_data
from lnkernel.errors import DuplicateInputsError
from lnkernel.gp.noise import Variance
from lnkernel.types import DifferentPoints, Outputs, Points, Targets


def different_points(x: np.ndarray) -> tuple[np.ndarray, list[list[int]]]:
    """The indices at which different points occur first, in their order; and all indices of each point that occurs
    more than once, in the order of the first ones.

    NumPy compares numbers, so -0.0 equals 0.0, and sorts; the order comes from the first indices. Points that occur
    once, which may be a million, are never looked at one by one.
    """
    _, firsts, which, counts = np.unique(
        x, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    together, ends = np.argsort(which.ravel(), kind="stable"), np.cumsum(counts)
    order = np.argsort(firsts)
    repeated = order[counts[order] > 1]
    groups = [together[ends[group] - counts[group] : ends[group]].tolist() for group in repeated]
    return firsts[order], groups


def refuse_duplicates(data: Data, noise: Variance = 0.0) -> None:
    """Refuse inputs that occur more than once without noise; the error names each of them."""
    exact = np.broadcast_to(np.equal(noise, 0), len(data.x))
    if not exact.any():
        return
    _, groups = different_points(data.x.reshape(len(data.x), -1))
    without_noise = ([i for i in group if exact[i]] for group in groups)
    repeated = [group for group in without_noise if len(group) > 1]
    if repeated:
        agree = [bool((data.y[group] == data.y[group[0]]).all()) for group in repeated]
        raise DuplicateInputsError(repeated, agree)


def merge_duplicates(X: Points, y: Targets) -> tuple[DifferentPoints, Outputs]:
    r"""Every different point of X once, with the mean of its targets: $(X', y')$.

    The order is that of the first occurrences. Gram matrices of the result are not singular
    on account of equal inputs. Where the targets of equal inputs differ, they carry noise, and
    the mean of m of them has only 1/m of its variance: state it by `noise=` instead of
    merging if that matters.

    >>> import lnkernel as lnk
    >>> X, y = lnk.merge_duplicates([[1.0], [2.0], [1.0]], [0.0, 5.0, 1.0])
    >>> X.tolist(), y.tolist()
    ([[1.0], [2.0]], [0.5, 5.0])
    """
    data = as_data(X, y)
    firsts, repeated = different_points(data.x)
    merged = data.y[firsts]
    for group in repeated:
        merged[np.searchsorted(firsts, group[0])] = _mean(data.y[group])
    return data.x[firsts], merged[:, 0] if data.one_output else merged


def _mean(rows: np.ndarray) -> np.ndarray:
    """The mean of the rows: exactly the first where all are equal, and never an overflow."""
    shares = rows / len(rows)
    return np.asarray(rows[0] + (shares - shares[0]).sum(axis=0))
