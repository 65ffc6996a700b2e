"""Typed grounding: which values may stand in which parameter, from names, schemas and formats alone.

The finite action interface builds its candidates from this. Types are coarse: ``bool``, ``enum``, ``number``,
``phone``, ``email``, ``datetime``, ``name``, ``text``, ``id:<parameter>`` and ``any:<parameter>`` for what nothing
else describes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dynsteer_gym.language import canonical

__all__ = ["Value", "accepts", "row_canonicals"]

class Value(NamedTuple):
    """A value that something in the talk has given.

    Attributes:
        canonical: For comparing (``language.canonical``).
        value: As it goes into an argument.
        type: Its coarse type.
        key: The field or parameter that it came under, or ``""`` for a literal of a text.
        source: ``request``, ``user`` or ``return``.
        row: Which returned row it stood in (unique in the episode), or -1.
        matches: How many values that the request names that row holds.
        rank: The row's place in its return.
        rows: How many rows the return had.
        literal: The literal's place among the request's literals, or -1.
        before: The word before the literal, lower case, or ``""``.
        step: The agent turn in which it appeared.
    """

    canonical: Any
    value: Any
    type: str
    key: str = ""
    source: str = "request"
    row: int = -1
    matches: int = 0
    rank: int = 0
    rows: int = 0
    literal: int = -1
    before: str = ""
    step: int = 0


def accepts(parameter: str, value: Value) -> bool:
    """Whether a value may stand in a parameter of a coarse type.

    Args:
        parameter: Type of the parameter.
        value: A value.
    """
    if parameter == value.type:
        return True
    if parameter == "text":
        return value.source == "return" and value.matches > 0 and value.type == "datetime"
    if parameter.startswith("any:"):
        return value.type == "text" and value.source != "return"
    return False


def row_canonicals(row: Mapping[str, Any]) -> set[Any]:
    """The canonical scalar values of a row."""
    return {canonical(item) for item in row.values() if isinstance(item, str | int | float)}
