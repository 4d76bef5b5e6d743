"""The names of neural-tangents that are not here, with the reason and a way on."""

from __future__ import annotations

from lnkernel.arch.registry import NONE_SUCH
from lnkernel.errors import missing_layer

ELSEWHERE = "Use neural-tangents itself, in an environment of its own"
GRAPHS = "it is about graphs, masks or products of arrays, which are not in this library"
FORMULA = (
    "it is a formula for kernels, √(q₁q₂) exp(gamma (cos + shift)), of no function of one number, so that neither a "
    "finite network of it nor its mean features exist"
)
OWN_LAYERS = "it serves to write layers of one's own, which is done otherwise here"
AT_UNIT_LENGTH = (
    "Behind a LayerNorm take Exp(a=math.exp(gamma * (shift - 1) / 2), b=gamma**0.5), which has the same kernels "
    "there"
)
ADDING = 'The page "Adding a layer" of the documentation shows how'
BRANCHES = "Take FanInSum, or u" + ELSEWHERE[1:]

# reason, remedy: names
MISSING = {
    (GRAPHS, ELSEWHERE): (
        *("Aggregate", "AggregateImplementation", "DotGeneral"),
        *("MaskedArray", "supports_masking", "unmask_fn"),
    ),
    (FORMULA, AT_UNIT_LENGTH): ("ExpNormalized",),
    ("products of branches are not in this library", BRANCHES): ("FanInProd",),
    (OWN_LAYERS, ADDING): ("Bool", "Diagonal", "layer", "requires"),
}

# names of neural-tangents that are not in its `stax` either, and what does the same here
TOP = "in neural-tangents it is a function of nt itself, and nothing takes its place here"
EMPIRICAL = "it is a kernel of finite networks, which are in lnkernel.finite here"
PREDICTING = "predictions are those of a posterior here"
OF_NT = {
    (
        TOP,
        "Omit it: kernels are computed in tiles that fit into memory, and kernel_fn is used as it is",
    ): (*("batch", "batching"),),
    (EMPIRICAL, "Use lnkernel.finite.empirical_ntk(network, x, x2)"): (
        *("empirical", "empirical_kernel_fn", "empirical_ntk_fn", "empirical_ntk_vp_fn"),
        *("NtkImplementation", "get_ntk_fun_empirical"),
    ),
    (EMPIRICAL, "Use lnkernel.finite.empirical_nngp(network, x, x2)"): ("empirical_nngp_fn",),
    (
        "what stands in neural-tangents' utils and experimental is not here",
        'The page "From neural-tangents" of the documentation has its functions beside those here; of '
        "others u" + ELSEWHERE[1:],
    ): ("utils", "experimental"),
    (
        "the mean kernel of random networks is in lnkernel.finite here",
        "Use lnkernel.finite.empirical_ntk_over_seeds(arch, x, seeds=...), which gives standard errors too",
    ): ("monte_carlo_kernel_fn", "monte_carlo"),
    (
        PREDICTING,
        "Use stax.predict.gradient_descent_mse_ensemble, or lnkernel.posterior(arch, X, y)",
    ): (
        *(
            "gradient_descent_mse_ensemble",
            "gp_inference",
            "gradient_descent_mse",
            "gradient_descent",
        ),
    ),
    (PREDICTING, "Use lnkernel.posterior(arch, X, y).max_learning_rate"): ("max_learning_rate",),
    (
        "networks linearised around their parameters are not part of stax",
        "Use lnkernel.tangent(model).linear, or lnkernel.posterior(arch, X, y).at(t), their training at infinite width",
    ): ("linearize", "taylor_expand"),
    (
        "its output depends on the other points of the batch, so it has no kernel of two points",
        "Take LayerNorm, or omit it: with fixed statistics it is an affine map",
    ): ("BatchNorm",),
    ("kernels without the layers' state are functions here", "Use lnkernel.ntk(arch)(x, x2)"): (
        *("kernel_fn", "ntk", "nngp"),
    ),
}


# names of `lnkernel.stax` that `lnkernel` has not
ONLY_IN_STAX = {
    "ABRelu": "Homogeneous(degree, a, b)",
    "AttentionMechanism": "Attention(channels, heads, weights, scaling)",
    "ElementwiseNumerical": "Activate(function)",
    "Exp": "Activate(function)",
    "Dropout": "Identity()",
    "FanInConcat": "parallel(...)",
    "FanInSum": "parallel(...)",
    "FanOut": "parallel(...)",
    "Gabor": "Activate(function)",
    "GlobalSelfAttention": "Attention(...)",
    "ImageResize": "Resize(shape, method)",
    "Index": "Crop(start, stop, step, axis)",
    "Layer": "serial(...)",
    "Monomial": "Polynomial(coefficients)",
    "Padding": "Conv(channels, filter, padding='SAME')",
    "Rbf": "Sin(omega, phase)",
    "RectifiedMonomial": "RectifiedPower(degree)",
    "Sigmoid_like": "Sigmoid()",
    "Slice": "Crop(start, stop, step, axis)",
    "predict": "posterior(arch, X, y)",
    "repeat": "serial(*n * [layer])",
}


def why_missing(name: str, module: str = "lnkernel.stax") -> AttributeError | ImportError:
    """The error for a name that this module, `lnkernel.stax` or `lnkernel`, does not have."""
    for (reason, remedy), names in (MISSING | OF_NT).items():
        if name in names:
            return missing_layer(name, reason, remedy, module)
    if name in NONE_SUCH:
        return missing_layer(name, *NONE_SUCH[name], module)
    if name in ONLY_IN_STAX:
        reason = "it is a name of neural-tangents"
        remedy = f"Use lnkernel.{ONLY_IN_STAX[name]}, or lnkernel.stax.{name}"
        return missing_layer(name, reason, remedy, module)
    return AttributeError(f"module {module!r} has no attribute {name!r}")
