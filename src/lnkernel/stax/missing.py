"""The names of neural-tangents' `stax` that are not here, with the reason and a way on."""

from __future__ import annotations

from lnkernel.errors import MissingLayerError

ELSEWHERE = "Use neural-tangents itself, in an environment of its own"
DENSE = (
    "this library knows networks of Dense layers on points of shape (n, d), not images, sequences "
    "or graphs"
)
OTHERS = (
    "this library knows the positively homogeneous activations, a u₊^p + b (-u)₊^p with p > 1/2, "
    "and some analytic ones, whose kernels it computes to all digits, and this is none of them"
)
OWN_LAYERS = "it serves to write layers of one's own, which is done otherwise here"
ACTIVATIONS = (
    "Take ElementwiseNumerical, for any function, or another layer of lnkernel; or u"
    + ELSEWHERE[1:]
)
ADDING = "docs/adding-a-layer.md shows how"
BRANCHES = "Take FanInSum, or u" + ELSEWHERE[1:]

# reason, remedy: names
MISSING = {
    (DENSE, ELSEWHERE): (
        *("Aggregate", "AggregateImplementation", "AttentionMechanism", "AvgPool", "Conv"),
        *("ConvLocal", "ConvTranspose", "DotGeneral", "GlobalAvgPool", "GlobalSelfAttention"),
        *("GlobalSumPool", "ImageResize", "Index", "MaskedArray", "Padding"),
        *("PositionalEmbedding", "Slice", "SumPool", "supports_masking", "unmask_fn"),
    ),
    (DENSE, "Omit it, and give x.reshape(len(x), -1): the Dense behind it means the same"): (
        "Flatten",
    ),
    (OTHERS, ACTIVATIONS): (
        *("Elementwise", "Exp", "ExpNormalized", "Gabor", "Rbf", "Sigmoid_like"),
    ),
    ("its kernel is not in this library", BRANCHES): ("FanInConcat", "FanInProd"),
    (
        "the random masks of its training mode are not in this library",
        "Omit it: in its test mode it is the identity",
    ): ("Dropout",),
    (OWN_LAYERS, ADDING): ("Bool", "Diagonal", "layer", "requires"),
}


def why_missing(name: str) -> AttributeError:
    """The error for a name that this module does not have."""
    for (reason, remedy), names in MISSING.items():
        if name in names:
            return MissingLayerError(name, reason, remedy)
    return AttributeError(f"module 'lnkernel.stax' has no attribute {name!r}")
