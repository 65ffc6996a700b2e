"""Events of an episode and the two clocks: what worlds emit and what the evaluator reads.

The raw event clock ``k`` counts every :class:`Event`; the closed action clock ``t`` counts every
:class:`ClosedAction`. Source: DynSTEER section 3.1, "dual-clock observation model".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

__all__ = ["ActionKind", "ClosedAction", "ErrorKind", "Event", "EventKind", "StateDelta"]


class EventKind(StrEnum):
    """What happened. Every kind ticks the raw event clock."""

    THOUGHT = "thought"
    """Reasoning text; it settles nothing and is evidence of nothing."""
    ASSISTANT_MESSAGE = "assistant_message"
    """A message from the agent to the user."""
    TOOL_CALL = "tool_call"
    """A call as the agent wrote it, before the tool runs."""
    TOOL_RETURN = "tool_return"
    """What came back; closes the call."""
    USER_MESSAGE = "user_message"
    """What the user said; closes the agent's message. The episode's first one is the request and closes nothing."""
    TASK_CHANGE = "task_change"
    """The public view changed (a tool appeared or went); ``value`` is the new ``TaskView``."""


class ErrorKind(StrEnum):
    """Why a call failed. The first three are structural: the call was not well-formed."""

    UNPARSEABLE = "unparseable"
    """Text that is a tool call by its shape, but cannot be read as one."""
    UNKNOWN_TOOL = "unknown_tool"
    """No tool of that name is on offer."""
    SCHEMA = "schema"
    """Arguments that the tool's parameter schema refuses."""
    NOT_FOUND = "not_found"
    """Well-formed, but it names something that does not exist."""
    PRECONDITION = "precondition"
    """Well-formed, but the state of the world forbids it now."""
    RUNTIME = "runtime"
    """Any other refusal or failure of the tool."""


STRUCTURAL_ERRORS = frozenset({ErrorKind.UNPARSEABLE, ErrorKind.UNKNOWN_TOOL, ErrorKind.SCHEMA})


class StateDelta(NamedTuple):
    """One row that a call changed.

    Attributes:
        table: Name of the table.
        key: The row's key, as text.
        before: The row before, or ``None`` where it was created.
        after: The row after, or ``None`` where it was deleted.
    """

    table: str
    key: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


class Event(NamedTuple):
    """One atomic event. Its place on the raw clock is its position in the stream.

    Attributes:
        kind: What happened.
        turn: The agent's turn (batch) in which it happened, from 1; 0 is before the first turn.
        text: Message or thought text; for a call, the source text where it could not be parsed; for a return, the
            text shown to the agent.
        call_id: Ties a return to its call.
        tool: The tool's name as the agent wrote it (calls and returns).
        arguments: The arguments as parsed, ``None`` where they could not be parsed.
        value: The returned JSON value of a successful call (``None`` on errors).
        error: Why the call failed, or ``None`` (returns; also on calls that are malformed).
        writes: Rows that the call changed: ``()`` for none, ``None`` where the world does not say.
        new_request: On a user message: the user considers the current request ended and brings a new one.
        ends: On a user message: the talk is over (``text`` may be empty).
    """

    kind: EventKind
    turn: int
    text: str = ""
    call_id: str | None = None
    tool: str | None = None
    arguments: Mapping[str, Any] | None = None
    value: Any = None
    error: ErrorKind | None = None
    writes: tuple[StateDelta, ...] | None = None
    new_request: bool = False
    ends: bool = False


class ActionKind(StrEnum):
    """The two kinds of action that an agent can close."""

    CALL = "call"
    MESSAGE = "message"


class ClosedAction(NamedTuple):
    """An action with its outcome: one tick of the closed action clock.

    Attributes:
        t: Place on the closed action clock, from 1.
        turn: The agent's turn it belongs to.
        kind: A tool call, or a message to the user.
        first_event: Place of its first event on the raw clock, from 1.
        last_event: Place of the event that closed it.
        text: The message's text, or a call's source text where it could not be parsed.
        tool: Name of the called tool.
        arguments: Arguments of the call; ``None`` where unparseable.
        value: What a successful call returned.
        error: Why the call failed, or ``None``.
        error_text: The error text shown to the agent, or ``""``.
        writes: Rows changed, ``None`` where the world does not say.
        reply: What the user answered to a message.
        new_request: The user's answer ended the request and brought another.
        ends: The user's answer ended the talk.
    """

    t: int
    turn: int
    kind: ActionKind
    first_event: int
    last_event: int
    text: str = ""
    tool: str | None = None
    arguments: Mapping[str, Any] | None = None
    value: Any = None
    error: ErrorKind | None = None
    error_text: str = ""
    writes: tuple[StateDelta, ...] | None = None
    reply: str = ""
    new_request: bool = False
    ends: bool = False
