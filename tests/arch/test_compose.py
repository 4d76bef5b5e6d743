"""Composition: equal by value however it is written, and readable in a notebook."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import jax
import pytest

import lnkernel as lnk
from lnkernel.arch import show

D, R, LN = lnk.Dense(8), lnk.Relu(), lnk.LayerNorm()
A = lnk.serial(D, LN)
B = lnk.serial(R, D)
C = lnk.serial(lnk.residual(R, D), LN, lnk.Dense(1))


def test_serial_is_associative() -> None:
    flat = lnk.serial(D, LN, R, D, *C.layers)
    assert lnk.serial(lnk.serial(A, B), C) == lnk.serial(A, lnk.serial(B, C)) == flat
    assert lnk.serial(A, B, C) == flat


def test_serial_flattens_every_depth() -> None:
    nested: lnk.Node = D
    for _ in range(4):
        nested = lnk.serial(nested)
    assert nested == lnk.serial(D)
    assert nested.layers == (D,)


def test_order_matters() -> None:
    assert lnk.serial(D, LN) != lnk.serial(LN, D)
    assert lnk.parallel(D, lnk.serial(D, R)) != lnk.parallel(lnk.serial(D, R), D)


@pytest.mark.parametrize("branch", [(D,), (R, D), (A,), (LN, A, R, D)], ids=repr)
def test_residual_is_a_sum_with_the_identity(branch: tuple[lnk.Node, ...]) -> None:
    whole = branch[0] if len(branch) == 1 else lnk.serial(*branch)
    assert lnk.residual(*branch) == lnk.parallel(lnk.Identity(), whole)


COMPOSED = [
    lnk.serial(D),
    A,
    C,
    lnk.parallel(D, lnk.serial(D, R, D)),
    lnk.parallel(D, lnk.Identity()),
    lnk.residual(D),
    lnk.residual(lnk.residual(A), B, D),
    lnk.parallel(D, D, lnk.residual(R, D)),
    lnk.mlp(hidden=3, norm="all"),
]


@pytest.mark.parametrize("arch", COMPOSED, ids=repr)
def test_equal_hashable_and_printable(arch: lnk.Node) -> None:
    again = eval(repr(arch), dict(vars(lnk)))
    assert again is not arch
    assert again == arch and hash(again) == hash(arch)
    assert [other for other in COMPOSED if other == arch] == [arch]


def test_a_residual_is_printed_as_such() -> None:
    assert repr(lnk.residual(R, D)) == f"residual(serial(Relu(), {D!r}))"
    assert repr(lnk.parallel(D, lnk.Identity())) == f"parallel({D!r}, Identity())"


def test_leaves_are_those_of_the_layers_in_order() -> None:
    arch = lnk.serial(lnk.Dense(8, 1.0, 2.0), lnk.residual(lnk.LeakyRelu(3.0), lnk.Dense(8, 4.0)))
    assert jax.tree.leaves(arch) == [1.0, 2.0, 3.0, 4.0, 0.0]
    doubled = jax.tree.map(lambda leaf: 2 * leaf, arch)
    assert doubled == lnk.serial(
        lnk.Dense(8, 2.0, 4.0), lnk.residual(lnk.LeakyRelu(6.0), lnk.Dense(8, 8.0))
    )


@pytest.mark.parametrize(
    ("norm", "normalised"),
    [
        (None, (False, False, False)),
        ("first", (True, False, False)),
        ("last", (False, False, True)),
        ("all", (True, True, True)),
    ],
)
@pytest.mark.parametrize(
    ("given", "activation", "norm_layer"),
    [
        ({}, lnk.Relu(), lnk.LayerNorm()),
        (
            {"activation": lnk.Abs(), "norm_layer": lnk.RMSNorm(1e-5, scale=True)},
            lnk.Abs(),
            lnk.RMSNorm(1e-5, scale=True),
        ),
    ],
    ids=["default", "chosen"],
)
def test_mlp(
    norm: str | None,
    normalised: tuple[bool, ...],
    given: dict[str, Any],
    activation: lnk.Elementwise,
    norm_layer: lnk.Node,
) -> None:
    layers: list[lnk.Node] = []
    for here in normalised:
        layers += [lnk.Dense(16, 1.5, 0.2), *([norm_layer] if here else []), activation]
    expected = (*layers, lnk.Dense(3, 1.5, 0.2))
    made = lnk.mlp(hidden=3, width=16, norm=norm, W_std=1.5, b_std=0.2, outputs=3, **given)
    assert made.layers == expected


def test_mlp_by_default() -> None:
    hidden, last = lnk.Dense(128, 2**0.5, 0.1), lnk.Dense(1, 2**0.5, 0.1)
    assert lnk.mlp() == lnk.serial(hidden, R, hidden, R, last)


def _no_layer(place: int, got: object) -> str:
    return (
        f"serial at argument {place}: expected a layer, got {got!r} of type {type(got).__name__}. "
        "Write e.g. lnkernel.Relu(), with the brackets."
    )


def _hidden(got: object) -> str:
    return f"mlp: hidden must be an integer >= 1, got {got!r}. Name at least one layer."


REFUSED: list[tuple[str, str]] = [
    ("serial()", "serial: it needs at least one layer. Name one, e.g. Dense."),
    ("residual()", "it needs a branch. Name one, e.g. Dense(64)."),
    ("parallel()", "parallel: it needs at least two branches. Use serial."),
    ("parallel(Dense(8))", "parallel: it needs at least two branches. Use serial."),
    ("serial(Dense(8), Relu)", _no_layer(1, lnk.Relu)),
    ("serial('relu')", _no_layer(0, "relu")),
    ("serial([Dense(8), Relu()])", _no_layer(0, [lnk.Dense(8), lnk.Relu()])),
    ("residual(Dense(8), None)", _no_layer(1, None)),
    ("parallel(Dense(8), None)", _no_layer(1, None).replace("serial", "parallel")),
    (
        "mlp(norm='middle')",
        'mlp: norm=\'middle\' is not known. Use None, "first", "last" or "all".',
    ),
    *[(f"mlp(hidden={h!r})", _hidden(h)) for h in (0, -1, True, 2.0, "2", None)],
    ("mlp(width=0)", "Dense: width must be an integer, at least 1, got 0."),
    ("mlp(outputs=0)", "Dense: width must be an integer, at least 1, got 0."),
    ("mlp(W_std=-1.0)", "Dense: W_std must be positive, got -1.0."),
    ("mlp(activation=Relu)", _no_layer(1, lnk.Relu)),
    ("mlp(norm='first', norm_layer=GroupNorm(4))", "Relu at layer 2: its input is not Gaussian"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[call for call, _ in REFUSED])
def test_refused(call: str, message: str) -> None:
    with pytest.raises(lnk.errors.ArchitectureError, match=re.escape(message)):
        eval(call, dict(vars(lnk)))


class _Cells(HTMLParser):
    """The text of a table, row by row; it fails on tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.rows[-1][-1] += data


def _table(html: str) -> list[list[str]]:
    assert html.startswith("<table>")
    html = html[: html.index("</table>") + len("</table>")]
    cells = _Cells()
    cells.feed(html)
    assert cells.open == []
    return cells.rows


HEAD = ["", "layer", "hyperparameters", "state"]


def test_table_of_a_network() -> None:
    block = lnk.residual(lnk.LayerNorm(1e-5, scale=True), lnk.LeakyRelu(0.1), lnk.Dense(8))
    arch = lnk.serial(LN, lnk.Dense(8, 2**0.5), block, lnk.GroupNorm(4), lnk.Dense(1))
    assert _table(arch._repr_html_()) == [
        HEAD,
        ["layer 0", "LayerNorm", "eps=0, scale=False, bias=False", "raw input"],
        ["layer 1", "Dense", "width=8, W_std=1.41421, b_std=0", "Gaussian"],
        ["layer 2, branch 0", "Identity", "", "Gaussian"],
        [
            "layer 2, branch 1, layer 0",
            "LayerNorm",
            "eps=1e-05, scale=True, bias=False",
            "Gaussian",
        ],
        ["layer 2, branch 1, layer 1", "LeakyRelu", "slope=0.1", "features"],
        ["layer 2, branch 1, layer 2", "Dense", "width=8, W_std=1, b_std=0", "Gaussian"],
        ["layer 2", "sum of the branches", "", "Gaussian"],
        [
            "layer 3",
            "GroupNorm",
            "group_size=4, eps=0, centre=True, scale=False, bias=False",
            "features",
        ],
        ["layer 4", "Dense", "width=1, W_std=1, b_std=0", "Gaussian"],
    ]


def test_table_of_a_block_that_needs_something_before_it() -> None:
    assert _table(lnk.residual(R, D)._repr_html_()) == [
        HEAD,
        ["branch 0", "Identity", "", "whatever comes in"],
        ["branch 1, layer 0", "Relu", "", "features"],
        ["branch 1, layer 1", "Dense", "width=8, W_std=1, b_std=0", "Gaussian"],
        ["", "sum of the branches", "", "whatever comes in"],
    ]


def test_table_of_one_layer() -> None:
    power = show.html_of(lnk.RectifiedPower(1.5))
    assert _table(power) == [HEAD, ["", "RectifiedPower", "degree=1.5", "features"]]


def test_table_escapes_html(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ("<i>0</i>", "a & b", "<script>", 'x="</td>"')
    monkeypatch.setattr(show, "rows", lambda arch: [row])
    html = show.html_of(D)
    assert "<script>" not in html and "&lt;script&gt;" in html and "a &amp; b" in html
    assert _table(html) == [HEAD, list(row)]
