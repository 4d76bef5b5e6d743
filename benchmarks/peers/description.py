"""Architectures in a neutral JSON form, which every peer can read.

    {"layers": [LAYER, ...]}

is a network, its layers one after the other. A LAYER is one of

    {"layer": "Dense", "width": 128, "W_std": 1.4, "b_std": 0.1}
                                              W_std/√n_in · W a + b_std · b; by default 1 and 0
    {"layer": "Identity"}                     u
    {"layer": "Relu"}                         u₊
    {"layer": "Abs"}                          |u|
    {"layer": "LeakyRelu", "slope": 0.2}      u₊ − slope · (−u)₊
    {"layer": "RectifiedPower", "degree": 2}  u₊^degree, of a whole number
    {"layer": "Erf"}, {"layer": "Gelu"}       erf u, and u times the normal distribution function
    {"layer": "Tanh"}, {"layer": "Silu"}      tanh u, u/(1 + e^−u): there by numerical integration
    {"layer": "LayerNorm", "eps": 0.0}        (u − mean)/√(variance + eps), nothing trained; with "axes": "all" of
                                              all positions of an image together
    {"layer": "Conv", "channels": 64, "filter": [3, 3], "strides": [1, 1], "padding": "SAME",
     "W_std": 1.4, "b_std": 0.1}              the means of Dense over a patch
    {"layer": "AvgPool", "window": [2, 2], "strides": [2, 2], "padding": "VALID"}, and "SumPool"
    {"layer": "GlobalAvgPool"}, {"layer": "Flatten"}
    {"layer": "Attention", "channels": 64, "heads": 4, "weights": "softmax", "scaling": "linear", "QK_std": 1.0,
     "OV_std": 1.0, "b_std": 0.0, "embedding": null}
                                              all positions, with weights; an embedding is for queries and keys
    {"layer": "PositionalEmbedding", "std": 1.0, "decay": null, "norm": 2.0}
                                              a vector for each position; there a part of the Attention behind it
    {"layer": "Parallel", "branches": [[LAYER, ...], ...]}
                                              the sum of the branches; [Identity] is a skip

It holds what neural-tangents has a kernel for: `describe(arch)` refuses everything else and says
why, and `build(description)` gives the architecture back.
"""

from __future__ import annotations

from typing import Any

import lnkernel as lnk

HOMOGENEOUS = ("Relu", "Abs", "LeakyRelu", "RectifiedPower", "Homogeneous")
ANALYTIC = (lnk.Erf(), lnk.Gelu(), lnk.Tanh(), lnk.Silu())


class NotExpressibleError(ValueError):
    """neural-tangents has no kernel for this architecture; the message says why."""


def describe(arch: Any) -> dict[str, Any]:
    """The neutral description of an lnkernel architecture.

    Raises:
        NotExpressibleError: if neural-tangents has no kernel for it.
    """
    return {"layers": _Walk(gaussian=False).layers(arch)}


def build(description: dict[str, Any]) -> lnk.Node:
    """The lnkernel architecture of a description."""
    return _in_a_row(description["layers"])


def _in_a_row(layers: list[dict[str, Any]]) -> lnk.Node:
    built = [_build(layer) for layer in layers]
    return built[0] if len(built) == 1 else lnk.serial(*built)


def _build(description: dict[str, Any]) -> lnk.Node:
    fields = dict(description)
    kind = fields.pop("layer")
    if kind == "Parallel":
        return lnk.parallel(*map(_in_a_row, fields["branches"]))
    if fields.get("embedding") is not None:
        fields["embedding"] = _build(fields["embedding"])
    layer: lnk.Node = getattr(lnk, kind)(**fields)
    return layer


def _plain(value: Any) -> Any:
    """As JSON has it."""
    return list(value) if isinstance(value, tuple) else value


class _Walk:
    """A walk along one branch that keeps what neural-tangents needs to know of the state.

    `gaussian`: whether the state is Gaussian, as activations, norms and sums need it.
    `independent`: whether a Dense stands between the start of the branch and here.
    """

    def __init__(self, gaussian: bool) -> None:
        self.gaussian = gaussian
        self.independent = False

    def layers(self, node: Any) -> list[dict[str, Any]]:
        """The descriptions of the layers of `node`, nested sequences flattened."""
        if type(node).__name__ == "Serial":
            return [described for inner in node.layers for described in self.layers(inner)]
        return [self.layer(node)]

    def layer(self, layer: Any) -> dict[str, Any]:
        kind = type(layer).__name__
        if kind == "Identity":
            return {"layer": "Identity"}
        if kind == "Dense":
            return self.dense(layer)
        if kind == "Conv":
            return self.convolution(layer)
        if kind in ("AvgPool", "SumPool", "GlobalAvgPool", "Flatten"):
            return {"layer": kind, **{name: _plain(v) for name, v in vars(layer).items()}}
        if kind == "Attention":
            return self.attention(layer)
        if kind == "PositionalEmbedding":
            return self.embedding(layer)
        if kind == "LayerNorm":
            return self.layer_norm(layer)
        if kind == "Parallel":
            return self.parallel(layer)
        if kind in HOMOGENEOUS or layer in ANALYTIC:
            return self.activation(layer)
        raise NotExpressibleError(f"neural-tangents has no {kind}")

    def dense(self, layer: Any) -> dict[str, Any]:
        self.gaussian = self.independent = True
        return {
            "layer": "Dense",
            "width": int(layer.width),
            "W_std": float(layer.W_std),
            "b_std": float(layer.b_std),
        }

    def convolution(self, layer: Any) -> dict[str, Any]:
        self.gaussian = self.independent = True
        return {"layer": "Conv", **{name: _plain(value) for name, value in vars(layer).items()}}

    def attention(self, layer: Any) -> dict[str, Any]:
        self.gaussian = self.independent = True
        embedding = None if layer.embedding is None else self.embedding(layer.embedding)
        return {"layer": "Attention", **vars(layer), "embedding": embedding}

    def embedding(self, layer: Any) -> dict[str, Any]:
        if callable(layer.decay):
            raise NotExpressibleError("a function of the distance is no JSON")
        return {"layer": "PositionalEmbedding", **vars(layer)}

    def layer_norm(self, layer: Any) -> dict[str, Any]:
        if layer.scale or layer.bias:
            raise NotExpressibleError("neural-tangents has no trainable scale or bias in LayerNorm")
        if not self.gaussian:
            raise NotExpressibleError(
                "neural-tangents has LayerNorm on the output of a Dense only, "
                "not after an activation or on the input of the network"
            )
        axes = {} if layer.axes == "channels" else {"axes": layer.axes}
        return {"layer": "LayerNorm", "eps": float(layer.eps), **axes}

    def activation(self, layer: Any) -> dict[str, Any]:
        if not self.gaussian:
            raise NotExpressibleError("neural-tangents needs a Dense before each activation")
        self.gaussian = False
        if layer in ANALYTIC:
            return {"layer": type(layer).__name__}
        degree, a, b = float(layer.degree), float(layer.a), float(layer.b)
        if degree == a == 1:
            named = {0.0: "Relu", 1.0: "Abs"}
            return {"layer": named[b]} if b in named else {"layer": "LeakyRelu", "slope": -b}
        if a == 1 and b == 0 and degree.is_integer():
            return {"layer": "RectifiedPower", "degree": int(degree)}
        raise NotExpressibleError(
            f"neural-tangents has no {layer}: only relu, leaky relu, abs and the "
            "rectified powers of integer degree"
        )

    def parallel(self, layer: Any) -> dict[str, Any]:
        walks = [_Walk(self.gaussian) for _ in layer.branches]
        branches = [walk.layers(branch) for walk, branch in zip(walks, layer.branches, strict=True)]
        if len(walks) > 1 and not all(walk.gaussian for walk in walks):
            raise NotExpressibleError(
                "neural-tangents adds branches only if each ends in a Gaussian state "
                "(a Dense, or a skip from one)"
            )
        skips = sum(not walk.independent for walk in walks)
        if skips > 1:
            raise NotExpressibleError(
                "neural-tangents takes branches to be independent: "
                "only one of them can be without a Dense"
            )
        self.gaussian = all(walk.gaussian for walk in walks)
        self.independent = self.independent or skips == 0
        return {"layer": "Parallel", "branches": branches}
