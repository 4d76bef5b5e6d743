r"""The kernel's recursion written out, one line per layer.

Line $l$ tells $K_l$ and $\Theta_l$ of a pair of inputs behind its layer, by those of the line before.
What is written for a layer, `recursion`, and for a composition, `write`, is registered in
`lnkernel.arch.formulas`; that these are the rules that the kernels are computed by is tested by numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import singledispatch

from lnkernel.arch.flow import check_network, rows_of
from lnkernel.arch.node import Node
from lnkernel.arch.traits import traits
from lnkernel.errors import ArchitectureError

MOST = 4  # explanations on one line
ALL = r",\; \text{all positions}"  # what a layer says that acts on all of them together


@dataclass
class Line:
    """One layer's line; its mean features are printed where a later line asks for them."""

    number: int
    name: str  # in LaTeX
    K: str
    theta: str
    mean: str | None = None  # of the features of x; None is zero


@dataclass(frozen=True)
class State:
    """What stands before a layer: the names of its numbers, and what is known of it."""

    line: Line
    scales: int = 0  # trainable scales that act on these very coordinates
    gaussian: bool = True

    def named(self, letter: str, prime: str = "") -> str:
        return f"{letter}_{{{self.line.number}}}{prime}"

    @property
    def K(self) -> str:
        return self.named("K")

    @property
    def theta(self) -> str | None:
        r"""$\Theta$ before the layer; None stands for zero, as at the raw input."""
        return self.named(r"\Theta") if self.line.theta != "0" else None

    @property
    def angle(self) -> str:
        return self.named(r"\theta")

    @property
    def lengths(self) -> tuple[str, str]:
        return self.named("q"), self.named("q", "'")

    @property
    def means(self) -> tuple[str, str] | None:
        """The mean features of both inputs, unless they are zero."""
        return None if self.line.mean is None else (self.named("m"), self.named("m", "'"))

    def with_scales(self) -> str | None:
        r"""$\Theta$ with the share of the trainable scales, which is $K$ for each of them."""
        share = times(self.scales, self.K) if self.scales else None
        return add(self.theta, share) or None


@dataclass(frozen=True)
class Step:
    """What a layer does: K, Θ and the mean features behind it, as formulas."""

    K: str
    theta: str
    mean: str | None = None
    scales: int = 0
    gaussian: bool = True
    says: str = ""  # of the layer, behind its name, in LaTeX


@singledispatch
def recursion(layer: Node, before: State, number: int) -> Step:
    """The formulas of one layer, whose line has this number."""
    name = type(layer).__name__
    raise ArchitectureError(
        name,
        "",
        "its recursion is not known as a formula",
        "Register one in lnkernel.arch.recursion.recursion",
    )


@singledispatch
def write(part: Node, before: State, lines: list[Line]) -> State:
    """Append the lines of `part`, and return the state behind it."""
    number = len(lines)
    step = recursion(part, before, number)
    name = rf"\text{{{type(part).__name__}}}{step.says}"
    lines.append(Line(number, name, step.K, step.theta, step.mean))
    return State(lines[-1], step.scales, step.gaussian)


def lines_of(arch: Node) -> tuple[list[Line], State]:
    """All lines of a network, from the raw input on, and the state at its end."""
    on_positions = any(traits(layer).on_positions for _, layer, _ in rows_of(arch))
    product = r"x_p \cdot x_{p'}'" if on_positions else r"x \cdot x'"
    lines = [Line(0, r"\text{input}", rf"\frac{{{product}}}{{d}}", "0", r"\bar{x}")]
    return lines, write(check_network(arch), State(lines[0], gaussian=False), lines)


def write_out(arch: Node) -> str:
    """`lnkernel.latex` of a description."""
    lines, end = lines_of(arch)
    body = " \\\\\n".join(_rows(lines, end))
    told = list(_legend(body))
    legend = (r", \\" + "\n" if len(told) > MOST else r",\;\; ").join(told)
    below = f"\\text{{with }} {legend}" if legend else ""
    rows = f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"
    return f"\\begin{{array}}{{l}}\n{rows}\n\\\\[1ex] {below}\n\\end{{array}}" if legend else rows


def _rows(lines: list[Line], end: State) -> list[str]:
    """The lines; means stand in those lines of which later ones need the mean."""
    rows: list[str] = []
    for line in reversed(lines):
        at = f"_{{{line.number}}}"
        row = rf"{line.name} &\quad & K{at} &= {line.K} &\quad \Theta{at} &= {line.theta}"
        if any(f"m{at}" in later for later in rows):
            row += rf" &\quad m{at} &= {line.mean}"
        rows.append(row)
    rows.reverse()
    if end.scales:
        rows.append(rf"\text{{output}} &\quad & K &= {end.K} &\quad \Theta &= {end.with_scales()}")
    return rows


def _legend(body: str) -> Iterable[str]:
    """What the letters in the lines mean, of those that occur."""
    sides = r"q_l = K_l(x, x),\; q_l' = K_l(x', x')"
    if "x_p" in body:
        sides = r"q_l = K_l(x, x)_{pp},\; q_l' = K_l(x', x')_{p'p'}"
    meanings = {
        "x_p": r"K_l, \Theta_l \text{ for positions } p \text{ of } x \text{ and } p' \text{ of } x'",
        r"\mathcal{A}": r"\mathcal{A}_l(K)_{pp'} = \text{mean of } K \text{ over equal places of the filter at } "
        r"p \text{ and } p'",
        r"\mathcal{D}": r"\mathcal{D}_l(K)_{pp'} = K_{pp'} \text{ for } p = p', \text{ else } 0",
        r"\mathcal{P}": r"\mathcal{P}_l \text{ the mean over the windows at } p \text{ and } p'",
        r"\mathcal{S}": r"\mathcal{S}_l \text{ the sum over the windows at } p \text{ and } p'",
        r"\mathcal{M}": r"\mathcal{M}_l(K) = M_l K M_l^T \text{ with the map } M_l \text{ of the positions}",
        r"\mathcal{T}": r"\mathcal{T}_l(K) = \text{mean of } K_{pp} \text{ over all positions}",
        r"\overline": r"\overline{q} \text{ the mean over all positions}",
        r"\mathcal{Z}": r"\mathcal{Z}_l(K) = \zeta_l\,K\,\zeta_l'^T,\; \zeta_l' \text{ that of } x'",
        r"\mathrm{softmax}": r"\text{softmax of every row}",
        r"\langle": r"\langle K, L \rangle = \sum_{pp'} K_{pp'} L_{pp'}",
        "q_{": sides,
        r"\theta_{": r"\cos\theta_l = K_l/\sqrt{q_l\,q_l'}",
        r"\mathbb{E}_{": r"\mathbb{E}_l \text{ over Gaussian } (u, v) \text{ with variances } q_l, q_l' "
        r"\text{ and covariance } K_l",
        "m_{": r"m_l = m_l(x),\; m_l' = m_l(x')",
        "f_{": r"f_p(\rho) = E\,u_+^p\,v_+^p \text{ for unit Gaussians of correlation } \rho",
        r"\kappa_{": r"\kappa_\nu(\rho) = \frac{2}{\nu} "
        r"\big(\frac{\Gamma((\nu+1)/2)}{\Gamma(\nu/2)}\big)^2 \rho\; {}_2F_1(\frac12, \frac12; \frac\nu2 + 1; \rho^2)",
    }
    return [text for letter, text in meanings.items() if letter in body]


def number_text(value: float) -> str:
    """Six digits of a number, as LaTeX writes it.

    >>> number_text(2.0000000000000004), number_text(1e-06), number_text(-2.5e9)
    ('2', '10^{-6}', '-2.5 \\\\cdot 10^{9}')
    """
    mantissa, _, exponent = f"{float(value):.6g}".partition("e")
    if not exponent:
        return mantissa
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa} \cdot {power}"


def times(factor: float, what: str) -> str:
    """The product; a factor of 1 is not written, nor one of 0 with what it multiplies."""
    if factor == 1:
        return what
    return rf"{number_text(factor)}\,{what}" if factor else ""


def add(*terms: str | None) -> str:
    """The sum of those terms that are there."""
    text = " + ".join(term for term in terms if term)
    return text.replace("+ -", "- ")


def brackets(text: str) -> str:
    """The text as a factor: sums get brackets."""
    return f"({text})" if " + " in text or " - " in text else text
