r"""Certificates: the bound on a trained network's output, proved, saved, and checked again.

For every x, with $f(x) = \Theta(x, X)\,a$, $a = A^{-1}y$, $A = \Theta(X, X) + D$, where D holds the noise,

    |f(x)| <= sqrt(C a^T Theta a) <= max|y| sqrt(C n/lambda_min(A)),    C = sup_x Theta(x, x).

The first is the inequality of Cauchy and Schwarz in the space of functions of Θ, where $\sqrt{a^T\Theta a}$ is the norm
of f, the second $a^T\Theta a \le a^T A a = y^T A^{-1} y$. A certificate states numbers for C, λ_min and that norm,
rounded so that these inequalities hold with them in exact arithmetic, and carries the architecture and the data, bit
by bit.
`verify` proves each statement again, from the architecture and the data alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.arch import Node
from lnkernel.arch.facts import acts_on_positions, mixes_positions, position_axes
from lnkernel.arch.flow import check_network
from lnkernel.bounds.certified.description import describe, rebuild
from lnkernel.bounds.certified.enclosures import (
    RTOL,
    checked_points,
    sup_diagonal_enclosure,
    supremum_over_inputs,
)
from lnkernel.bounds.certified.fields import (
    FieldError,
    number,
    numbers,
    rows,
    take,
    text,
    texts,
    whole_number,
    whole_numbers,
)
from lnkernel.bounds.certified.spectrum import (
    EnclosedGram,
    eigenvalue_floor,
    is_above,
    norm_ceiling,
)
from lnkernel.bounds.certified.supremum import Enclosure, up
from lnkernel.bounds.certified.verdict import Finding, Verdict
from lnkernel.check.arrays import as_data, as_points
from lnkernel.errors import CertificateError
from lnkernel.gp.noise import as_variance, as_variances
from lnkernel.progress import Bar
from lnkernel.types import Noise, Points, Targets

FORMAT = 2  # 1 had no noise, and the square of the norm, which overflows first
LONG = 300  # points from which on a progress bar is shown
SLACK = 2.0**-37  # of the norm, so that another machine's rounding proves it as well


@dataclass(frozen=True, eq=False)
class Certificate:
    r"""Proved numbers for the bound of one network and one data set. `bound` with `certify=True`
    makes it.

    Attributes:
        arch, X, y: the network and the data, exactly; y has shape (n, outputs).
        C: encloses sup Θ(x, x).
        noise: the variance on the diagonal of D, of each point, (n,).
        lambda_min_lower: λ_min(Θ(X, X) + D) is at least this.
        norm_upper: $\sqrt{a^T\Theta a}$ is at most this (the largest, with several outputs). Without noise it
            is $\sqrt{y^T\Theta^{-1}y}$.
        rkhs_upper: $\sqrt{C\,a^T\Theta a}$ is at most this, and so is |f(x)|, for every x.
        sharp_upper: $\max|y|\sqrt{C n/\lambda_{min}}$ is at most this.
        n, max_abs_y: the number of points, and the largest |y|.
        rtol: how closely C was to be enclosed.
        made_with: the versions that made it.
        digest: a hash of all the others, as they were when it was made.

    >>> import lnkernel as lnk
    >>> b = lnk.bound(lnk.mlp(norm="first"), [[1.0], [-1.0]], [1.0, 1.0], certify=True)
    >>> round(b.certificate.rkhs_upper, 6), bool(b.certificate.verify())
    (1.345085, True)
    """

    arch: Node
    X: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    noise: np.ndarray = field(repr=False)
    C: Enclosure
    lambda_min_lower: float
    norm_upper: float
    rkhs_upper: float
    sharp_upper: float
    n: int
    max_abs_y: float
    rtol: float = RTOL
    made_with: dict[str, str] = field(default_factory=dict, repr=False)
    digest: str = field(default="", repr=False)

    def save(self, path: str | Path) -> None:
        """Write it as JSON. Every number is in hexadecimal, so that none is rounded."""
        Path(path).write_text(json.dumps(self._content() | {"digest": self.digest}, indent=1))

    @staticmethod
    def load(path: str | Path) -> Certificate:
        """Read what `save` has written. Nothing is proved yet: that is what `verify` is for.

        A file whose content cannot be a certificate (numbers that are missing or not finite, data
        of different lengths) raises a `CertificateError`.
        """
        return read(Path(path).read_bytes(), path)

    def verify(self, progress: bool | None = None) -> Verdict:
        """Prove every statement again, from the architecture and the data alone.

        The stored numbers are claims to be proved, and no intermediate result is stored. The
        digest tells in addition whether anything at all was changed since it was made.
        """
        with _bar(progress, self.n) as bar:
            gram = EnclosedGram(self.arch, self.X, self.noise, bar.update)
            low = self.lambda_min_lower
            positive = is_above(gram, low)
            norm = norm_ceiling(gram, self.y, low) if positive else math.inf
        sup = supremum_over_inputs(self.arch, self.rtol).enclosure
        rkhs, sharp = _bounds(self.C.upper, low, self.norm_upper, self.n, self.max_abs_y)
        matrix = "Θ(X, X) + noise" if self.noise.any() else "Θ(X, X)"
        form = "a^T Θ a" if self.noise.any() else "y^T Θ(X, X)^-1 y"
        findings = (
            Finding("nothing was changed since it was made", self.digest == self._digest()),
            Finding(
                f"the data are n = {self.n} points with max|y| = {self.max_abs_y:.17g}",
                len(self.X) == len(self.y) == len(self.noise) == self.n
                and bool((self.noise >= 0).all())
                and float(np.abs(self.y).max()) == self.max_abs_y,
            ),
            Finding(f"C = sup Θ(x, x) <= {self.C.upper:.17g}", sup.upper <= self.C.upper),
            Finding(f"C = sup Θ(x, x) >= {self.C.lower:.17g}", sup.lower >= self.C.lower),
            Finding(f"the smallest eigenvalue of {matrix} is >= {low:.17g}", positive),
            Finding(f"sqrt({form}) <= {self.norm_upper:.17g}", norm <= self.norm_upper),
            Finding(
                f"so |f(x)| <= sqrt(C {form}) <= {self.rkhs_upper:.17g} for every x",
                positive and rkhs <= self.rkhs_upper,
            ),
            Finding(
                f"and max|y| sqrt(C n/lambda_min) <= {self.sharp_upper:.17g}",
                positive and sharp <= self.sharp_upper,
            ),
        )
        return Verdict(findings)

    def _content(self) -> dict[str, Any]:
        return {
            "lnkernel certificate": FORMAT,
            "statement": "for every x: |Theta(x, X) (Theta(X, X) + noise)^-1 y| <= rkhs_upper <= sharp_upper",
            "method": "C: bisection in ball arithmetic; lambda_min: Cholesky factorisation with "
            "rigorous rounding errors (Rump 2006), or balls; norm: residual bound",
            "architecture": describe(self.arch),
            "architecture in words": repr(self.arch),
            "X": [[float(t).hex() for t in row] for row in self.X.reshape(len(self.X), -1)],
            **({"shape of one input": list(self.X.shape[1:])} if self.X.ndim > 2 else {}),
            "y": [[float(t).hex() for t in row] for row in self.y],
            "noise": [float(t).hex() for t in self.noise],
            "C": [self.C.lower.hex(), self.C.upper.hex()],
            **{name: getattr(self, name).hex() for name in _NUMBERS},
            "n": self.n,
            "made with": self.made_with,
        }

    def _digest(self) -> str:
        text = json.dumps(self._content(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


_NUMBERS = (
    "lambda_min_lower",
    "norm_upper",
    "rkhs_upper",
    "sharp_upper",
    "max_abs_y",
    "rtol",
)


def certify_bound(
    arch: Node,
    X: Points,
    y: Targets,
    rtol: float = RTOL,
    progress: bool | None = None,
    noise: Noise = 0.0,
) -> Certificate:
    r"""Prove the bound on |f(x)| for every x, with all rounding errors accounted for.

    Args:
        arch: a network with a normalisation, so that C is finite.
        X: points, (n, d).
        y: targets, (n,) or (n, outputs); with several outputs the bounds hold for each.
        rtol: how closely to enclose C.
        progress: whether to show a progress bar; by default for 300 points and more.
        noise: a variance, or one for each point, on the diagonal of Θ(X, X).

    >>> import lnkernel as lnk
    >>> made = certify_bound(lnk.mlp(norm="first"), [[1.0], [-1.0]], [1.0, 1.0])
    >>> round(made.rkhs_upper, 6), round(made.sharp_upper, 6), bool(made.verify())
    (1.345085, 1.495229, True)
    """
    check_network(arch)
    data = as_data(X, y, acts_on_positions(arch))
    variances = np.broadcast_to(as_variance(noise, len(data.x)), len(data.x)).copy()
    C, _ = sup_diagonal_enclosure(arch, rtol)
    if not math.isfinite(C.upper):
        raise CertificateError(
            "C = sup Θ(x, x) is infinite for this network, or could not be bounded, so there is no "
            "bound to certify",
            "Put a LayerNorm before the last layer",
        )
    with _bar(progress, len(data.x)) as bar:
        gram = EnclosedGram(arch, checked_points(arch, data.x), variances, bar.update)
        low = eigenvalue_floor(gram)
        norm = norm_ceiling(gram, data.y, low) * (1 + SLACK)
    largest = float(np.abs(data.y).max())
    rkhs, sharp = _bounds(C.upper, low, norm, len(data.x), largest)
    made = Certificate(
        arch=arch,
        X=data.x,
        y=data.y,
        noise=variances,
        C=C,
        lambda_min_lower=low,
        norm_upper=norm,
        rkhs_upper=rkhs,
        sharp_upper=sharp,
        n=len(data.x),
        max_abs_y=largest,
        rtol=float(rtol),
        made_with=_versions(),
    )
    return replace(made, digest=made._digest())


def _bounds(C: float, low: float, norm: float, n: int, largest: float) -> tuple[float, float]:
    """Both bounds, rounded up. The second bounds the first as well, which may have more slack."""
    from flint import arb

    from lnkernel.evaluate.balls.numbers import BITS, working_precision

    if not (low > 0 and C >= 0 and norm >= 0):
        return math.inf, math.inf
    with working_precision(BITS):
        sharp = up(arb(largest) * (arb(C) * n / arb(low)).sqrt())
        return min(up(arb(C).sqrt() * arb(norm)), sharp), sharp


def read(content: bytes, name: str | Path) -> Certificate:
    """The certificate in a file's content; `name` is what errors call the file."""
    remedy = "Name a file that Certificate.save wrote"
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise CertificateError(
            f"{name} is not a JSON file ({_in_words(problem)})", remedy
        ) from None
    try:
        return _from_content(data)
    except ValueError as problem:  # of a field, or of points
        why = f"{name} is not a certificate of this version ({problem})"
        raise CertificateError(why, remedy) from None


def _from_content(data: Any) -> Certificate:
    if not isinstance(data, dict):
        raise FieldError("it has no fields with names")
    written = take(data, "lnkernel certificate", whole_number)
    if written != FORMAT:
        raise FieldError(f'its field "lnkernel certificate" is {written}, and should be {FORMAT}')
    for name in ("statement", "method", "architecture in words"):
        take(data, name, text)
    lower, upper = take(data, "C", _both_ends)
    made = Certificate(
        arch=take(data, "architecture", lambda _, described: rebuild(described)),
        X=_inputs(data),
        y=np.asarray(as_points("y", take(data, "y", rows))),
        noise=as_variances(noise := take(data, "noise", numbers), len(noise)),
        C=Enclosure(lower, upper),
        **{name: take(data, name, number) for name in _NUMBERS},
        n=take(data, "n", whole_number),
        made_with=take(data, "made with", texts),
        digest=take(data, "digest", text),
    )
    _check_form(made)
    same = {key: value for key, value in data.items() if key != "digest"} == made._content()
    # words that the numbers do not carry (and numbers written otherwise) were changed
    return made if same else replace(made, digest="")


def _both_ends(place: str, value: Any) -> list[float]:
    ends = numbers(place, value)
    if len(ends) != 2:
        raise FieldError(f"its {place} has {len(ends)} numbers, and should have both ends, two")
    return ends


def _inputs(data: dict[str, Any]) -> np.ndarray:
    """X, (n, d), or of images and sequences (n, positions, channels)."""
    inputs = np.asarray(as_points("X", take(data, "X", rows)))
    if "shape of one input" not in data:
        return inputs
    shape = take(data, "shape of one input", whole_numbers)
    if math.prod(shape) != inputs.shape[1]:
        raise FieldError(
            f'inputs of shape {shape}, its field "shape of one input", have {math.prod(shape)} numbers, and the rows '
            f'of its field "X" have {inputs.shape[1]}'
        )
    return inputs.reshape(len(inputs), *shape)


def _check_form(made: Certificate) -> None:
    """What every certificate is, true or false: without it there is nothing to prove."""
    if mixes_positions(made.arch):
        raise FieldError("the network pools, and such kernels have no certificates")
    axes = position_axes(made.arch) if acts_on_positions(made.arch) else 0
    if (made.X.ndim > 2) != acts_on_positions(made.arch) or axes not in (None, made.X.ndim - 2):
        raise FieldError(
            f"inputs of shape {made.X.shape[1:]} are none of the network's; images and sequences have the field "
            '"shape of one input"'
        )
    if len(made.X) != len(made.y):
        raise FieldError(f"X has {len(made.X)} points and y has {len(made.y)} targets")
    if len(made.X) != len(made.noise):
        raise FieldError(f"X has {len(made.X)} points and noise has {len(made.noise)} variances")
    claims = {name: getattr(made, name) for name in _NUMBERS}
    claims |= {"C, lower": made.C.lower, "C, upper": made.C.upper}
    for name, value in claims.items():
        if not math.isfinite(value):
            raise FieldError(f"{name} is {value}")
    if not 0 < made.rtol < 1:
        raise FieldError(f"rtol is {made.rtol}, not between 0 and 1")


def _in_words(problem: Exception) -> str:
    """Why Python's reader of JSON stopped."""
    if isinstance(problem, RecursionError):
        return "its brackets are nested too deeply"
    if isinstance(problem, json.JSONDecodeError):
        return f"line {problem.lineno}, column {problem.colno}: {problem.msg}"
    if isinstance(problem, UnicodeDecodeError):
        return "it is no text in UTF-8"
    return "a whole number in it has thousands of digits"


def _bar(wanted: bool | None, n: int) -> Bar:
    """A progress bar over the entries of the matrix, where there are many of them."""
    shown = n >= LONG and wanted is not False
    return Bar(shown, n * (n + 1) // 2, "entries", "enclosing the kernel")


def _versions() -> dict[str, str]:
    packages = ("python-flint", "numpy", "scipy")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}
