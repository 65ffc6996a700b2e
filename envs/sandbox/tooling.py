"""The argument types of the built-in world's tools, and the box that builds tools when they are asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field

from dynsteer_gym.envs.function_tools import Tool, ToolError
from dynsteer_gym.envs.sandbox.state import Device

__all__ = ["Email", "Id", "Name", "PhoneNumber", "Text", "Time", "Tool", "ToolBox", "ToolError", "canonical_phone", "local_time"]


@lru_cache(maxsize=8192)
def canonical_phone(text: str) -> str:
    """A phone number in E.164 form; numbers without a country code are read as American.

    Raises:
        ValueError: The text is no possible phone number.
    """
    import phonenumbers

    try:
        number = phonenumbers.parse(text, "US")
    except phonenumbers.NumberParseException:
        number = None
    if number is None or not phonenumbers.is_possible_number(number):
        raise ValueError("a phone number such as +14155550142 is expected")
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:?\d{2})?")


@lru_cache(maxsize=8192)
def _time(text: str) -> str:
    if not _TIME.fullmatch(text):
        raise ValueError("a time such as 2026-03-12 15:00 is expected, with or without a zone offset")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("no such day or time exists") from None
    return moment.isoformat(sep=" ", timespec="minutes")


def local_time(device: Device, text: str) -> str:
    """A checked time in the phone's zone, ``YYYY-MM-DD HH:MM``."""
    if len(text) > 16:
        zone = ZoneInfo(device.state.time_zone)
        return datetime.fromisoformat(text).astimezone(zone).strftime("%Y-%m-%d %H:%M")
    return text


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("it must not be empty")
    return text


PhoneNumber = Annotated[str, Field(max_length=40, json_schema_extra={"format": "phone"}), AfterValidator(canonical_phone)]
Time = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"}), AfterValidator(_time)]
Name = Annotated[str, Field(max_length=200), AfterValidator(_filled)]
Text = Annotated[str, Field(max_length=2000), AfterValidator(_filled)]
Email = Annotated[
    str, Field(max_length=200, pattern=r"^[^@\s]+@[^@\s]+\.[^@\s.]+$", json_schema_extra={"format": "email"})
]
Id = Annotated[str, Field(max_length=64)]


class ToolBox(Mapping[str, Tool]):
    """Tools by name, each built when it is first asked for."""

    def __init__(self, *functions: Callable[..., Any]) -> None:
        """Takes the typed functions."""
        self._functions = {function.__name__: function for function in functions}
        self._built: dict[str, Tool] = {}

    def __getitem__(self, name: str) -> Tool:
        """The tool of a name.

        Raises:
            KeyError: There is none.
        """
        tool = self._built.get(name)
        if tool is None:
            tool = self._built[name] = Tool(self._functions[name])
        return tool

    def __iter__(self) -> Iterator[str]:
        """The names in order."""
        return iter(self._functions)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._functions)
