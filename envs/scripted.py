"""A base for worlds whose user is scripted: turns, calls one at a time, events, messages, faults."""

from __future__ import annotations

import copy
import json
import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, replace
from threading import Thread
from typing import Any, Self

import gymnasium as gym

from dynsteer_gym.envs.actions import AssistantTurn, ToolCall, openai_message, parse
from dynsteer_gym.envs.base import ToolEnv
from dynsteer_gym.envs.function_tools import ToolError
from dynsteer_gym.envs.spaces import UnicodeText
from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.events import ErrorKind, Event, EventKind, StateDelta
from dynsteer_gym.task import TaskView

__all__ = ["Reply", "ScriptedWorld", "WorldFault", "within"]

_LOG = logging.getLogger("dynsteer_gym")


class WorldFault(Exception):
    """World or user failed in a way that is not the agent's: the episode is worth nothing."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the user says to a message.

    Attributes:
        text: The words.
        ends: The talk is over.
        new_request: The user considers the request ended and brings the next one, which is ``text``.
        view: The task as it stands from here, where it has changed (tools that appear); its request is the running one.
    """

    text: str = ""
    ends: bool = False
    new_request: bool = False
    view: TaskView | None = None


def within(seconds: float | None, call: Callable[[], Any]) -> Any:
    """Runs a call that must end in time.

    A call that does not is left behind in its thread; whatever it was given must not be used again.

    Args:
        seconds: The limit, or ``None`` for none.
        call: Takes no arguments.

    Raises:
        WorldFault: It did not end in time.
        Exception: Whatever it raises.
    """
    if seconds is None:
        return call()
    future: Future[Any] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=work, daemon=True).start()
    try:
        return future.result(seconds)
    except FutureTimeout:
        if future.done():
            raise
        raise WorldFault(f"a call did not return within {seconds:g} s") from None


class ScriptedWorld(ToolEnv):
    """A world with tools and a scripted user; subclasses say what a task is, how a call runs and what the user says.

    The text of a message goes to the user, calls run one after the other. A failure of world or user that is not the
    agent's ends the episode: ``truncated``, ``info["fault"]``; the next ``reset`` starts afresh.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "human"]}

    def __init__(self, *, max_turns: int = 30, success_at: float = 1.0, render_mode: str | None = None) -> None:
        """Makes the world.

        Args:
            max_turns: The most assistant turns of an episode.
            success_at: Native score from which ``info["is_success"]`` holds.
            render_mode: ``ansi`` or ``None``.
        """
        self.action_space = UnicodeText()
        self.observation_space = UnicodeText()
        self.max_turns = max_turns
        self.render_mode = render_mode
        self.turn = 0
        self._success_at = success_at
        self._view: TaskView | None = None
        self._events: list[Event] = []
        self._messages: list[dict[str, Any]] = []
        self._calls = 0
        self._over = True

    # What a world gives.

    @abstractmethod
    def begin(self, seed: int, options: Mapping[str, Any]) -> TaskView:
        """Starts a task.

        Args:
            seed: Decides which, and all that is random in it.
            options: The options of ``reset``.

        Returns:
            Its public view; ``request`` is what the user says first.
        """

    @abstractmethod
    def execute(self, tool: str, arguments: dict[str, Any]) -> tuple[Any, tuple[StateDelta, ...] | None]:
        """Runs a call of a tool on offer.

        Returns:
            What it returns, as JSON data, and the rows that it changed (``None`` where that is not known).

        Raises:
            ToolError: The tool refuses; the agent sees the text.
            Exception: Anything else is a fault of the world.
        """

    @abstractmethod
    def respond(self, message: str) -> Reply:
        """What the user says to a message of the agent."""

    @abstractmethod
    def native_score(self) -> float:
        """The task's own score as it stands, in [0, 1]."""

    def copied(self) -> dict[str, Any]:
        """Attributes of a fork that it must not share with this world.

        Raises:
            NotImplementedError: The world cannot be forked.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be forked")

    # What follows from it.

    def fork(self) -> Self:
        """An independent copy of the running episode.

        Raises:
            NotImplementedError: The world cannot be forked.
        """
        other = copy.copy(self)
        other.__dict__.update(self.copied())
        other._events, other._messages = list(self._events), list(self._messages)
        other.observer = None
        return other

    def snapshot(self) -> Any:
        """The running episode as a value.

        Raises:
            NotImplementedError: The world cannot be forked.
        """
        return self.fork()

    def restore(self, snapshot: Any) -> None:
        """Goes back to a snapshot."""
        observer = self.observer
        self.__dict__.update(snapshot.fork().__dict__)
        self.observer = observer

    @property
    def task_view(self) -> TaskView:  # type: ignore[override]
        """The public view of the running task, as it now stands."""
        if self._view is None:
            raise gym.error.ResetNeeded("Cannot look at the task before calling env.reset()")
        return self._view

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far in OpenAI chat format."""
        return list(self._messages)

    @property
    def ended(self) -> bool:
        """Whether no episode is running."""
        return self._over

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: Decides this task and the ones of later resets without a seed.
            options: What the world understands.
        """
        super().reset(seed=seed)
        chosen = seed if seed is not None else int(self.np_random.integers(1 << 31))
        self.turn = self._calls = 0
        self._view = view = self.begin(chosen, options or {})
        self._over = False
        self._events = [Event(EventKind.USER_MESSAGE, 0, view.request)]
        self._messages = [{"role": "system", "content": view.policy}] if view.policy else []
        self._messages.append({"role": "user", "content": view.request})
        return view.request, {"task_id": view.task_id, "messages": list(self._messages), "tools": view.openai_tools()}

    def step(self, action: str | AssistantTurn) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Runs one assistant turn: its calls in order, or a message to the user."""
        if self._over:
            raise gym.error.ResetNeeded("Cannot call env.step() before calling env.reset(), or after an episode has ended")
        if not isinstance(action, str | AssistantTurn):
            raise ConfigurationError(f"an action is the assistant's text; got {type(action).__name__}")
        turn = parse(action) if isinstance(action, str) else action
        self.turn += 1
        said = len(self._messages)
        info: dict[str, Any] = {}
        observation, terminated, reward = "", False, 0.0
        try:
            observation, terminated = self._played(turn)
            if terminated:
                reward = info["native_score"] = _score(self.native_score())
                info["is_success"] = reward >= self._success_at
        except Exception as error:
            _LOG.warning("a fault of %s ends the episode", type(self).__name__, exc_info=True)
            info["fault"] = f"{type(error).__name__}: {error}"[:500]
            terminated, reward = False, 0.0
        truncated = not terminated and (self.turn >= self.max_turns or "fault" in info)
        if truncated:
            info["is_success"] = False
        self._over = terminated or truncated
        info["messages"] = self._messages[said:]
        return observation, reward, terminated, truncated, info

    def _played(self, turn: AssistantTurn) -> tuple[str, bool]:
        halted = bool(turn.thought) and self._emit(Event(EventKind.THOUGHT, self.turn, turn.thought))
        if turn.calls:
            ids = tuple(f"call_{self._calls + place + 1}" for place in range(len(turn.calls)))
            self._calls += len(ids)
            self._messages.append(dict(openai_message(turn, ids)))
            texts = []
            for call, ident in zip(turn.calls, ids, strict=True):
                if halted or self._emit(
                    Event(EventKind.TOOL_CALL, self.turn, call.source, ident, call.name, call.arguments, error=call.error)
                ):
                    break
                texts.append(self._call(call, ident))
            return "\n".join(texts), False
        message = turn.message or ""
        self._messages.append({"role": "assistant", "content": message})
        self._emit(Event(EventKind.ASSISTANT_MESSAGE, self.turn, message))
        reply = self.respond(message)
        if not isinstance(reply.text, str):
            raise WorldFault(f"the user said {type(reply.text).__name__} and no text")
        if reply.view is not None:
            self._view = reply.view
            self._emit(Event(EventKind.TASK_CHANGE, self.turn, value=reply.view))
        if reply.new_request:
            self._view = replace(self.task_view, request=reply.text, request_index=self.task_view.request_index + 1)
        self._emit(Event(EventKind.USER_MESSAGE, self.turn, reply.text, new_request=reply.new_request, ends=reply.ends))
        if reply.text:
            self._messages.append({"role": "user", "content": reply.text})
        return reply.text, reply.ends

    def _call(self, call: ToolCall, ident: str) -> str:
        kind, value, writes = call.error, None, None
        if kind is not None or call.arguments is None:
            kind = ErrorKind.UNPARSEABLE
            text = f"The call could not be read: {call.detail}."
        elif self.task_view.tool(call.name) is None:
            kind = ErrorKind.UNKNOWN_TOOL
            text = f"No tool is called {str(call.name)[:60]!r}. Tools: {', '.join(tool.name for tool in self.task_view.tools)}."
        else:
            try:
                value, writes = self.execute(call.name or "", dict(call.arguments))
                text = _shown(value)
            except ToolError as error:
                kind, text = error.kind, str(error)
        if kind is not None:
            text, writes = f"Error: {text}", ()
        self._emit(Event(EventKind.TOOL_RETURN, self.turn, text, ident, call.name, None, value, kind, writes))
        self._messages.append({"role": "tool", "tool_call_id": ident, "name": call.name or "invalid_call", "content": text})
        return text

    def _emit(self, event: Event) -> bool:
        self._events.append(event)
        return self.observer is not None and self.observer(event)

    def drain_events(self) -> list[Event]:
        """The events since the last call, in order."""
        events, self._events = self._events, []
        return events

    def render(self) -> str | None:  # type: ignore[override]
        """The conversation so far as text (``ansi``)."""
        if self.render_mode is None:
            return None
        return "\n".join(f"{message['role']}> {message.get('content') or message.get('tool_calls')}" for message in self._messages)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise WorldFault(f"a tool returned what is no JSON: {error}") from error


def _score(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise WorldFault(f"the native score is {value!r}, and not in [0, 1]")
    return float(value)
