"""`lnkernel.latex`: what a reader of the lines computes by hand is what the kernels are."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from formula_reader import compute

import lnkernel as lnk
from lnkernel import Dense, GroupNorm, LayerNorm, LeakyRelu, Relu, RMSNorm, residual, serial

D, OUT = Dense(8, 1.25, 0.5), Dense(1, 0.75, 0.25)  # whose squares have no more than six digits
NETWORKS: dict[str, lnk.Node] = {
    "relu": serial(D, Relu(), D, Relu(), OUT),
    "without bias": serial(Dense(8), Relu(), Dense(1)),
    "norm before": serial(D, LayerNorm(), Relu(), OUT),
    "norm behind": serial(D, Relu(), LayerNorm(0.25), OUT),
    "norm on the input": serial(LayerNorm(), D, lnk.Abs(), OUT),
    "scale and bias": serial(D, LayerNorm(scale=True, bias=True), LeakyRelu(0.5), OUT),
    "scale twice": serial(D, RMSNorm(scale=True), RMSNorm(0.5, scale=True), Relu(), OUT),
    "scale on features": serial(D, Relu(), LayerNorm(scale=True, bias=True), OUT),
    "scale at the end": serial(D, Relu(), D, LayerNorm(scale=True)),
    "norm after norm": serial(D, Relu(), RMSNorm(0.5), LayerNorm(), OUT),
    "leaky": serial(D, LeakyRelu(0.5), LayerNorm(), OUT),
    "power": serial(D, lnk.RectifiedPower(2), LayerNorm(), OUT),
    "power, scale": serial(D, LayerNorm(scale=True), lnk.Homogeneous(1.5, 1.0, 0.5), OUT),
    "residual": serial(D, residual(LayerNorm(), Relu(), D), LayerNorm(), OUT),
    "means that add": serial(
        D, lnk.parallel(serial(D, Relu()), serial(D, lnk.Abs())), LayerNorm(), OUT
    ),
    "sum with a scale": serial(D, lnk.parallel(LayerNorm(scale=True), D), OUT),
    "groups": serial(D, GroupNorm(4, scale=True, bias=True), OUT),
    "erf": serial(D, lnk.Erf(), OUT),
    "tanh, scale": serial(D, LayerNorm(scale=True), lnk.Tanh(), LayerNorm(), OUT),
    "sigmoid": serial(D, lnk.Sigmoid(), LayerNorm(), OUT),
    "silu": serial(D, lnk.Silu(1.5), OUT),
    "softplus": serial(D, lnk.Softplus(2.0), LayerNorm(), OUT),
    "sin": serial(D, lnk.Sin(0.5, 0.25), LayerNorm(), OUT),
    "cos": serial(D, lnk.Cos(0.5), OUT),
    "gaussian": serial(D, lnk.Gaussian(), OUT),
    "fixed scale": serial(
        D, LayerNorm(scale=True), lnk.Scale(-0.5), Relu(), lnk.Scale(-2.0), LayerNorm(0.5), OUT
    ),
    "fixed scale on the input": serial(lnk.Scale(2.0), LayerNorm(0.5), D, Relu(), OUT),
    "shift": serial(D, lnk.Erf(), lnk.Scale(0.5), lnk.Shift(0.5), RMSNorm(), OUT),
    "shift of a mean": serial(D, Relu(), lnk.Shift(-0.25), LayerNorm(0.5), OUT),
    "shift, scale": serial(D, LayerNorm(scale=True), lnk.Shift(0.5), OUT),
    "polynomial": serial(D, lnk.Polynomial((0.5, 1.0, -0.25)), LayerNorm(), OUT),
}
X = np.array([[1.0, -0.5, 0.25], [0.5, 1.5, -1.0]])
LINE = re.compile(r"\\text\{(.*?)\}(.*?) &\\quad & K(\S*) &= (.*?) &\\quad \\Theta\S* &= (.*)")


def by_hand(text: str) -> tuple[float, float]:
    """K and Θ of the two rows of X, line by line."""
    pairs = ((X[0], X[0]), (X[1], X[1]), (X[0], X[1]))
    names: dict[str, Any] = {}
    K = theta = 0.0
    for line in text.splitlines():
        found = LINE.match(line.removesuffix(r" \\"))
        if found is None:
            continue
        layer, says, at, formula, rest = found.groups()
        theta_formula, _, mean = rest.partition(r" &\quad m")
        mean = mean.partition("&= ")[2]
        if r"\phi" in says:
            names[f"phi {at[2:-1]}"] = says.partition(" = ")[2]
        if layer == "input":
            q, q2, K = (float(x @ y) / X.shape[1] for x, y in pairs)
            theta, means = 0.0, X.mean(axis=1)
        else:
            K, theta = compute(formula, names), 0.0
            # lengths: the same formula for each input with itself
            q, q2 = (compute(formula, swap(names, side)) for side in (0, 1))
            means = [compute(mean, swap(names, side)) for side in (0, 1)] if mean else [0.0, 0.0]
        values = {"K": K, "q": q, "q'": q2, "m": means[0], "m'": means[1]}
        for letter, value in values.items():
            names[f"{letter[0]}{at}{letter[1:]}"] = value
        names[rf"\theta{at}"] = np.arccos(np.clip(K / np.sqrt(q * q2), -1, 1))
        if layer != "input":
            theta = compute(theta_formula, names)
        names[rf"\Theta{at}"] = theta
    return float(K), float(theta)


def swap(names: dict[str, Any], side: int) -> dict[str, Any]:
    """The names for one input with itself."""
    of_one = dict(names)
    for name in names:
        at = name[1:]
        if name[0] in "qm" and not name.endswith("'"):
            value = names[name + "'"] if side else names[name]
            of_one |= {name: value, name + "'": value}
            if name[0] == "q":
                of_one |= {f"K{at}": value, rf"\theta{at}": 0.0}
    return of_one


@pytest.mark.parametrize("name", NETWORKS)
def test_lines_give_the_kernels(name: str) -> None:
    arch = NETWORKS[name]
    K, theta = by_hand(lnk.latex(arch))
    exact = lnk.kernels(arch)(X[:1], X[1:])
    assert pytest.approx(float(exact.nngp[0, 0]), rel=3e-6) == K  # of numbers with six digits
    assert theta == pytest.approx(float(exact.ntk[0, 0]), rel=3e-6)


def test_a_wrong_line_is_caught() -> None:
    text = lnk.latex(NETWORKS["leaky"])
    right = by_hand(text)
    for old, new in (("1.5625", "1.5635"), (r"- \theta_{1}", r"+ \theta_{1}"), ("m_{2}'", "m_{2}")):
        assert old in text
        assert by_hand(text.replace(old, new)) != pytest.approx(right, rel=1e-5)


def test_a_text_is_an_architecture() -> None:
    assert lnk.latex("mlp(hidden=1)") == lnk.latex(lnk.mlp(hidden=1))


def test_one_line_per_layer() -> None:
    arch = lnk.mlp(hidden=3, norm="all")
    assert lnk.latex(arch).count(r"\text{Dense}") == 4
    assert len(LINE.findall(lnk.latex(arch))) == 1 + len(arch.layers)


def test_only_what_occurs_is_explained() -> None:
    assert "with" not in lnk.latex(serial(Dense(1)))
    relu, tanh = (lnk.latex(lnk.mlp(activation=phi)) for phi in (Relu(), lnk.Tanh()))
    assert r"\cos\theta_l" in relu and r"\mathbb{E}_l" not in relu
    assert r"\cos\theta_l" not in tanh and r"\mathbb{E}_l" in tanh


def test_a_jump_has_no_ntk() -> None:
    assert r"\Theta_{2} &= \infty" in lnk.latex(serial(D, lnk.Sign(), OUT))


def test_functions_are_named() -> None:
    for layer, text in (
        (lnk.Gelu(), r"u\,\Phi(u)"),
        (lnk.Gelu(approximate=True), "0.044715"),
        (lnk.Elu(0.5), r"\max(u, 0) + 0.5\,(e^{\min(u, 0)} - 1)"),
        (lnk.Clip(0, 6), r"\min(\max(u, 0), 6)"),
        (lnk.Selu(), r"\mathrm{Selu}(u)"),
        (lnk.Step(), "1_{u > 0}"),
    ):
        assert rf"\phi_{{2}}(u) = {text}" in lnk.latex(serial(D, layer, OUT)).replace(
            r"\tfrac{u}{2}\,(1 + \tanh(\sqrt{2/\pi}\,(u + 0.044715", "0.044715"
        )


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(lnk.errors.ArchitectureError, match="acts on the raw input"):
        lnk.latex(residual(Relu(), D))


def test_a_notebook_shows_it_below_the_table() -> None:
    html = lnk.mlp(hidden=1)._repr_html_()
    assert "</table><p>$$\\begin{array}{l}" in html and r"\Theta_{3} &amp;= K_{3}" in html
    assert residual(Relu(), D)._repr_html_().endswith("</table>")
    assert "print(lnkernel.latex(arch))" in lnk.mlp(hidden=40)._repr_html_()
