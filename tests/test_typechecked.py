"""The checks of results against their types are on, know the sizes, and leave arguments alone."""

from __future__ import annotations

from typing import Any

import jaxtyping
import numpy as np
import pytest
from typechecked import results

import lnkernel as lnk
from lnkernel.errors import InputError
from lnkernel.gp.fit import Fit
from lnkernel.types import Covariance, Matrix, MorePoints, Outputs, Points

WRONG = jaxtyping.TypeCheckError
X, Y = np.eye(3), np.ones(3)


def checked(function: Any) -> Any:
    return jaxtyping.jaxtyped(function, typechecker=results)


@pytest.mark.parametrize(
    "values", [np.ones(2), np.ones((4, 1)), np.ones(4, np.float32), np.ones(())]
)
def test_a_wrong_result_is_found(values: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the library itself, through the hook of `conftest.py`."""
    post = lnk.posterior(lnk.mlp(norm="first"), X, Y)
    monkeypatch.setattr(Fit, "variance", lambda self, x: values)
    with pytest.raises(WRONG):
        post.variance(np.ones((4, 3)))


@pytest.mark.parametrize(("n", "m"), [(2, 3), (2, 1), (3, 2)])
def test_sizes_are_those_of_the_arguments(n: int, m: int) -> None:
    @checked
    def kernel(x: Points, x2: MorePoints | None = None) -> Matrix:
        return np.ones((2, 3))

    x, x2 = np.ones((n, 5)), np.ones((m, 5))
    if (n, m) == (2, 3):
        assert kernel(x, x2).shape == kernel(x.tolist(), x2=x2).shape == (2, 3)
    else:
        with pytest.raises(WRONG, match="return value"):
            kernel(x, x2)


def test_a_size_that_occurs_twice() -> None:
    @checked
    def covariance() -> Covariance:
        return np.ones((2, 3))

    with pytest.raises(WRONG, match="return value"):
        covariance()


def test_one_of_several_shapes() -> None:
    @checked
    def mean(shape: tuple[int, ...]) -> Outputs:
        return np.ones(shape)

    assert mean((2,)).shape == (2,) and mean((2, 3)).shape == (2, 3)
    with pytest.raises(WRONG, match="return value"):
        mean((2, 3, 4))


def test_wrong_arguments_get_our_own_errors() -> None:
    with pytest.raises(InputError, match="x: expected real numbers"):
        lnk.ntk(lnk.mlp())("nothing")
