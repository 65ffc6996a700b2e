"""Assistant text to tool calls or a message, and back."""

from __future__ import annotations

from typing import Any, NamedTuple

from dynsteer_gym.events import ErrorKind

__all__ = ["AssistantTurn", "ToolCall"]


class ToolCall(NamedTuple):
    """One call as the agent wrote it."""

    name: str | None
    arguments: dict[str, Any] | None
    id: str | None = None
    error: ErrorKind | None = None
    detail: str = ""
    source: str = ""


class AssistantTurn(NamedTuple):
    """One assistant turn: calls, or a message to the user."""

    calls: tuple[ToolCall, ...] = ()
    message: str | None = None
    thought: str = ""
