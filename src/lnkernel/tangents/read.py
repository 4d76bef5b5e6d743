"""What users call a model, told apart: a module of NNX, a module of Linen, or f(params, x)."""

from __future__ import annotations

from typing import Any

from flax import linen, nnx
from jax.typing import DTypeLike

from lnkernel.errors import InputError
from lnkernel.tangents.from_nnx import read_nnx
from lnkernel.tangents.from_tree import read_function, read_linen
from lnkernel.tangents.model import Model
from lnkernel.tangents.selection import Wrt


def read_model(model: Any, params: Any, wrt: Wrt, dtype: DTypeLike | None, name: str) -> Model:
    """The model with these parameters, to be differentiated in those that `wrt` chooses."""
    if isinstance(model, nnx.Module):
        return read_nnx(model, params, wrt, dtype, name)
    if params is not None and isinstance(model, linen.Module):
        return read_linen(model, params, wrt, dtype, name)
    if params is not None and callable(model):
        return read_function(model, params, wrt, dtype, name)
    raise InputError(
        name,
        "a flax.nnx.Module, a flax.linen.Module with its variables, or f(params, x) with params",
        f"{model!r} of type {type(model).__name__}" + (" without params" if params is None else ""),
        "Write e.g. lnk.tangent(nnx_module), lnk.tangent(linen_module, variables) or "
        "lnk.tangent(f, params)",
    )
