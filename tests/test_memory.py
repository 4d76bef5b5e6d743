"""What does not fit into memory is refused before the work, with the numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel import cli
from lnkernel.errors import NotEnoughMemoryError
from lnkernel.gram import memory

ARCH = lnk.mlp(hidden=1, norm="first")
MANY = np.arange(4.0e5)[:, None]
POST = lnk.posterior(ARCH, [[1.0], [2.0]], [0.0, 1.0])


@pytest.fixture(autouse=True)
def one_gibibyte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 2**30)


SQUARE: dict[str, Any] = {
    "ntk": lambda: lnk.ntk(ARCH)(MANY),
    "nngp": lambda: lnk.nngp(ARCH)(MANY),
    "kernels": lambda: lnk.kernels(ARCH)(MANY),
    "posterior": lambda: lnk.posterior(ARCH, MANY, MANY[:, 0]),
    "bound": lambda: lnk.bound(ARCH, MANY, MANY[:, 0]),
    "certified bound": lambda: lnk.bound(ARCH, MANY, MANY[:, 0], certify=True),
    "mean_bound": lambda: lnk.mean_bound(lnk.mlp(activation=lnk.Erf()), MANY, MANY[:, 0]),
    "diverging_witness": lambda: lnk.diverging_witness(lnk.mlp(), MANY, MANY[:, 0]),
    "covariance": lambda: POST.covariance(MANY),
    "ensemble_covariance": lambda: POST.ensemble_covariance(MANY),
    "sample": lambda: POST.sample(jax.random.key(0), MANY),
    "empirical_ntk": lambda: lnk.finite.empirical_ntk(
        lnk.finite.network(lnk.mlp(hidden=1, width=4), 1, rngs=0), MANY
    ),
    "empirical_ntk_over_seeds": lambda: lnk.finite.empirical_ntk_over_seeds(ARCH, MANY),
    "empirical_nngp_over_seeds": lambda: lnk.finite.empirical_nngp_over_seeds(ARCH, MANY),
}


@pytest.mark.parametrize("name", SQUARE)
def test_too_many_points(name: str) -> None:
    with pytest.raises(NotEnoughMemoryError, match=r"400000 points needs \d+\.\d GiB.*1\.0 GiB"):
        SQUARE[name]()


def test_two_sets_of_points() -> None:
    with pytest.raises(NotEnoughMemoryError) as caught:
        lnk.ntk(ARCH)(MANY, MANY[:1000])
    assert "400000 and 1000 points needs 3.0 GiB" in str(caught.value)
    assert "in parts (about 134217 at a time fit)" in str(caught.value)


def test_both_kernels_need_twice_as_much() -> None:
    x = np.arange(9000.0)[:, None]  # 0.6 GiB
    with pytest.raises(NotEnoughMemoryError, match=r"needs 1\.2 GiB"):
        lnk.kernels(ARCH)(x)


def test_many_functions() -> None:
    with pytest.raises(NotEnoughMemoryError, match="The functions of 1000000000 and 2 points"):
        POST.sample(jax.random.key(0), [[1.0], [2.0]], (10**9,))


def test_few_points_need_not_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 0)
    assert lnk.ntk(ARCH)(MANY[:100]).shape == (100, 100)


def test_command_line(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "x.csv"
    path.write_text("x\n" + "\n".join(map(str, range(20_000))))
    assert cli.main(["kernel", "--csv", str(path)]) == 2
    assert "The kernel matrix of 20000 points needs 3.0 GiB" in capsys.readouterr().err
    assert cli.main(["kernel", "--x", "0", "1", "5000", "--json"]) == 2
    assert "5000 points needs 1.7 GiB" in capsys.readouterr().err
