"""Architectures as text: the inverse of `repr`, and nothing that runs."""

from __future__ import annotations

import math
import time

import cases
import pytest

import lnkernel as lnk
from lnkernel.arch.parse import BUILDERS
from lnkernel.errors import ArchitectureTextError

TABLE = cases.architectures()


@pytest.mark.parametrize("name", TABLE)
def test_inverse_of_repr(name: str) -> None:
    assert lnk.parse(repr(TABLE[name].arch)) == TABLE[name].arch


@pytest.mark.parametrize(
    ("text", "arch"),
    [
        ("mlp(hidden=2, norm='first')", lnk.mlp(hidden=2, norm="first")),
        ("  mlp(3, 64,\n  W_std=2**0.5)\n", lnk.mlp(3, 64, W_std=2**0.5)),
        ("lnk.mlp(activation=lnkernel.Abs())", lnk.mlp(activation=lnk.Abs())),
        ("mlp(width=2**7, b_std=1/10, norm=None)", lnk.mlp(width=128, b_std=1 / 10)),
        ("LeakyRelu(-0.5 + +1 - 0.25*2)", lnk.LeakyRelu(0.0)),
        ("LayerNorm(eps=1e-5, scale=True)", lnk.LayerNorm(1e-5, scale=True)),
    ],
)
def test_what_people_write(text: str, arch: lnk.Node) -> None:
    assert lnk.parse(text) == arch


def test_every_layer_is_known() -> None:
    types = {
        "Elementwise",
        "Node",
        "Parallel",
        "PositivelyHomogeneous",
        "Serial",
        "Smooth",
        "Piecewise",
    }
    of_functions = {"Activate"}  # a text does not run code
    assert set(BUILDERS) == set(lnk.arch.__all__) - types - of_functions


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it cannot be read"),
        ("mlp(", "was never closed"),
        ("mlp hidden", "invalid syntax"),
        ("2", "expected a network, got 2"),
        ("Relu", r"'Relu' stands alone\n    Relu\n    \^{4}\nWrite Relu\(\)"),
        ("relu()", r"'relu' is not known\n    relu\(\)\n    \^{4}\nWrite Relu\? Known are Dense"),
        ("serial(Dense(8), Mish())", r"'Mish' is not known\n.*\n {21}\^{4}\n"),
        (
            "mlp(hidden=2, norm=first)",
            r"'first' is not known\n.*\n {23}\^{5}\nWrite 'first', with quotation marks; in a shell "
            "put the whole text into double quotes.$",
        ),
        ("mlp(norm=none)", r"'none' is not known\n.*\n.*\nWrite None.$"),
        ("mlp(activation=relu)", r"'relu' is not known\n.*\n.*\nWrite Relu\? Known are"),
        ("mlp(hiden=2)", r"mlp has no argument 'hiden'\n.*\n {8}\^{7}\nIt is mlp\(hidden=2, "),
        ("mlp(**{'hidden': 2})", r"mlp has no argument '\*\*'"),
        ("mlp(*[1])", "a list that is put in by \\* is not understood here"),
        ("Dense()", "Dense: missing a required argument: 'width'"),
        (
            "Dense(8, W_std=1.0, W_std=2.0)",
            r"Dense is given the argument 'W_std' twice\n.*\n {24}\^{9}\nWrite it once",
        ),
        ("mlp(hidden=10**9)", "hidden must be at most 10000, got 1000000000"),
        ("Relu(1)", "Relu: too many positional arguments"),
        ("Dense(0)", r"Dense: width must be an integer, at least 1, got 0"),
        ("Dense('é', 0) ", r"width must be an integer, at least 1, got 'é'"),
        ("serial('é', Rely())", r"'Rely'.*\n.*\n {16}\^{4}\n"),
        ("serial(Dense(8), Relu(), Relu())", "Relu at layer 2: its input is not Gaussian"),
        ("mlp(norm='second')", "norm='second' is not known"),
        ("mlp(W_std=True + 1)", "expected a number, got True"),
        ("mlp(W_std='a' * 9)", "expected a number, got 'a'"),
        ("mlp(W_std=1/0)", "this cannot be calculated"),
        ("mlp(W_std=10.0**400)", "this cannot be calculated"),
        ("mlp(W_std=(-1)**0.5)", "is not real"),
        ("mlp(W_std=1j)", "this is not understood"),
        ("mlp(hidden=7 // 2)", "this is not understood"),
        ("mlp(hidden=len('ab'))", "'len' is not known"),
        ("os.system('true')", "'os.system' is not known"),
        ("().__class__.__bases__[0]()", "expected the name of a layer"),
        ("(lambda: Relu())()", "expected the name of a layer"),
        ("[Relu() for _ in (1,)]", "a list is not understood here"),
        ("mlp(\x00)", "it cannot be read"),
        ("-" * 50_000 + "1", "it cannot be read"),
        ("mlp(W_std=" + "1+" * 20_000 + "1)", "it cannot be read"),
        ("Relu()" + " " * 100_000, "characters, more than"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(ArchitectureTextError, match=message):
        lnk.parse(text)


@pytest.mark.parametrize("power", ["9**9**9", "((9**99)**99)**99", "2**-10**9"])
def test_huge_powers_take_no_time(power: str) -> None:
    start = time.perf_counter()
    with pytest.raises(ArchitectureTextError, match="the number is too large"):
        lnk.parse(f"mlp(W_std={power})")
    assert time.perf_counter() - start < 1.0


def test_no_text() -> None:
    with pytest.raises(ArchitectureTextError, match="expected a str, got Relu"):
        lnk.parse(lnk.Relu())  # type: ignore[arg-type]


def test_of_a_long_text_the_part_around_the_place_is_shown() -> None:
    text = f"serial({'Dense(8), Relu(), ' * 40}Rely())"
    with pytest.raises(ArchitectureTextError) as caught:
        lnk.parse(text)
    shown, marks = str(caught.value).splitlines()[1:3]
    assert len(shown) < 110
    assert shown[marks.index("^") : marks.rindex("^") + 1] == "Rely"


def test_exact_numbers() -> None:
    """As Python reads them, so that a kernel of the text is the kernel of the program."""
    (layer,) = lnk.parse("serial(Dense(8, W_std=2**0.5))").layers  # type: ignore[attr-defined]
    assert layer.W_std == math.sqrt(2.0) == 2**0.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Dense(8), Relu()", r"got several layers\n.*\n.*\nWrite serial\(\.\.\.\) around"),
        ("[Dense(8), Relu()]", r"got several layers\n.*\n.*\nWrite serial\(\.\.\.\) around"),
        ("mlp(W_std=nan)", r"'nan' is no finite number\n.*\n.*\nWrite a finite number"),
        ("mlp(W_std=-inf)", r"'inf' is no finite number"),
        ("mlp(W_std=math.inf)", r"'math.inf' is no finite number"),
        ("mlp(W_std=float('nan'))", r"functions like 'float' are not calculated here"),
        ("mlp(W_std=sqrt(2))", r"such as 2\*\*0.5"),
        ("serial(*[Dense(8)])", r"a list that is put in by \* is not understood here"),
        ("mlp(hidden=[2])", r"a list is not understood here"),
    ],
)
def test_what_helps(text: str, message: str) -> None:
    with pytest.raises(ArchitectureTextError, match=message) as caught:
        lnk.parse(text)
    assert "Flatten?" not in str(caught.value) and "cnn?" not in str(caught.value)
