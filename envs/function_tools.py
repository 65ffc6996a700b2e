"""What makes a typed Python function a tool: schema, validation and errors that inform, by pydantic."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, create_model

from dynsteer_gym.events import ErrorKind
from dynsteer_gym.task import ToolSpec

__all__ = ["Tool", "ToolError"]


class ToolError(Exception):
    """A tool refuses: kind and a short, useful sentence for the agent."""

    def __init__(self, kind: ErrorKind, text: str) -> None:
        """Holds both."""
        super().__init__(text)
        self.kind = kind


class Tool:
    """A tool: its function, its public spec and its argument validator.

    Attributes:
        name: The function's name.
        function: The function.
        spec: What the agent is shown.
    """

    def __init__(self, function: Callable[..., Any], *, context: bool = True) -> None:
        """Reads name, schema, descriptions and validation off a typed function.

        Args:
            function: Its docstring describes it, and each argument under ``Args:``.
            context: Its first parameter is the world's state and no argument of the tool.
        """
        self.name = function.__name__
        self.function = function
        hints = get_type_hints(function, include_extras=True)
        summary, described = _docstring(function)
        given: dict[str, Any] = {}
        for name, parameter in list(inspect.signature(function).parameters.items())[int(context) :]:
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            given[name] = (hints.get(name, Any), Field(default, description=described.get(name)))
        model = create_model(self.name, __config__=ConfigDict(extra="forbid", strict=True), **given)
        self._validator = model.__pydantic_validator__
        schema = _plain(model.model_json_schema())
        schema.setdefault("properties", {})
        schema.pop("description", None)
        self.spec = ToolSpec(self.name, summary, schema, _returned(hints.get("return")))

    def call(self, context: Any, arguments: dict[str, Any]) -> Any:
        """Validates and runs; on an error of the arguments nothing is run.

        Args:
            context: The world's state, handed to the function.
            arguments: As called.

        Returns:
            JSON data.

        Raises:
            ToolError: The arguments do not hold, or the world refuses.
        """
        return self.function(context, **self.check(arguments))

    def run(self, context: Any, checked: dict[str, Any]) -> Any:
        """Runs with checked arguments.

        Raises:
            ToolError: The world refuses.
        """
        return self.function(context, **checked)

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


def _returned(hint: Any) -> dict[str, Any] | None:
    """The schema of what a function returns, or ``None`` where it does not say."""
    if hint is None or hint is type(None):
        return None
    if inspect.isclass(hint) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        fields = get_type_hints(hint)
        return {
            "type": "object",
            "properties": {name: _plain(TypeAdapter(kind).json_schema()) for name, kind in fields.items()},
            "required": list(fields),
        }
    return _plain(TypeAdapter(hint).json_schema())


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
                if not (key == "title" and isinstance(item, str))
                and not (key == "default" and item is None)
                and not (key == "description" and item is None)
            }
        if isinstance(node, list):
            return [walk(item) for item in node]
        return node

    found = walk(schema)
    if found.get("type") == "object":
        found.pop("description", None)
        found.setdefault("additionalProperties", False)
    return found
