"""The activations of neural-tangents that come in families, such as $a\\,\\mathrm{erf}(bu) + c$.

What is inside and around a function is a layer of its own, `lnkernel.Scale` and `lnkernel.Shift`, so that the closed
forms and all that is proved of them stay.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import jax
import jax.numpy as jnp

from lnkernel import arch
from lnkernel.check.plain import as_float, known
from lnkernel.errors import ArchitectureError
from lnkernel.stax.stack import Stack
from lnkernel.stax.triple import Layer

# where erf comes closest to the sigmoid on [-5, 5], as neural-tangents has it
SIGMOID_LIKE = 2.4020563531719796


def Erf(a: float = 1.0, b: float = 1.0, c: float = 0.0) -> Layer:
    r"""$a\,\mathrm{erf}(bu) + c$: `lnkernel.Erf`, with `lnkernel.Scale` and `lnkernel.Shift` around it where needed.

    >>> from lnkernel import stax
    >>> stax.Erf().arch
    Erf()
    >>> stax.Erf(a=2.0, b=0.5, c=1.0).arch
    serial(Scale(factor=0.5), Erf(), Scale(factor=2.0), Shift(offset=1.0))
    """
    _check_numbers("Erf", a=a, b=b, c=c)
    _not_constant("Erf", a=a, b=b)
    return _around(arch.Erf(), inside=b, outside=a, offset=c)


def Sigmoid_like() -> Layer:
    r"""$\frac12\,\mathrm{erf}(u/2.4020563531719796) + \frac12$, which is close to the sigmoid: a case of `Erf`.

    The sigmoid itself is `lnkernel.Sigmoid`.

    >>> from lnkernel import stax
    >>> stax.Sigmoid_like().arch
    serial(Scale(factor=0.41630996...), Erf(), Scale(factor=0.5), Shift(offset=0.5))
    """
    return Erf(a=0.5, b=1 / SIGMOID_LIKE, c=0.5)


def Sin(a: float = 1.0, b: float = 1.0, c: float = 0.0) -> Layer:
    r"""$a \sin(bu + c)$: `lnkernel.Sin`, and behind it `lnkernel.Scale` for $a \ne 1$.

    >>> from lnkernel import stax
    >>> stax.Sin(b=2.0).arch
    Sin(omega=2.0, phase=0.0)
    >>> stax.Sin(a=3.0).arch
    serial(Sin(omega=1.0, phase=0.0), Scale(factor=3.0))
    """
    _check_numbers("Sin", a=a, b=b, c=c)
    _not_constant("Sin", a=a)
    return _around(arch.Sin(omega=b, phase=c), outside=a)


def Cos(a: float = 1.0, b: float = 1.0, c: float = 0.0) -> Layer:
    r"""$a \cos(bu + c)$: `lnkernel.Cos`, with $c$ `lnkernel.Sin`, and behind it `lnkernel.Scale` for $a \ne 1$.

    >>> from lnkernel import stax
    >>> stax.Cos(b=2.0).arch, stax.Cos(c=0.5).arch  # cos(u + c) = sin(u + c + π/2)
    (Cos(omega=2.0), Sin(omega=1.0, phase=2.0707963267948966))
    """
    _check_numbers("Cos", a=a, b=b, c=c)
    _not_constant("Cos", a=a)
    plain = _is(c, 0.0)
    inner = arch.Cos(omega=b) if plain else arch.Sin(omega=b, phase=c + math.pi / 2)
    return _around(inner, outside=a)


def Rbf(gamma: float = 1.0) -> Layer:
    r"""$\sqrt2 \sin(\sqrt{2\gamma}\,u + \pi/4)$: `lnkernel.Sin` and `lnkernel.Scale`.

    Its kernel is $e^{-\gamma\,E(u - v)^2}$. Behind one Dense with $W_{std} = 1$ that is $e^{-\gamma|x - x'|^2/d}$ for
    inputs of dimension $d$.

    >>> from lnkernel import stax
    >>> _, _, kernel_fn = stax.serial(stax.Dense(8), stax.Rbf(0.5))
    >>> round(float(kernel_fn([[1.0, 0.0]], [[0.0, 1.0]], "nngp")[0, 0]), 12)  # e^(-1/2)
    0.606530659713
    """
    _check_numbers("Rbf", gamma=gamma)
    if known(gamma) and gamma <= 0:
        _refuse(
            "Rbf",
            f"gamma must be positive, got {gamma!r}: it is one over twice a squared length",
            "Choose gamma > 0",
        )
    return _around(arch.Sin(omega=(2 * gamma) ** 0.5, phase=math.pi / 4), outside=2**0.5)


def Gaussian(a: float = 1.0, b: float = -1.0) -> Layer:
    r"""$a\,e^{bu^2}$ for $b < 0$: `lnkernel.Gaussian`, with `lnkernel.Scale` around it where needed.

    >>> from lnkernel import stax
    >>> stax.Gaussian().arch
    Gaussian()
    >>> stax.Gaussian(a=2.0, b=-0.25).arch
    serial(Scale(factor=0.5), Gaussian(), Scale(factor=2.0))
    """
    _check_numbers("Gaussian", a=a, b=b)
    _not_constant("Gaussian", a=a, b=b)
    if known(b) and b > 0:
        _refuse(
            "Gaussian",
            f"b must be negative, got {b!r}: e^(b u²) grows so fast that its second moment is finite for inputs of a "
            f"variance below {0.25 / b:g} alone",
            "Choose b < 0, or take Exp",
        )
    return _around(arch.Gaussian(), inside=(-b) ** 0.5, outside=a)


def Exp(a: float = 1.0, b: float = 1.0) -> Layer:
    r"""$a\,e^{bu}$: `lnkernel.Activate`, with `lnkernel.Scale` around it where needed.

    Its kernel is $a^2 e^{b^2(q_1 + q_2 + 2k)/2}$, of $u$ and $v$ with variances $q_1$, $q_2$ and covariance $k$. It is
    computed where $|b|$ times the standard deviation is at most 2, and refused beyond. A `LayerNorm` before it sees to
    that.

    >>> from lnkernel import stax
    >>> _, _, kernel_fn = stax.serial(stax.Dense(8), stax.LayerNorm(eps=0.0), stax.Exp(b=0.5))
    >>> round(float(kernel_fn([[1.0, 2.0]], None, "nngp")[0, 0]), 12)  # e^(1/2)
    1.6487212707
    """
    _check_numbers("Exp", a=a, b=b)
    _not_constant("Exp", a=a, b=b)
    return _around(arch.Activate(jnp.exp), inside=b, outside=a)


def Gabor() -> Layer:
    r"""$e^{-u^2} \sin u$: `lnkernel.Activate`.

    It is computed for inputs of a standard deviation of at most about 4, and refused beyond.

    >>> from lnkernel import stax
    >>> stax.Gabor().arch
    Activate(fn=gabor, kinks=())
    """
    return _around(arch.Activate(gabor))


def gabor(u: jax.Array) -> jax.Array:
    """The function of `Gabor`."""
    return jnp.exp(-(u * u)) * jnp.sin(u)


def _around(
    inner: arch.Node, inside: float = 1.0, outside: float = 1.0, offset: float = 0.0
) -> Layer:
    """outside · inner(inside · u) + offset."""
    parts: list[arch.Node] = [inner]
    if not _is(inside, 1.0):
        parts.insert(0, arch.Scale(inside))
    if not _is(outside, 1.0):
        parts.append(arch.Scale(outside))
    if not _is(offset, 0.0):
        parts.append(arch.Shift(offset))
    return Layer(Stack(tuple(parts)))


def _is(value: Any, number: float) -> bool:
    """Whether a parameter is certain to be this number; one that JAX differentiates in is not."""
    return known(value) and value == number


def _check_numbers(name: str, **given: Any) -> None:
    for argument, value in given.items():
        plain = as_float(value) if known(value) and not isinstance(value, bool) else None
        if not (isinstance(value, jax.Array) or (plain is not None and math.isfinite(plain))):
            _refuse(
                name,
                f"{argument} must be a finite number, got {value!r}",
                f"Write e.g. {argument}=1.0",
            )


def _not_constant(name: str, **given: Any) -> None:
    for argument, value in given.items():
        if _is(value, 0.0):
            _refuse(
                name,
                f"{argument}=0 makes it a constant, so that the layers before it have no effect",
                f"Choose another {argument}",
            )


def _refuse(name: str, reason: str, remedy: str) -> NoReturn:
    raise ArchitectureError(f"stax.{name}", "", reason, remedy)
