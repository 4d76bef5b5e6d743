"""Formulas in the LaTeX of `lnkernel.latex`, read and computed: the numbers that a reader of them would find."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import gamma, hyp2f1

TOKEN = re.compile(
    r"\\mathbb\{E\}_\{\d+\}"
    r"|(?:\\(?:Theta|theta|phi|kappa|mathcal\{[A-Z]\})|[KqmfR])_\{[\d.]+\}'?"
    r"|\\[a-zA-Z]+|\d+\.?\d*|[-+/^{}()\[\]uve,]"
)
CONSTANTS = {r"\pi": np.pi, "e": np.e}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    r"\sin": np.sin,
    r"\cos": np.cos,
    r"\tanh": np.tanh,
    r"\log": np.log,
    r"\arcsin": np.arcsin,
}
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
WEIGHTS = np.outer(WEIGHTS, WEIGHTS) / (2 * np.pi)
STEP = 1e-20  # of derivatives along the imaginary axis, where nothing cancels


def compute(text: str, names: dict[str, Any]) -> Any:
    """The number that a formula stands for, where the names in it are these."""
    reader = _Reader(TOKEN.findall(text.replace(r"\,", " ").replace(r"\cdot", "")), names)
    value = reader.sum()
    assert reader.at == len(reader.tokens), (
        f"{text}: not understood from {reader.tokens[reader.at :]}"
    )
    return value


def differentiate(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda u: np.imag(function(u + 1j * STEP)) / STEP


def half_moment(p: float, rho: Any) -> Any:
    """f_p of docs/layers.md."""
    z = (1 + rho) / 2
    factor = 2 ** (p - 1) * gamma(p + 1) ** 2 / (np.sqrt(np.pi) * gamma(p + 1.5))
    return factor * z ** (p + 0.5) * hyp2f1(0.5, 0.5, p + 1.5, z)


def kappa(nu: float, rho: Any) -> Any:
    factor = 2 / nu * (gamma((nu + 1) / 2) / gamma(nu / 2)) ** 2
    return factor * rho * hyp2f1(0.5, 0.5, nu / 2 + 1, rho * rho)


class _Reader:
    def __init__(self, tokens: list[str], names: dict[str, Any]):
        self.tokens, self.names, self.at = tokens, names, 0

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        assert not expected or self.next == expected, (expected, self.tokens[self.at :])
        self.at += 1
        return self.tokens[self.at - 1]

    def between(self, opening: str, closing: str) -> Any:
        self.take(opening)
        value = self.sum()
        self.take(closing)
        return value

    def sum(self) -> Any:
        value = -self.product() if self.next == "-" and self.take() else self.product()
        while self.next in ("+", "-"):
            value = value + self.product() if self.take() == "+" else value - self.product()
        return value

    def product(self) -> Any:
        value = self.power()
        while self.next not in ("", "+", "-", "}", ")", "]", ",", r"\rangle"):
            value = (
                value / self.power() if self.next == "/" and self.take() else value * self.power()
            )
        return value

    def power(self) -> Any:
        base = self.factor()
        if self.next != "^":
            return base
        self.take()
        return base ** (self.between("{", "}") if self.next == "{" else float(self.take()))

    def factor(self) -> Any:
        token = self.next
        if token in "([{":
            return self.between(token, {"(": ")", "[": "]", "{": "}"}[token])
        self.take()
        if token == r"\frac" or token == r"\tfrac":
            return self.between("{", "}") / self.between("{", "}")
        if token == r"\sqrt":
            return np.sqrt(self.between("{", "}"))
        if token in FUNCTIONS:
            return FUNCTIONS[token](self.factor())
        if token == r"\overline":
            return np.mean(self.between("{", "}"))
        if token == r"\langle":
            one, two = self.sum(), self.take(",") and self.sum()
            self.take(r"\rangle")
            return np.sum(one * two)
        if token.startswith(r"\mathcal"):
            return self.names[token](self.between("(", ")"))
        if token.startswith(r"\mathbb"):
            return self.expectation(token[12:-1])
        if token[:3] in ("f_{", r"\ka", r"\ph"):
            return self.function(token)(self.between("(", ")"))
        if token in CONSTANTS or token in self.names:
            return CONSTANTS.get(token, self.names.get(token))
        return float(token)

    def function(self, token: str) -> Callable[[Any], Any]:
        index = token.partition("{")[2].rstrip("'").rstrip("}")
        if token.startswith("f_"):
            return lambda rho: half_moment(float(index), rho)
        base: Callable[[Any], Any] = (
            (lambda rho: kappa(float(index), rho))
            if token.startswith(r"\kappa")
            else lambda u: compute(self.names[f"phi {index}"], {"u": u})
        )
        return differentiate(base) if token.endswith("'") else base

    def expectation(self, index: str) -> Any:
        q, q2, K = (
            self.names[name] for name in (f"q_{{{index}}}", f"q_{{{index}}}'", f"K_{{{index}}}")
        )
        x, y = np.meshgrid(NODES, NODES, indexing="ij")
        q, q2, K = (np.asarray(each)[..., None, None] for each in (q, q2, K))
        u = np.sqrt(q) * x
        v = K / np.sqrt(q) * x + np.sqrt(np.maximum(q2 - K * K / q, 0.0)) * y
        inner = _Reader(self.tokens, self.names | {"u": u, "v": v})
        inner.at = self.at
        value = np.sum(WEIGHTS * inner.between("[", "]"), axis=(-2, -1))
        self.at = inner.at
        return value
