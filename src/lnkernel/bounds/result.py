"""What `bound` returns, in numbers and in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lnkernel.arch import Identity
from lnkernel.bounds.digits import at_least, at_most
from lnkernel.bounds.forms import FORMULAS, formula
from lnkernel.bounds.seal import are_known, seal
from lnkernel.bounds.supremum import SupDiagonal
from lnkernel.check.arrays import as_inputs, as_traced_inputs
from lnkernel.errors import InputError, TransformationError
from lnkernel.gp.noise import noise_in_words
from lnkernel.gram.kernel import ntk
from lnkernel.gram.structure import assemble, dissect
from lnkernel.precision import (
    as_leaf,
    demand_float64,
    demand_plain_numbers,
    demand_x64,
    inside_jit,
    is_traced,
)
from lnkernel.types import Diagonal, MorePoints, Values

if TYPE_CHECKING:
    from lnkernel.bounds.certified.certificate import Certificate


class _Claims(NamedTuple):
    """What is stated of the numbers of a bound; nothing, unless said otherwise."""

    is_theorem: bool = False
    certified: bool = False
    certificate: Certificate | None = None


@dataclass(frozen=True)
class Bound:
    r"""A bound on $|E f(x)|$ for every x, with all that it is made of. `bound` makes it.

    Attributes:
        value: $B = s\,C \max|y|/(\lambda_{\min} n)$.
        C: sup Θ(x, x).
        lambda_min: the smallest eigenvalue of Θ(X, X) + noise·I.
        lambda_error: how far the exact one may be from it; 0 where it is a certified lower bound.
        n: the number of points.
        max_abs_y: the largest target, over all points and outputs.
        s: the scaling factor, as a number.
        form: "sharp", "paper", "norms", or "given" if s was a number.
        rkhs: $\sqrt{C\,a^T\Theta a}$ with $a = (\Theta + \mathrm{noise}\,I)^{-1}y$, the tightest; of
            several outputs the largest. Without noise it is $\sqrt{C\,y^T\Theta^{-1}y}$.
        is_theorem: whether $|E f(x)| \le$ value is proved.
        certified: whether rounding errors are accounted for rigorously as well.
        noise: the variance that was added to the diagonal, or that of each point, (n,).
        certificate: a `Certificate`, which can be saved and verified, or None.

    It is a pytree of its numbers, so that it can be an argument of a program, and comes out of it as it was. Where
    a program, `jax.tree.map` or a gradient has changed its numbers, nothing is proved of them: `is_theorem` and
    `certified` are False then, there is no certificate, and the text says so.

    >>> import lnkernel as lnk
    >>> b = lnk.bound(lnk.mlp(hidden=2, norm="first"), [[-1.0], [0.0], [1.0]], [1.0, 0.0, 1.0])
    >>> b.rkhs <= b.sharp <= b.paper <= b.norms
    True
    """

    value: float
    C: float
    lambda_min: float
    lambda_error: float
    n: int
    max_abs_y: float
    s: float
    form: str
    rkhs: float
    is_theorem: bool
    certified: bool
    noise: float | Diagonal = field(compare=False)
    certificate: Certificate | None = field(repr=False)
    sup: SupDiagonal = field(repr=False)
    dimension: int | tuple[int, ...] = field(repr=False)  # the shape of one input
    native_norm: float = field(repr=False)  # √(aᵀΘa), the norm of the mean in the space of Θ
    # whether λ_min is only known from below, by the noise
    lambda_is_floor: bool = field(default=False, repr=False)
    # made of all numbers when they were computed, and what was stated of them then
    _seal: float | None = field(default=None, repr=False, compare=False)
    _claims: _Claims | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """State of the numbers only what was stated of these."""
        numbers = _numbers(self)
        if not are_known(numbers):
            return
        if self._seal is None:
            object.__setattr__(self, "_seal", seal(numbers))
            return
        claims = self._claims or _Claims(self.is_theorem, self.certified, self.certificate)
        object.__setattr__(self, "_claims", claims)
        true = _Claims() if _is_stack(self) or self._was_changed else claims
        for name, value in true._asdict().items():
            object.__setattr__(self, name, value)

    @property
    def _was_changed(self) -> bool:
        """Whether the numbers are known, and others than those that were computed."""
        numbers = _numbers(self)
        return are_known((*numbers, self._seal)) and seal(numbers) != self._seal

    def __float__(self) -> float:
        if is_traced(self.value):
            raise TransformationError("float(bound)")
        _demand_one(self)
        return float(self.value)

    @property
    def sharp(self) -> float:
        """max|y|·√(C·n/λ_min), the least B of the form s·C·max|y|/(λ_min·n) for all targets."""
        return self._formula("sharp")

    @property
    def paper(self) -> float:
        """n·max|y|·√(C/λ_min)."""
        return self._formula("paper")

    @property
    def norms(self) -> float:
        """n·max|y|·C/λ_min, the product of the norms of Θ(x, X), of the inverse, and of y."""
        return self._formula("norms")

    def _formula(self, form: str) -> float:
        demand_plain_numbers(form, self)
        _demand_one(self)
        return formula(form, self.C, self.lambda_min, self.n, self.max_abs_y)

    def at(self, x: MorePoints) -> Values:
        r"""The bound at points x (m, d): $\sqrt{\Theta(x,x)\;a^T\Theta a}$, (m,), float64.

        It is in float64, also where the bound for all x is certified.

        >>> import lnkernel as lnk
        >>> b = lnk.bound(lnk.mlp(), [[1.0]], [2.0])      # one point, no LayerNorm
        >>> b.value, b.at([[1.0], [-3.0]]).round(3).tolist()
        (inf, [2.0, ...])
        """
        _demand_one(self)
        theta = ntk(self.sup.arch)
        if is_traced(theta, x, self.native_norm) or inside_jit():
            demand_x64()
            return jnp.sqrt(theta.diagonal(as_traced_inputs(x, self.dimension))) * self.native_norm
        spread = np.sqrt(np.asarray(theta.diagonal(as_inputs(x, self.dimension))))
        with np.errstate(over="ignore"):  # infinity is a bound
            return spread * self.native_norm

    def __str__(self) -> str:
        return _in_words(self) if are_known(_numbers(self)) else repr(self)


def _demand_one(b: Bound) -> None:
    if _is_stack(b):
        raise InputError(
            "bound",
            "one bound",
            f"a stack of them, of shape {np.shape(b.value)}",
            "Ask each by jax.vmap, e.g. jax.vmap(lambda b: b.at(x))(stack), or take one, "
            "jax.tree.map(lambda v: v[0], stack)",
        )


def _is_stack(b: Bound) -> bool:
    return np.ndim(b.value) > 0


_NUMBERS = (
    *("value", "C", "lambda_min", "lambda_error", "max_abs_y", "s", "rkhs", "noise", "native_norm"),
)
_FIXED = ("n", "form", "dimension", "lambda_is_floor")


def _numbers(b: Bound) -> list[Any]:
    """All numbers that a program may change."""
    _, varying = dissect(b.sup.arch)
    return [*map(as_leaf, varying), *(getattr(b, name) for name in _NUMBERS)]


def _flatten(b: Bound) -> tuple[tuple[Any, ...], Any]:
    structure, varying = dissect(b.sup.arch)
    leaves = (list(map(as_leaf, varying)), *(getattr(b, name) for name in _NUMBERS), b._seal)
    claims = b._claims or _Claims(b.is_theorem, b.certified, b.certificate)
    fixed = (getattr(b, name) for name in _FIXED)
    return leaves, (structure, replace(b.sup, arch=Identity()), claims, *fixed)


def _unflatten(fixed: Any, leaves: Any) -> Bound:
    demand_float64(leaves)
    structure, sup, claims, *others = fixed
    varying, *numbers = leaves
    # as JAX's they would be cut to float32 in 32-bit mode
    names = (*_NUMBERS, "_seal", *_FIXED)
    made = dict(zip(names, (*map(as_leaf, numbers), *others), strict=True))
    of_arch = replace(sup, arch=assemble(structure, varying))
    return Bound(sup=of_arch, _claims=claims, **claims._asdict(), **made)


jax.tree_util.register_pytree_node(Bound, _flatten, _unflatten)


def _in_words(b: Bound) -> str:
    """The statement, then each ingredient on a line of its own."""
    if _is_stack(b):
        return (
            f"A stack of bounds, of shape {np.shape(b.value)}. Take one to read it, "
            "jax.tree.map(lambda v: v[0], stack)."
        )
    if b._was_changed:
        return _changed_in_words(b)
    return "\n".join([_statement(b), *(f"  {name:9} {text}" for name, text in _ingredients(b))])


def _changed_in_words(b: Bound) -> str:
    rows = [f"  {name:12} {noise_in_words(getattr(b, name))}" for name in _NUMBERS]
    return "\n".join(
        [
            "Numbers of a bound that were changed after they had been computed, by a gradient, jax.tree.map or another "
            "program: nothing is proved of them. What is proved is in the bound that they were made of.",
            *rows,
        ]
    )


def _statement(b: Bound) -> str:
    mean = "the expected output of the trained, infinitely wide network"
    if b.max_abs_y == 0:
        return f"Every target is 0, so {mean} is 0 everywhere: the bound is 0."
    if math.isinf(b.value) and math.isfinite(b.C):
        finite = f"; `rkhs`, {at_most(b.rkhs)}, bounds it all the same" if b.rkhs < math.inf else ""
        return (
            f"The theorem bounds {mean} for every x, but by a number that is beyond the range of float64, because the "
            f"targets are as large as {b.max_abs_y:.3g}{finite}. Divide the targets by their largest absolute value, "
            "and multiply the bound by it."
        )
    if math.isinf(b.value):
        other = (
            ""
            if b.sup.cause is None
            else "; for bounded activations `mean_bound` does so everywhere"
        )
        return (
            f"The theorem bounds {mean} by no finite number for every x, because C = sup Θ(x, x) is "
            f"infinite. `at(x)` bounds it at a point{other}."
        )
    if not b.is_theorem:
        return (
            f"NOT A THEOREM: the formula gives {b.value:.6g} with s = {b.s:.6g}, but nothing proves "
            f"that {mean} stays below it."
        )
    proof = (
        "Proved, rounding errors included."
        if b.certified
        else "A theorem, evaluated in float64: rounding errors are not accounted for."
    )
    return (
        f"{mean[0].upper()}{mean[1:]} is at most {at_most(b.value)} in absolute value for every x, "
        f"however far from the data. {proof}"
    )


def _ingredients(b: Bound) -> list[tuple[str, str]]:
    literal = f"s·C·max|y|/(λ_min·n) with s = {b.s:.6g}"
    formula = f"{FORMULAS[b.form]}, that is {literal}" if b.form in FORMULAS else literal
    matrix = "Θ(X, X)"
    if np.ndim(b.noise):
        words = noise_in_words(b.noise)
        matrix += f" + diag(noise), noise {'from ' if ' to ' in words else ''}{words}"
    elif b.noise:
        matrix += f" + {b.noise:.6g}·I"
    is_floor = b.certified or b.lambda_is_floor
    lam = f"at least {at_least(b.lambda_min)}" if is_floor else f"{b.lambda_min:.6g}"
    error = "" if b.lambda_error == 0 else f" ± {b.lambda_error:.1g}"
    native = "yᵀΘ⁻¹y)" if not np.any(b.noise) else "aᵀΘa) with a = (Θ + noise·I)⁻¹y"
    rows = [
        ("B", f"{at_most(b.value)} = {formula}" if math.isfinite(b.C) else at_most(b.value)),
        ("C", " ".join(str(b.sup).removeprefix("C = ").split())),
        ("λ_min", f"{lam}{error}, the smallest eigenvalue of {matrix}"),
        ("n", f"{b.n} point{'' if b.n == 1 else 's'}"),
        ("max|y|", f"{b.max_abs_y:.6g}"),
    ]
    if 0 < b.rkhs < math.inf:
        rows.append(
            ("rkhs", f"{at_most(b.rkhs)} = √(C·{native}, the tightest bound; use it where you can")
        )
    return rows
