"""Coarse types of values: what a parameter takes and what a field holds, from names, schemas and formats alone.

Types are ``bool``, ``enum``, ``number``, ``phone``, ``email``, ``datetime``, ``name``, ``text``, ``id:<parameter>`` and
``any:<parameter>`` for what nothing else describes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from dynsteer_gym.language import stem, words

__all__ = ["field_type", "literal_type", "parameter_type", "plain_schema", "return_fields", "rows_of"]

_TIME_STEMS = frozenset(stem(w) for w in ("time", "start", "end", "date", "when", "timestamp", "deadline", "due", "datetime"))
_TEXT_STEMS = frozenset(
    stem(w) for w in ("content", "text", "title", "message", "body", "note", "subject", "query", "description", "comment")
)
_NAME_STEMS = frozenset(stem(w) for w in ("name", "person", "recipient", "sender", "contact"))
_PHONE_STEMS = frozenset(stem(w) for w in ("phone", "telephone", "mobile"))


def plain_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A parameter's schema without its ``null`` alternative."""
    for option in schema.get("anyOf", ()):
        if option.get("type") != "null":
            return option
    return schema


def parameter_type(name: str, schema: Mapping[str, Any]) -> str:
    """The coarse type that a parameter takes."""
    schema = plain_schema(schema)
    if "enum" in schema or "const" in schema:
        return "enum"
    kind = schema.get("type")
    if kind == "boolean":
        return "bool"
    if kind in ("integer", "number"):
        return "number"
    found = _text_type(name, str(schema.get("format", "")))
    if found.startswith("any:") and _NAMELESS.fullmatch(name):
        return _described_type(str(schema.get("description", ""))) or found
    return found


_NAMELESS = re.compile(r"(?:[a-z]|arg|argument|param|parameter|field|value|input|key)?_?\d*", re.IGNORECASE)
"""Names of parameters that tell nothing, so that the description has to."""
_ID_OF = re.compile(r"^(?:the )?ids? of (?:the |an? )?(?:[a-z]+ed |[a-z]+ing )?(\w+)", re.IGNORECASE)


@lru_cache(maxsize=4096)
def _described_type(description: str) -> str:
    named = _ID_OF.match(description)
    if named:
        return f"id:{named.group(1).lower()}_id"
    first = "_".join(words(description)[:3])
    kind = _text_type(first, "") if first else ""
    return "" if kind.startswith(("any:", "id:")) else kind


@lru_cache(maxsize=4096)
def _text_type(name: str, form: str) -> str:
    parts = words(name)
    stems = {stem(part) for part in parts}
    if parts and parts[-1] in ("id", "ids", "uid"):
        return f"id:{name}"
    if form.startswith("phone") or stems & _PHONE_STEMS:
        return "phone"
    if form == "email" or "email" in stems:
        return "email"
    if form in ("date-time", "date", "time") or stems & _TIME_STEMS:
        return "datetime"
    if stems & _TEXT_STEMS:
        return "text"
    if stems & _NAME_STEMS:
        return "name"
    return f"any:{name}"


def field_type(name: str, value: Any) -> str:
    """The coarse type of a returned value, from its field's name and its JSON type."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return _text_type(name, "")


def literal_type(kind: str) -> str:
    """The coarse type of a literal found in a text (``language.Literal.type``)."""
    return {"quoted": "text", "date": "datetime", "time": "datetime"}.get(kind, kind)


def return_fields(schema: object) -> dict[str, Mapping[str, Any]]:
    """The scalar fields of a return schema by name, nested objects and arrays included; a bare scalar is ``result``."""
    if not isinstance(schema, Mapping):
        return {}
    if schema.get("type") == "array":
        return return_fields(schema.get("items"))
    found: dict[str, Mapping[str, Any]] = {}
    for option in schema.get("anyOf", ()):
        found |= return_fields(option)
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, inner in properties.items():
            nested = return_fields(inner) if isinstance(inner, Mapping) and inner.get("type") in ("object", "array") else {}
            found |= nested or {name: inner}
    elif not found and schema.get("type") in ("string", "number", "integer", "boolean"):
        found["result"] = schema
    return found


def rows_of(value: Any) -> Iterator[Mapping[str, Any]]:
    """The rows of a returned JSON value; a scalar is a row with one field ``result``."""
    if isinstance(value, Mapping):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield item if isinstance(item, Mapping) else {"result": item}
    elif value is not None:
        yield {"result": value}
