"""The fields of a JSON file, read by name: one that is missing, or cannot be what it should, is told by its name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
LARGEST = 2**63 - 1  # of whole numbers


class FieldError(ValueError):
    """What is wrong with a field; whoever reads the file says which file it is, and what to do."""


def take(data: Any, name: str, read: Callable[[str, Any], T]) -> T:
    """The field of that name, read by one of the functions below.

    >>> take({"n": 3}, "n", whole_number)
    3
    >>> take({"n": None}, "n", whole_number)
    Traceback (most recent call last):
    ...
    lnkernel.bounds.certified.fields.FieldError: its field "n" is null, and should be a whole number
    """
    if name not in data:
        raise FieldError(f'it has no field "{name}"')
    return read(f'field "{name}"', data[name])


def mapping(place: str, value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else _refuse(place, value, "fields with names")


def items(place: str, value: Any) -> list[Any]:
    """A list of at least one."""
    return (
        value
        if isinstance(value, list) and value
        else _refuse(place, value, "a list with at least one entry")
    )


def text(place: str, value: Any) -> str:
    return value if isinstance(value, str) else _refuse(place, value, "a text")


def whole_number(place: str, value: Any) -> int:
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST
    return int(value) if fits else _refuse(place, value, "a whole number")


def number(place: str, value: Any) -> float:
    """A number of float64 as `float.hex` writes it."""
    try:
        return float.fromhex(value)
    except (TypeError, ValueError, OverflowError):
        _refuse(place, value, 'a number of float64 in hexadecimal, like "0x1.8p+1"')


def numbers(place: str, value: Any) -> list[float]:
    return [number(f"{place}, entry {i}", each) for i, each in enumerate(items(place, value))]


def rows(place: str, value: Any) -> list[list[float]]:
    """Lists of numbers, all of one length."""
    made = [numbers(f"{place}, row {i}", each) for i, each in enumerate(items(place, value))]
    lengths = sorted({len(row) for row in made})
    if len(lengths) > 1:
        raise FieldError(f"its {place} has rows of {lengths[0]} and of {lengths[-1]} numbers")
    return made


def texts(place: str, value: Any) -> dict[str, str]:
    return {key: text(f"{place}, {key}", each) for key, each in mapping(place, value).items()}


def whole_numbers(place: str, value: Any) -> list[int]:
    return [whole_number(f"{place}, entry {i}", each) for i, each in enumerate(items(place, value))]


def _refuse(place: str, value: Any, expected: str) -> NoReturn:
    within = "," if ", " in place else ""
    raise FieldError(f"its {place}{within} is {_shown(value)}, and should be {expected}")


def _shown(value: Any) -> str:
    """A short value as JSON writes it."""
    if isinstance(value, dict):
        return "fields with names" if value else "empty brackets {}"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    written = json.dumps(value)
    return written if len(written) <= 60 else f"{written[:60]}..."
