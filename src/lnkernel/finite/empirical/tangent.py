r"""The tangent kernel of a network as it stands: $\hat\Theta(x, x') = \sum_\theta
\partial_\theta f(x)\,\partial_\theta f(x')$."""

from __future__ import annotations

import numpy as np
from flax import nnx
from jaxtyping import Float

from lnkernel.finite.training.arguments import check_module
from lnkernel.tangents.tangent import BATCH, Tangent, make_tangent
from lnkernel.types import Inputs, MoreInputs


def empirical_ntk(
    network: nnx.Module,
    x: Inputs,
    x2: MoreInputs | None = None,
    method: str = "auto",
    *,
    outputs: str = "mean",
) -> Float[np.ndarray, "n m"] | Float[np.ndarray, "n m k k"]:
    r"""The tangent kernel of a network with the parameters that it has now,

        Θ̂(x, x') = Σ_θ ∂f(x)/∂θ · ∂f(x')/∂θ,   summed over every `nnx.Param`.

    For the twin of an architecture in NTK parametrisation it tends to `lnkernel.ntk(arch)` as the
    width grows; one draw deviates from it by about $1/\sqrt{\mathrm{width}}$.

    Args:
        network: any `flax.nnx.Module` that maps inputs (n, ...) to outputs (n, k) or (n,), each
            input on its own. Dropout and BatchNorm in training mode are
            refused (`TrainingModeError`): call `network.eval()` first.
        x: inputs, (n, d), or (n, ...) if the network takes such.
        x2: other inputs. Without them the matrix is symmetric, and half of it is computed.
        method: "jacobian" multiplies the Jacobians at two tiles of inputs. "vector" takes the
            Jacobian at one tile and differentiates the network along its rows at the other, which
            is cheaper for the full matrix of many outputs. "structured" multiplies Jacobians
            whose linear layers are kept in factors, which is cheaper by the order of the width,
            for twins and for every `nnx.Sequential`. "auto" chooses "structured" where it can,
            otherwise "vector" for the full matrix of more than 4 outputs, otherwise "jacobian".
        outputs: of a network with k of them. "mean" is the mean of $\hat\Theta_{oo}$ over the outputs
            o, (n, m), which has the limit $\Theta$; "full" is (n, m, k, k), with the limit
            $\Theta\,\delta_{oo'}$.

    Returns:
        A NumPy array in the precision of the network's parameters, in which all is computed: x is
        rounded to float32 for a float32 network. Beyond it, memory is needed for four tiles of
        half a GB at most, or for four Jacobians at a single input where these are larger.

    >>> import lnkernel as lnk
    >>> arch, x = lnk.mlp(hidden=1), [[1.0, 2.0], [3.0, -1.0], [0.5, 0.0]]
    >>> f = lnk.finite.network(arch, in_dim=2, width=512, rngs=0)
    >>> theta = lnk.finite.empirical_ntk(f, x)
    >>> theta.shape, theta.dtype, bool(abs(theta / lnk.ntk(arch)(x) - 1).max() < 0.2)
    ((3, 3), dtype('float32'), True)
    """
    made = tangent_of(network).gram(x, x2, outputs=outputs, method=method)
    if outputs == "mean":
        return made
    return made[:, :, None, None] if made.ndim == 2 else made.transpose(0, 2, 1, 3)


def empirical_ntk_diagonal(
    network: nnx.Module, x: Inputs, *, outputs: str = "mean"
) -> Float[np.ndarray, " n"] | Float[np.ndarray, "n k k"]:
    r"""$\hat\Theta(x, x)$ of every input on its own: (n,), or (n, k, k) with `outputs="full"`.

    As `empirical_ntk`, in the network's precision.

    >>> import numpy as np, lnkernel as lnk
    >>> f = lnk.finite.network(lnk.mlp(hidden=1), in_dim=1, width=64, rngs=0)
    >>> x = np.linspace(-1, 1, 5)[:, None]
    >>> np.allclose(lnk.finite.empirical_ntk_diagonal(f, x), np.diag(lnk.finite.empirical_ntk(f, x)))
    True
    """
    made = tangent_of(network).diagonal(x, outputs=outputs)
    return made[:, None, None] if outputs == "full" and made.ndim == 1 else made


def tangent_of(network: nnx.Module) -> Tangent:
    """The network's tangent in every `nnx.Param`."""
    check_module(network)
    return make_tangent(network, None, None, None, BATCH, "network")
