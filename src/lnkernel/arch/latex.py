"""The kernel's recursion of a network, for papers and notebooks."""

from __future__ import annotations

from lnkernel.arch import formulas, position_formulas  # noqa: F401  # they register the layers' formulas
from lnkernel.arch.recursion import write_out
from lnkernel.arch.text import Architecture, as_architecture


def latex(arch: Architecture) -> str:
    r"""The recursion of the kernels of a network, in LaTeX: one line per layer, with its numbers.

    $K_l$ and $\Theta_l$ are the NNGP kernel and the NTK of a pair of inputs behind layer $l$, and the last
    line's are those of the network. Sums over branches refer to the lines of their ends. Mean
    features $m_l$ are written where a later line needs them. Numbers have six digits. Of images and sequences every
    line is for all positions $p$ of the one input and $p'$ of the other, until a layer leaves none.

    Args:
        arch: the network, or its text.

    In a notebook an architecture shows this below the table of its layers; elsewhere print it.

    >>> import lnkernel as lnk
    >>> print(lnk.latex(lnk.serial(lnk.Dense(8, W_std=1.5, b_std=0.1), lnk.LayerNorm(), lnk.Dense(1))))
    \begin{array}{l}
    \begin{aligned}
    \text{input} &\quad & K_{0} &= \frac{x \cdot x'}{d} &\quad \Theta_{0} &= 0 \\
    \text{Dense} &\quad & K_{1} &= 2.25\,K_{0} + 0.01 &\quad \Theta_{1} &= K_{1} \\
    \text{LayerNorm} &\quad & K_{2} &= \frac{K_{1}}{\sqrt{q_{1}\,q_{1}'}}
        &\quad \Theta_{2} &= \frac{\Theta_{1}}{\sqrt{q_{1}\,q_{1}'}} \\
    \text{Dense} &\quad & K_{3} &= K_{2} &\quad \Theta_{3} &= K_{3} + \Theta_{2}
    \end{aligned}
    \\[1ex] \text{with } q_l = K_l(x, x),\; q_l' = K_l(x', x')
    \end{array}
    """
    return write_out(as_architecture(arch))
