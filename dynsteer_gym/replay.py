"""Recorded rollouts in OpenAI chat format through blueprint, stages, judge and virtual stops."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from dynsteer_gym.blueprint.compiler import BlueprintCompiler
from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.evaluation.config import EvaluatorConfig
from dynsteer_gym.evaluation.evaluator import StageEvaluator
from dynsteer_gym.evaluation.stopping import StopConfig, StopRecord
from dynsteer_gym.events import ErrorKind, Event, EventKind
from dynsteer_gym.judges.base import Judge
from dynsteer_gym.judges.cheap import CheapJudge
from dynsteer_gym.task import TaskView, ToolSpec

__all__ = ["Line", "Recorded", "read_lines", "read_tools", "recorded", "replay"]


class Line(NamedTuple):
    """A line of a file of rollouts.

    Attributes:
        number: From 1.
        rollout: The rollout, or ``None`` where the line cannot be read.
        problem: Why it cannot, or ``""``.
    """

    number: int
    rollout: Mapping[str, Any] | None
    problem: str = ""


class Recorded(NamedTuple):
    """A recorded rollout as a task and its events.

    Attributes:
        view: The public view: first user message, tools, system prompt.
        events: The events in order; each assistant message is a turn.
        turns: How many turns there are.
    """

    view: TaskView
    events: tuple[Event, ...]
    turns: int


def read_tools(path: Path) -> tuple[ToolSpec, ...]:
    """Tools in OpenAI's format.

    Raises:
        ConfigurationError: The file cannot be read, or holds something else.
    """
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        entries = entries.get("tools", entries) if isinstance(entries, Mapping) else entries
        functions = [entry.get("function", entry) for entry in entries]
        return tuple(
            ToolSpec(
                str(function["name"]),
                str(function.get("description") or ""),
                {"type": "object", "properties": {}, **(function.get("parameters") or {})},
                function.get("returns"),
            )
            for function in functions
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"{path} holds no tools in OpenAI's format: {type(error).__name__}: {error}") from error


def read_lines(path: Path) -> Iterator[Line]:
    """The rollouts of a ``.jsonl`` or ``.jsonl.gz`` file, one after the other; bad lines are told and not lost.

    Raises:
        ConfigurationError: The file cannot be opened.
    """
    if not path.is_file() or not os.access(path, os.R_OK):
        raise ConfigurationError(f"{path} is no file that can be read")
    number = 0
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        while True:
            number += 1
            try:
                raw = file.readline()
            except (OSError, EOFError) as error:
                yield Line(number, None, f"the file is broken from here on: {error}")
                return
            if not raw:
                return
            if not raw.strip():
                continue
            try:
                rollout = json.loads(raw)
            except ValueError as error:
                yield Line(number, None, f"no JSON: {error}")
                continue
            problem = _problem(rollout)
            yield Line(number, None if problem else rollout, problem)


def _problem(rollout: Any) -> str:
    if not isinstance(rollout, Mapping) or not isinstance(rollout.get("messages"), list):
        return "no rollout: an object with 'messages' is expected"
    for place, message in enumerate(rollout["messages"]):
        if not isinstance(message, Mapping) or message.get("role") not in ("system", "developer", "user", "assistant", "tool", "function"):
            return f"message {place} has no known role"
        if not isinstance(message.get("tool_calls") or [], list):
            return f"message {place} has tool_calls that are no list"
    if not any(message["role"] == "user" for message in rollout["messages"]):
        return "no message of a user"
    return ""


def _text(content: Any) -> str:
    """The text of a message's content, which may come in parts."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False)


_END = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")


def recorded(rollout: Mapping[str, Any], tools: Sequence[ToolSpec]) -> Recorded:
    """A rollout as a task and its events.

    Args:
        rollout: ``messages`` in OpenAI chat format; ``tools`` of its own take the place of the given ones.
        tools: The tools on offer.
    """
    messages = rollout["messages"]
    own = rollout.get("tools")
    if isinstance(own, list) and own:
        tools = _own_tools(own)
    policy = "\n".join(_text(message.get("content")) for message in messages if message["role"] in ("system", "developer"))
    first = next(place for place, message in enumerate(messages) if message["role"] == "user")
    request = _text(messages[first].get("content"))
    key = json.dumps([policy, request, len(messages)], ensure_ascii=False)
    view = TaskView(blake2b(key.encode("utf-8", "replace"), digest_size=8).hexdigest(), request, tuple(tools), policy=policy)
    events = [Event(EventKind.USER_MESSAGE, 0, request)]
    turn = 0
    rest = [message for message in messages[first + 1 :] if message["role"] not in ("system", "developer")]
    place = 0
    while place < len(rest):
        message = rest[place]
        place += 1
        if message["role"] != "assistant":
            continue  # A tool's or a user's message that answers nothing has been taken with its turn.
        turn += 1
        content = _text(message.get("content")).strip()
        calls = [call for call in message.get("tool_calls") or () if isinstance(call, Mapping)]
        if calls:
            if content:
                events.append(Event(EventKind.THOUGHT, turn, content))
            returns = []
            while place < len(rest) and rest[place]["role"] in ("tool", "function"):
                returns.append(rest[place])
                place += 1
            for number, call in enumerate(calls):
                events.extend(_call(call, number, returns, turn))
            continue
        events.append(Event(EventKind.ASSISTANT_MESSAGE, turn, content))
        answers = []
        while place < len(rest) and rest[place]["role"] == "user":
            answers.append(_text(rest[place].get("content")))
            place += 1
        answer = "\n".join(answers)
        ends = place >= len(rest) or any(mark in answer for mark in _END)
        for mark in _END:
            answer = answer.replace(mark, "").strip()
        events.append(Event(EventKind.USER_MESSAGE, turn, answer, ends=ends))
    return Recorded(view, tuple(events), turn)


def _own_tools(entries: Sequence[Any]) -> tuple[ToolSpec, ...]:
    functions = [entry.get("function", entry) for entry in entries if isinstance(entry, Mapping)]
    return tuple(
        ToolSpec(
            str(function.get("name")),
            str(function.get("description") or ""),
            {"type": "object", "properties": {}, **(function.get("parameters") or {})},
        )
        for function in functions
    )


def _call(call: Mapping[str, Any], number: int, returns: Sequence[Mapping[str, Any]], turn: int) -> Iterator[Event]:
    function = call.get("function")
    function = function if isinstance(function, Mapping) else call
    name, ident = str(function.get("name")), str(call.get("id") or f"call_{turn}_{number}")
    source = function.get("arguments")
    error: ErrorKind | None = None
    arguments: Any = source
    if isinstance(source, str):
        try:
            arguments = json.loads(source or "{}")
        except ValueError:
            arguments = None
    if not isinstance(arguments, Mapping):
        arguments, error = None, ErrorKind.UNPARSEABLE
    yield Event(EventKind.TOOL_CALL, turn, str(source), ident, name, arguments, error=error)
    found = next((entry for entry in returns if entry.get("tool_call_id") == call.get("id") and call.get("id")), None)
    if found is None and number < len(returns) and not returns[number].get("tool_call_id"):
        found = returns[number]
    if found is None:
        yield Event(EventKind.TOOL_RETURN, turn, "", ident, name, error=error or ErrorKind.RUNTIME)
        return
    text = _text(found.get("content"))
    if error is None and text.lstrip().lower().startswith(("error", "exception", "traceback")):
        error = ErrorKind.NOT_FOUND if "not found" in text.lower() else ErrorKind.RUNTIME
    value: Any = None
    if error is None:
        try:
            value = json.loads(text)
        except ValueError:
            value = text
    yield Event(EventKind.TOOL_RETURN, turn, text, ident, name, None, value, error)


class Replayed(NamedTuple):
    """What a replay gives.

    Attributes:
        evaluator: The evaluator at the end of the rollout.
        stop: The first stop that would have come, or ``None``.
        turns: Turns of the whole rollout.
    """

    evaluator: StageEvaluator
    stop: StopRecord | None
    turns: int


def replay(
    rollout: Recorded, *, compiler: BlueprintCompiler | None = None, judge: Judge | None = None, config: EvaluatorConfig | None = None
) -> Replayed:
    """Evaluates a recorded rollout to its end; stops are virtual.

    Args:
        rollout: The rollout.
        compiler: Compiles blueprints; a shared one shares its cache.
        judge: Reviews stages; the cheap judge by default.
        config: Settings of the evaluator; the stops of the paper by default.
    """
    compiler = compiler if compiler is not None else BlueprintCompiler()
    judge = judge if judge is not None else CheapJudge()
    config = config if config is not None else EvaluatorConfig(stop=StopConfig.preset_named("paper"))
    evaluator = StageEvaluator(compiler.compile(rollout.view), rollout.view, config, compiler=compiler)
    stop: StopRecord | None = None
    turn = 0
    for event in rollout.events:
        if event.turn != turn:
            stop = _close(evaluator, judge, stop)
            turn = event.turn
        evaluator.observe(event)
    stop = _close(evaluator, judge, stop)
    return Replayed(evaluator, stop, rollout.turns)


def _close(evaluator: StageEvaluator, judge: Judge, stop: StopRecord | None) -> StopRecord | None:
    requests = evaluator.reviews()
    while requests:
        evaluator.apply(judge.review(requests))
        requests = evaluator.reviews()
    found = evaluator.close_turn()
    if found is not None and stop is None:
        evaluator.lift_stop()
        return found
    return stop
