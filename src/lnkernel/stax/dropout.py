"""neural-tangents' `Dropout`, of which the test mode has a place here."""

from __future__ import annotations

from lnkernel import arch
from lnkernel.errors import ArchitectureError, InputError
from lnkernel.stax.triple import Layer, layer_of


def Dropout(rate: float, mode: str = "train") -> Layer:
    """In its test mode the identity: `lnkernel.Identity`.

    Args:
        rate: the share of features that are kept, from 0 (excluded) to 1.
        mode: "test"; with "train", the default there, it is refused unless all features are kept.

    >>> from lnkernel import stax
    >>> stax.Dropout(0.9, mode="test").arch
    Identity()
    """
    if mode not in ("train", "test"):
        raise InputError("mode", '"train" or "test"', repr(mode), 'Write mode="test"')
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= 1:
        remedy = "It is the share of features that are kept: write rate=0.9 to drop a tenth"
        raise InputError("rate", "a number above 0, at most 1", repr(rate), remedy)
    if mode == "train" and rate < 1:
        raise ArchitectureError(
            "stax.Dropout",
            "",
            "its training mode draws new masks at every call, so that the kernel of an input with itself is not that "
            "with an equal input, and no function of two inputs",
            'Write mode="test", in which it is the identity, or omit it',
        )
    return layer_of(arch.Identity())
