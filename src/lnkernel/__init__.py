"""Exact kernels of infinitely wide networks, with LayerNorm done right.

`ntk(arch)(x, x2)` is the neural tangent kernel of an architecture, `nngp(arch)` its
Gaussian-process kernel; an architecture is built from layers by `serial`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lnkernel import errors
from lnkernel.arch import (
    Abs,
    Activate,
    Attention,
    AvgPool,
    Clip,
    Conv,
    ConvLocal,
    ConvTranspose,
    Cos,
    Crop,
    Dense,
    Elementwise,
    Elu,
    Erf,
    Flatten,
    Gaussian,
    Gelu,
    GlobalAvgPool,
    GlobalSumPool,
    GroupNorm,
    Hermite,
    Homogeneous,
    Identity,
    LayerNorm,
    LeakyRelu,
    Node,
    Parallel,
    Piecewise,
    Polynomial,
    PositionalEmbedding,
    PositivelyHomogeneous,
    RectifiedPower,
    Relu,
    Resize,
    RMSNorm,
    Scale,
    Selu,
    Serial,
    Shift,
    Sigmoid,
    Sign,
    Silu,
    Sin,
    Smooth,
    Softplus,
    Step,
    SumPool,
    Tanh,
    cnn,
    mlp,
    parallel,
    residual,
    resnet,
    serial,
    transformer,
)
from lnkernel.arch.latex import latex
from lnkernel.arch.parse import parse
from lnkernel.arch.registry import NONE_SUCH
from lnkernel.bounds import (
    Bound,
    MeanBound,
    SupDiagonal,
    Witness,
    bound,
    diverging_witness,
    mean_bound,
    sup_diagonal,
)
from lnkernel.calculus.state import Kernels
from lnkernel.gp.duplicates import merge_duplicates
from lnkernel.gp.posterior import Posterior, posterior
from lnkernel.gp.search import HyperparameterFit, fit
from lnkernel.gram.compiled import keep_programs
from lnkernel.gram.kernel import Kernel, KernelPair, kernels, nngp, ntk
from lnkernel.gram.stored import store_programs
from lnkernel.version import __version__ as __version__  # said twice: it is public

if TYPE_CHECKING:
    from lnkernel.bounds.certified.certificate import Certificate
    from lnkernel.finite.watching.watch import watch
    from lnkernel.tangents.tangent import tangent

__all__ = [
    "Abs",
    "Activate",
    "Attention",
    "AvgPool",
    "Bound",
    "Certificate",
    "Clip",
    "Conv",
    "ConvLocal",
    "ConvTranspose",
    "Cos",
    "Crop",
    "Dense",
    "Elementwise",
    "Elu",
    "Erf",
    "Flatten",
    "Gaussian",
    "Gelu",
    "GlobalAvgPool",
    "GlobalSumPool",
    "GroupNorm",
    "Hermite",
    "Homogeneous",
    "HyperparameterFit",
    "Identity",
    "Kernel",
    "KernelPair",
    "Kernels",
    "LayerNorm",
    "LeakyRelu",
    "MeanBound",
    "Node",
    "Parallel",
    "Piecewise",
    "Polynomial",
    "PositionalEmbedding",
    "PositivelyHomogeneous",
    "Posterior",
    "RMSNorm",
    "RectifiedPower",
    "Relu",
    "Resize",
    "Scale",
    "Selu",
    "Serial",
    "Shift",
    "Sigmoid",
    "Sign",
    "Silu",
    "Sin",
    "Smooth",
    "Softplus",
    "Step",
    "SumPool",
    "SupDiagonal",
    "Tanh",
    "Witness",
    "asymptotics",
    "bound",
    "cnn",
    "datasets",
    "distributed",
    "diverging_witness",
    "errors",
    "experiments",
    "finite",
    "fit",
    "keep_programs",
    "kernels",
    "latex",
    "mean_bound",
    "merge_duplicates",
    "mlp",
    "nngp",
    "nonlinearity",
    "ntk",
    "parallel",
    "parse",
    "plot",
    "posterior",
    "residual",
    "resnet",
    "serial",
    "sklearn",
    "stax",
    "store_programs",
    "sup_diagonal",
    "tangent",
    "transformer",
    "watch",
]

_ON_DEMAND = (
    "asymptotics",
    "datasets",
    "distributed",
    "experiments",
    "finite",
    "nonlinearity",
    "plot",
    "sklearn",
    "stax",
)  # what needs more than JAX, or what few need, is imported at its first use


def __dir__() -> list[str]:
    """The names for tab completion, also of what is imported at its first use."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "tangent":  # it needs Flax
        return importlib.import_module(f"{__name__}.tangents.tangent").tangent
    if name == "watch":  # it is of the training
        return importlib.import_module(f"{__name__}.finite.watching.watch").watch
    if name == "Certificate":  # it needs python-flint
        return importlib.import_module(f"{__name__}.bounds.certified.certificate").Certificate
    if name in NONE_SUCH:
        raise errors.missing_layer(name, *NONE_SUCH[name], module=__name__)
    if not name.startswith("_"):  # it may be a name of neural-tangents
        raise importlib.import_module(f"{__name__}.stax.missing").why_missing(name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
