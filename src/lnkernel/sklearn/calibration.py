r"""Probabilities from least squares: how sharp they may be is told by predictions of points left out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64
from scipy import optimize, special

from lnkernel.gp.fit import Fit

Rows = Float64[np.ndarray, "n classes"]
_COLUMNS = 1024  # of A⁻¹, worked on at a time


@dataclass(frozen=True, eq=False)
class Calibration:
    r"""$p(c \mid x) = \mathrm{softmax}(\beta f(x))_c$, with the $\beta$ under which the points that were left
    out are most likely.

    The fit's targets are the classes as rows $e_c - 1/C$. $\beta$ is computed when first asked for,
    because $\mathrm{diag}\,A^{-1}$ takes longer than the factor.
    """

    fit: Fit

    @cached_property
    def sharpness(self) -> float:
        r"""The $\beta \ge 0$ that maximises $\sum_i \sum_c t_{ic} \log p_{-i}(c \mid x_i)$.

        $t_{ic} = (n\,[c_i = c] + 1/C)/(n + 1)$: to the n points one is added that may be of any class, so
        that $\beta$ is finite where no point is mistaken (Platt 1999 does alike for two classes).
        """
        outputs = leave_one_out(self.fit)
        n, classes = outputs.shape
        targets = n / (n + 1) * self.fit.data.y + 1 / classes  # y = [c_i = c] - 1/C

        def slope(beta: float) -> float:
            """The derivative of the log-likelihood, which is concave in beta."""
            return float(((targets - special.softmax(beta * outputs, axis=1)) * outputs).sum())

        if slope(0.0) <= 0:
            return 0.0
        above = 1.0
        while slope(above) > 0:
            above *= 2
        return float(optimize.brentq(slope, 0.0, above))

    def probabilities(self, outputs: Rows) -> Rows:
        """The probability of each class, for rows of outputs."""
        return np.asarray(special.softmax(self.sharpness * outputs, axis=1))


def leave_one_out(fit: Fit) -> Rows:
    r"""What every training point is predicted as by the others:
    $f_{-i}(x_i) = y_i - (A^{-1}y)_i/(A^{-1})_{ii}$.
    """
    n = len(fit.data.x)
    inverse = np.empty(n)
    for start in range(0, n, _COLUMNS):
        stop = min(start + _COLUMNS, n)
        columns = np.zeros((n, stop - start), order="F")
        columns[np.arange(start, stop), np.arange(stop - start)] = 1.0
        inverse[start:stop] = (fit.factor.half_solve(columns) ** 2).sum(axis=0)
    return fit.data.y - fit.coefficients / inverse[:, None]
