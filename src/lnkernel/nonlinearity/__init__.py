"""What LayerNorm alone can do: how far linear maps separate two classes, how much a norm bends, and networks of
width 3 whose only nonlinearity is LayerNorm."""

from lnkernel.nonlinearity.curvature import hessian_energy, norm_energy
from lnkernel.nonlinearity.ln_net import ln_net
from lnkernel.nonlinearity.modules import LNNet, PreciseLNNet
from lnkernel.nonlinearity.separation import lssr, ssr

__all__ = ["LNNet", "PreciseLNNet", "hessian_energy", "ln_net", "lssr", "norm_energy", "ssr"]
