"""Compiled programs, of which only the latest are kept.

A program takes some hundred memory maps and tens of megabytes, and a process may have 65,530 maps (Linux). A scan
over architectures that kept them all would be killed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from threading import Lock
from typing import Any

import jax

from lnkernel.errors import InputError
from lnkernel.precision import inside_jit, is_traced

USUAL = 64
# XLA's newer way to emit loops takes three times as long to compile; the older one makes the same loops.
EMITTED_SOON = {"xla_cpu_use_fusion_emitters": False}
# XLA uses half of a register of 512 bits unless told. Processors with shorter ones use what they have.
WHOLE_REGISTERS = {"xla_cpu_prefer_vector_width": 512}
_most = USUAL
_kept: OrderedDict[Hashable, Any] = OrderedDict()
_lock = Lock()


def compiled(
    function: Callable[..., Any],
    *fixed: Hashable,
    options: dict[str, Any] | None = WHOLE_REGISTERS,
) -> Callable[..., Any]:
    """`function` with these first arguments, compiled for each shape of the others. The same one for equal arguments,
    as long as it is kept."""
    key = (function, *fixed, None if options is None else tuple(options))
    with _lock:
        found = _kept.get(key)
        if found is None:
            found = _kept[key] = jax.jit(partial(function, *fixed), compiler_options=options)
        _kept.move_to_end(key)
        _drop_oldest()
    return found


def call_compiled(function: Callable[..., Any], *fixed: Hashable, arguments: Sequence[Any]) -> Any:
    """The value of a compiled function, also inside a user's own transformation. There it has no options of its own:
    JAX takes them from the outermost program alone, and refuses others."""
    inside = is_traced(arguments) or inside_jit()
    return compiled(function, *fixed, options=None if inside else EMITTED_SOON)(*arguments)


def keep_programs(most: int = USUAL) -> None:
    """Keep the compiled programs of the latest kernels only: at most so many, 64 unless told.

    A network has one for matrices of more than 10,000 or 100,000 pairs, and few others. What was dropped is compiled
    again when it is needed. The programs of `jax.grad` and `jax.vmap` of a kernel count too, and are dropped with
    it; those inside your own `jax.jit` belong to that function, and JAX drops them when it is gone.

    >>> import lnkernel as lnk
    >>> lnk.keep_programs(16)      # less memory, for a scan over many architectures
    >>> lnk.keep_programs()        # as usual
    """
    global _most
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise InputError("most", "a number of programs, at least 1", repr(most), "Write e.g. 16")
    with _lock:
        _most = most
        _drop_oldest()


def _drop_oldest() -> None:
    while len(_kept) > _most:
        _, oldest = _kept.popitem(last=False)
        oldest.clear_cache()
