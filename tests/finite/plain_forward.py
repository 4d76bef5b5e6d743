"""The forward pass of a twin in plain NumPy: its parameters, and the definitions of the layers."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray


def forward(arch: Any, module: Any, x: Array) -> Array:
    """`arch` with the parameters of `module`, its twin (a layer, or a whole network)."""
    match type(arch).__name__:
        case "Serial":
            for layer, part in zip(arch.layers, module.layers, strict=True):
                x = forward(layer, part, x)
            return x
        case "Parallel":
            parts = zip(arch.branches, module.branches, strict=True)
            return sum(forward(branch, part, x) for branch, part in parts)
        case "Dense":
            return _dense(arch, module, x)
        case "LayerNorm":
            return _normalised(arch, module, x, x.shape[1], centre=True)
        case "RMSNorm":
            return _normalised(arch, module, x, x.shape[1], centre=False)
        case "GroupNorm":
            return _normalised(arch, module, x, arch.group_size, centre=arch.centre)
        case "Identity":
            return x
        case "Scale":
            return arch.factor * x
        case "Shift":
            return x + arch.offset
        case "Relu":
            return np.maximum(x, 0)
        case "Abs":
            return np.abs(x)
        case "LeakyRelu":
            return np.where(x > 0, x, arch.slope * x)
        case "RectifiedPower":
            return np.maximum(x, 0) ** arch.degree
        case "Homogeneous":
            up, down = np.maximum(x, 0), np.maximum(-x, 0)
            return arch.a * up**arch.degree + arch.b * down**arch.degree
        case name:
            raise NotImplementedError(name)


def _dense(arch: Any, module: Any, x: Array) -> Array:
    W = np.asarray(module.kernel[...], float)
    b = np.zeros(W.shape[1]) if module.bias is None else np.asarray(module.bias[...], float)
    if type(module).__name__ == "Linear":  # standard parametrisation
        return x @ W + b
    return arch.W_std * x @ W / np.sqrt(len(W)) + arch.b_std * b


def _normalised(arch: Any, module: Any, x: Array, size: int, *, centre: bool) -> Array:
    out = np.empty_like(x)
    for start in range(0, x.shape[1], size):
        group = x[:, start : start + size]
        for row, u in enumerate(group):
            v = u - u.mean() if centre else u
            there = np.ptp(u) > 0 if centre else np.any(u != 0)
            out[row, start : start + size] = (
                v / np.sqrt(np.mean(v**2) + arch.eps) if there or arch.eps else 0.0
            )
    inner = getattr(module, "norm", module)
    scale, bias = getattr(inner, "scale", None), getattr(inner, "bias", None)
    out = out if scale is None else out * np.asarray(scale[...], float)
    return out if bias is None else out + np.asarray(bias[...], float)
