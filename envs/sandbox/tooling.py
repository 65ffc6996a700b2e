"""What makes a typed function a tool: argument types, validation and schema by pydantic, errors that inform."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, get_type_hints
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from dynsteer_gym.envs.sandbox.state import Device
from dynsteer_gym.events import ErrorKind
from dynsteer_gym.task import ToolSpec

__all__ = ["Email", "Id", "Name", "PhoneNumber", "Text", "Time", "Tool", "ToolBox", "ToolError", "canonical_phone", "local_time"]


class ToolError(Exception):
    """A tool refuses: kind and a short, useful sentence for the agent."""

    def __init__(self, kind: ErrorKind, text: str) -> None:
        """Holds both."""
        super().__init__(text)
        self.kind = kind


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


class Tool:
    """A tool: its function, its public spec and its argument validator.

    Attributes:
        name: The function's name.
        spec: What the agent is shown.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Reads name, schema, descriptions and validation off a typed function.

        Args:
            function: Takes a :class:`~dynsteer_gym.envs.sandbox.state.Device` first; its docstring describes it, and
                each argument under ``Args:``.
        """
        self.name = function.__name__
        self._function = function
        hints = get_type_hints(function, include_extras=True)
        summary, described = _docstring(function)
        given: dict[str, Any] = {}
        for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            given[name] = (hints[name], Field(default, description=described[name]))
        model = create_model(self.name, __config__=ConfigDict(extra="forbid", strict=True), **given)
        self._validator = model.__pydantic_validator__
        schema = _plain(model.model_json_schema())
        schema.setdefault("properties", {})
        schema.pop("description", None)
        returns = _plain(TypeAdapter(hints["return"]).json_schema())
        if inspect.isclass(hints["return"]) and issubclass(hints["return"], tuple):
            fields = get_type_hints(hints["return"])
            returns = {
                "type": "object",
                "properties": {name: _plain(TypeAdapter(kind).json_schema()) for name, kind in fields.items()},
                "required": list(fields),
            }
        self.spec = ToolSpec(self.name, summary, schema, returns)

    def call(self, device: Device, arguments: dict[str, Any]) -> Any:
        """Validates and runs; on an error the device is untouched.

        Returns:
            JSON data.

        Raises:
            ToolError: The arguments do not hold, or the world refuses.
        """
        return self._function(device, **self.check(arguments))

    def run(self, device: Device, checked: dict[str, Any]) -> Any:
        """Runs with checked arguments.

        Raises:
            ToolError: The world refuses.
        """
        return self._function(device, **checked)

    def check(
        self, arguments: dict[str, Any], shown: ToolSpec | None = None, names: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """The arguments in canonical form, defaults filled in.

        Args:
            arguments: As called.
            shown: The spec that the agent sees, where it is another one.
            names: Names of the arguments on that spec.

        Raises:
            ToolError: The arguments do not hold.
        """
        try:
            return self._validator.validate_python(arguments).__dict__
        except ValidationError as error:
            raise ToolError(ErrorKind.SCHEMA, self._sentence(error, shown or self.spec, names or {})) from None

    def _sentence(self, error: ValidationError, spec: ToolSpec, names: Mapping[str, str]) -> str:
        first = error.errors(include_url=False, include_context=False)[0]
        name = str(first["loc"][0])[:40] if first["loc"] else "arguments"
        name = names.get(name, name)
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            message = "there is no such argument"
        elif first["type"] == "missing":
            message = "it is missing"
        else:
            message = message[:1].lower() + message[1:]
        takes = ", ".join(
            f"{key}{'' if key in spec.required else ' (optional)'}" for key in spec.properties
        )
        return f"Argument {name!r} of {spec.name}: {message}. It takes {takes or 'no arguments'}."


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


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    text = inspect.getdoc(function) or ""
    summary, _, rest = text.partition("\n\nArgs:\n")
    described = {}
    for line in rest.splitlines():
        name, _, words = line.strip().partition(": ")
        described[name] = words
    return " ".join(summary.split()), described


def _plain(schema: Any) -> Any:
    """A schema without titles, with references resolved."""
    definitions = schema.pop("$defs", {})

    def walk(node: Any) -> Any:
        if isinstance(node, dict):
            if "$ref" in node:
                return walk(definitions[node["$ref"].rsplit("/", 1)[1]])
            return {
                key: walk(item)
                for key, item in node.items()
                if not (key == "title" and isinstance(item, str)) and not (key == "default" and item is None)
            }
        if isinstance(node, list):
            return [walk(item) for item in node]
        return node

    found = walk(schema)
    if found.get("type") == "object":
        found.pop("description", None)
        found.setdefault("additionalProperties", False)
    return found
