"""Linear layers read as `Dense`."""

from __future__ import annotations

from flax import nnx

from lnkernel.arch import Dense
from lnkernel.finite.modules import NTKLinear
from lnkernel.finite.reading.registry import Found, Reading, read_module
from lnkernel.finite.reading.spread import check_bias, check_weights


@read_module.register
def _(part: NTKLinear, reading: Reading) -> Found:
    reading.check_width(part, part.in_features)
    return Dense(part.out_features, part.W_std, part.b_std), part.out_features


@read_module.register
def _(part: nnx.Linear, reading: Reading) -> Found:
    reading.check_width(part, part.in_features)
    W_std, b_std = reading.next_stds()
    if W_std is None:
        W_std = 1.0
        check_weights(part, reading.here)
    if part.bias is None:
        b_std = 0.0
    elif b_std is None:
        b_std = 0.0
        check_bias(part, reading.here)
    return Dense(part.out_features, W_std, b_std), part.out_features
