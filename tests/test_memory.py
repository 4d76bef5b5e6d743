"""What does not fit into memory is refused before the work, with the numbers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel import cli
from lnkernel.errors import NotEnoughMemoryError
from lnkernel.gp import fit
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
    with pytest.raises(
        NotEnoughMemoryError, match="A set of 1000000000 functions at 2 points needs"
    ):
        POST.sample(jax.random.key(0), [[1.0], [2.0]], (10**9,))


INSIDE: dict[str, Any] = {
    "mean": lambda post, x: post.mean(x),
    "mean at a time": lambda post, x: post.at(1.0).mean(x),
    "std": lambda post, x: post.std(x),
    "covariance": lambda post, x: post.covariance(x),
    "ensemble_variance": lambda post, x: post.ensemble_variance(x),
    "ensemble_covariance": lambda post, x: post.ensemble_covariance(x),
}


@pytest.mark.parametrize("name", INSIDE)
def test_predictions_inside_a_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There they are made as a whole, and outside in blocks: so it is asked before the program is compiled."""
    monkeypatch.setattr(memory, "available_memory", lambda: 2**20)
    with (
        jax.enable_x64(True),
        pytest.raises(NotEnoughMemoryError, match=r"transformation .* of 400000 .*in parts|fewer"),
    ):
        jax.jit(lambda x: INSIDE[name](POST, x))(MANY)


def test_predictions_outside_are_made_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, plain = [], fit.matrix

    def matrix(*points: Any) -> np.ndarray:
        made = plain(*points)
        sizes.append(made.size)
        return made

    monkeypatch.setattr(fit, "matrix", matrix)
    monkeypatch.setattr(fit, "_ENTRIES", 100)
    x = MANY[:300]
    assert POST.mean(x).shape == POST.std(x).shape == POST.ensemble_variance(x).shape == (300,)
    assert max(sizes) == 100 and len(sizes) > 12


def test_many_times() -> None:
    with pytest.raises(NotEnoughMemoryError, match="1000 predictions at each of 400000 points"):
        POST.at([1.0] * 1000).mean(MANY)


def test_covariances_at_many_times() -> None:
    """Each of them has room, and all of them have none."""
    x = MANY[:1000]
    assert POST.at(1.0).ensemble_covariance(x).shape == (1000, 1000)
    with pytest.raises(NotEnoughMemoryError, match=r"of 1000 points at 100 times needs 1\.5 GiB"):
        POST.at([1.0] * 100).ensemble_covariance(x)


def test_a_pair_of_large_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 2**20)
    arch = lnk.serial(lnk.Conv(8, (3, 3)), lnk.Relu(), lnk.GlobalAvgPool(), lnk.Dense(1))
    message = r"A pair of inputs of 1600 positions needs .* Take inputs of fewer positions, or"
    with pytest.raises(NotEnoughMemoryError, match=message):
        lnk.ntk(arch)(np.zeros((1, 40, 40, 1)))


def test_a_pair_that_a_layer_makes_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is asked for the positions where there are most of them."""
    monkeypatch.setattr(memory, "available_memory", lambda: 2**20)
    for larger in (lnk.ConvTranspose(8, (2, 2), 10), lnk.Resize((40, 40), "nearest")):
        arch = lnk.serial(
            lnk.Conv(8, (3, 3)), lnk.Relu(), larger, lnk.GlobalAvgPool(), lnk.Dense(1)
        )
        with pytest.raises(NotEnoughMemoryError, match="A pair of inputs of 16 positions needs"):
            lnk.ntk(arch)(np.zeros((1, 4, 4, 1)))


def test_few_points_need_not_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 0)
    assert lnk.ntk(ARCH)(MANY[:100]).shape == (100, 100)


LARGE: dict[str, tuple[str, Any]] = {
    "empirical_ntk_over_seeds": (
        "1000000000 features in its widest layer, at 400 points, needs 2980.2 GiB",
        lambda: lnk.finite.empirical_ntk_over_seeds(ARCH, MANY[:400], width=10**9, seeds=2),
    ),
    "empirical_nngp_over_seeds": (
        "1000000000 features in its widest layer, at 400 points, needs 2980.2 GiB",
        lambda: lnk.finite.empirical_nngp_over_seeds(ARCH, MANY[:400], width=10**9, seeds=2),
    ),
    "train_ensemble": (
        "1000000000 networks, each of 101 numbers .*fewer seeds",
        lambda: lnk.finite.train_ensemble(ARCH, [[1.0]], [0.0], width=8, steps=1, seeds=10**9),
    ),
    "attention": (
        "A pair of inputs of 2000 positions needs 0.7 GiB",
        lambda: lnk.ntk(lnk.transformer())(np.zeros((2, 2000, 4))),
    ),
    "diagonal": ("The diagonal of 400000 points", lambda: lnk.ntk(ARCH).diagonal(MANY)),
    "diagonal of a tangent kernel": (
        "The diagonal of the tangent kernel of 400000 inputs needs",
        lambda: lnk.tangent(TWIN).diagonal(MANY),
    ),
    "Jacobian": (
        "The Jacobian at a single input",
        lambda: lnk.finite.empirical_ntk(lnk.finite.network(WIDE, 1, rngs=0), [[1.0]]),
    ),
    "twin": ("4 features in its widest layer, at 400000 points", lambda: TWIN(MANY)),
    "network": (
        r"A network of 25,020,001 numbers needs 0.2 GiB",
        lambda: lnk.finite.network(lnk.mlp(hidden=2, width=5000), 1, rngs=0),
    ),
}
TWIN = lnk.finite.network(lnk.mlp(hidden=1, width=4), 1, rngs=0)
WIDE = lnk.serial(lnk.Dense(100_000), lnk.Relu(), lnk.Dense(1))
ROOM = {"attention": 2**28, "network": 2**26, "Jacobian": 2**20 + 2**19}  # bytes


@pytest.mark.parametrize("name", LARGE)
def test_asked_for_before_the_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    message, work = LARGE[name]
    monkeypatch.setattr(memory, "available_memory", lambda: ROOM.get(name, 2**20))
    if name.endswith("over_seeds"):  # whose parameters have room, and not their features
        monkeypatch.setattr(memory, "available_memory", lambda: 2**35)
    with pytest.raises(NotEnoughMemoryError, match=message):
        work()


def test_more_seeds_than_can_be_counted() -> None:
    with pytest.raises(lnk.errors.InputError, match=r"Choose fewer than 2\*\*63"):
        lnk.finite.train_ensemble(ARCH, [[1.0]], [0.0], seeds=10**30)


def test_the_limit_of_a_shell() -> None:
    """`ulimit -v` leaves less than the machine has."""
    code = (
        "import resource, psutil\n"
        "used = psutil.Process().memory_info().vms\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**32, resource.RLIM_INFINITY))\n"
        "from lnkernel.gram.memory import available_memory\n"
        "assert 0 < available_memory() <= 2**32"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_command_line(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "x.csv"
    path.write_text("x\n" + "\n".join(map(str, range(20_000))))
    assert cli.main(["kernel", "--csv", str(path)]) == 2
    assert "The kernel matrix of 20000 points needs 3.0 GiB" in capsys.readouterr().err
    assert cli.main(["kernel", "--x", "0", "1", "5000", "--json"]) == 2
    assert "5000 points needs 1.7 GiB" in capsys.readouterr().err


def test_command_line_of_data(tmp_path: Path, capsys: Any) -> None:
    path, new = tmp_path / "x.csv", tmp_path / "new.csv"
    path.write_text("x,y\n" + "\n".join(f"{i},{i % 7}" for i in range(20_000)))
    new.write_text("x\n1\n")
    assert cli.main(["bound", str(path), "--target", "y"]) == 2
    assert re.search(r"fewer lines by --sample, e.g. --sample \d+\.\n", capsys.readouterr().err)
    out = ["--predict", str(new), "--out", str(tmp_path / "out.csv")]
    assert cli.main(["fit", str(path), "--target", "y", *out]) == 2
    assert "or give --tolerance and --noise, which needs" in capsys.readouterr().err


@pytest.mark.parametrize("width", [None, 10**6])
def test_networks_of_finite_width(width: int | None) -> None:
    """A million wide, by its own width or by the one that is asked for: a million million numbers of four bytes."""
    arch = lnk.mlp(hidden=2, width=10**6 if width is None else 8)
    with pytest.raises(NotEnoughMemoryError, match=r"1,000,005,000,001 numbers needs 7450\.6 GiB"):
        lnk.finite.network(arch, 2, width, rngs=0)


def test_an_ensemble_with_gradients_and_the_optimizer() -> None:
    arch = lnk.mlp(hidden=2, width=256)
    message = r"4000 networks, each of .*needs 4\.0 GiB.*fewer seeds"
    with pytest.raises(NotEnoughMemoryError, match=message):
        lnk.finite.train_ensemble(arch, [[1.0], [2.0]], [0.0, 1.0], seeds=4000)
