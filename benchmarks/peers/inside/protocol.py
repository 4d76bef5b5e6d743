"""How a peer is spoken to: one JSON request a line on stdin, one JSON reply a line on stdout.

    serve({"square": lambda number: {"result": number**2}})

    {"op": "square", "number": 3}   ->  {"result": 9}
    {"op": "quit"}                  ->  {}

A request that fails is answered by `{"error": message}`. Standard library only.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

Reply = dict[str, Any]


def serve(operations: dict[str, Callable[..., Reply]]) -> None:
    """Answer requests until `quit` or the end of stdin."""
    replies = claim_stdout()
    for line in sys.stdin:
        request = json.loads(line)
        name = request.pop("op")
        if name == "quit":
            reply: Reply = {}
        else:
            reply = answer(operations, name, request)
        print(json.dumps(reply), file=replies, flush=True)
        if name == "quit":
            return


def answer(operations: dict[str, Callable[..., Reply]], name: str, request: Reply) -> Reply:
    try:
        if name not in operations:
            raise ValueError(f"unknown op {name!r}; there are {', '.join(operations)}")
        return operations[name](**request)
    except Exception as failure:  # the client must hear of any
        return {"error": f"{type(failure).__name__}: {failure}"}


def claim_stdout() -> TextIO:
    """A private stream to the real stdout; what others print goes to stderr from now on."""
    stream = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return stream
