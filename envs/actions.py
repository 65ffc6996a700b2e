"""Assistant text to tool calls or a message to the user, and back.

Read here, in one place: OpenAI tool-call JSON (one call, a list, a full assistant message), Hermes ``<tool_call>``
tags, ReAct ``Action:`` / ``Action Input:``, Python call style, all of these in code fences with prose around them, and
``<think>`` blocks. Anything else is a message to the user. Text that is a call by its shape but cannot be read as one
becomes a call with an error, never an exception; nothing is ever executed.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from math import isfinite
from typing import Any, NamedTuple

from dynsteer_gym.events import ErrorKind

__all__ = ["MAX_TEXT", "AssistantTurn", "ToolCall", "openai_message", "parse", "render"]

MAX_TEXT = 262_144
"""Characters of an assistant text that are read for calls; a longer one can only be a message."""
_MAX_CALLS = 32
_MAX_PYTHON = 16_384
_KEPT = 2_000


class ToolCall(NamedTuple):
    """One call as the agent wrote it.

    Attributes:
        name: The tool's name, or ``None`` where it could not be read.
        arguments: The arguments, or ``None`` where they could not be read.
        id: The call's id, where the agent gave one.
        error: ``UNPARSEABLE`` where the call could not be read, else ``None``.
        detail: What was wrong with it, one clause for the agent.
        source: The text that could not be read, cut to 2,000 characters.
    """

    name: str | None
    arguments: dict[str, Any] | None
    id: str | None = None
    error: ErrorKind | None = None
    detail: str = ""
    source: str = ""


class AssistantTurn(NamedTuple):
    """One assistant turn: calls in order, or a message to the user.

    Attributes:
        calls: The calls; empty where the turn is a message.
        message: The message, or ``None`` where the turn has calls.
        thought: Reasoning, or prose around calls; it reaches neither user nor tools.
    """

    calls: tuple[ToolCall, ...] = ()
    message: str | None = None
    thought: str = ""


class _Malformed(ValueError):
    """A call that cannot be read; the message says why."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Malformed(f"the key {twice[:40]!r} appears twice")
    return found


def _constant(name: str) -> Any:
    raise _Malformed(f"{name} is no JSON value")


def _float(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise _Malformed("a number is out of range")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float, strict=False)
_NAMES = ("name", "tool", "tool_name", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "action_input", "tool_input")
_CALL_SHAPE = re.compile(r'["\'](?:name|function|tool_calls|tool|tool_name|action)["\']\s*:')
_CALL_START = re.compile(r'[\[{]\s*\{?\s*"(?:name|function|tool_calls|type|id|tool|tool_name|role)"\s*:')
_HERMES = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_FUNCTION_TAG = re.compile(r"<function=([\w.-]{1,128})>(.*?)(?:</function>|\Z)", re.DOTALL)
_FENCE = re.compile(r"```[ \t]*([\w+-]{0,20})[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_REACT = re.compile(r"^[ \t]*Action:[ \t]*(.*)$", re.MULTILINE)
_REACT_INPUT = re.compile(r"^[ \t]*Action Input:[ \t]*", re.MULTILINE)
_REACT_NEXT = re.compile(r"^[ \t]*(?:Observation|Thought|Action|Final Answer):", re.MULTILINE)
_FINAL = re.compile(r"^[ \t]*Final Answer:[ \t]*", re.MULTILINE)
_THOUGHT = re.compile(r"^[ \t]*Thought:[ \t]*", re.MULTILINE)
_PYTHON = re.compile(r"\[?\s*[A-Za-z_][\w.]*\(")
_PYTHON_SHAPE = re.compile(r"\[?\s*[A-Za-z_][\w.]*\(\s*(?:[A-Za-z_]\w*\s*=[^=]|\)\s*\]?\s*$)")


def parse(text: str) -> AssistantTurn:
    """Reads an assistant text; never raises on any ``str``.

    >>> parse('{"name": "search_contacts", "arguments": {"name": "Ada"}}').calls[0].arguments
    {'name': 'Ada'}
    >>> parse("set_wifi(on=False)").calls[0].name
    'set_wifi'
    >>> parse("Which Ada do you mean?").message
    'Which Ada do you mean?'

    Args:
        text: Whatever the model wrote.

    Returns:
        The turn: at least one call, or a message (which may be empty).
    """
    if len(text) > MAX_TEXT:
        body = _sane(text)
        if body.lstrip()[:1] in ("{", "[") or "<tool_call>" in body[:4096]:
            return AssistantTurn((_broken(body, f"it is longer than {MAX_TEXT} characters"),))
        return AssistantTurn(message=body)
    if not text.isascii() or "\\ud" in text or "\\uD" in text:
        text = _sane(text)
    body = text.strip()
    if body[:1] == "{":  # The common case: one JSON call and nothing else.
        try:
            value, end = _DECODER.raw_decode(body)
            if end == len(body) and value.keys() == _PLAIN and isinstance(value["arguments"], dict) and "\\u" not in body:
                name = value["name"]
                if type(name) is str and 0 < len(name) <= 256:
                    return AssistantTurn((ToolCall(name, value["arguments"]),))
        except (ValueError, RecursionError):
            pass
    return _read(text, body)


_PLAIN = {"name", "arguments"}


def _read(text: str, body: str) -> AssistantTurn:
    thought, body = _think(body)
    if not body:
        return AssistantTurn(message="", thought=thought)
    for read in (_read_tags, _read_json, _read_react, _read_fences, _read_python, _read_embedded):
        turn = read(body)
        if turn is not None:
            if thought:
                turn = turn._replace(thought=f"{thought}\n{turn.thought}".strip())
            return turn
    return AssistantTurn(message=body if thought else text.strip(), thought=thought)


def _think(body: str) -> tuple[str, str]:
    """Takes a leading ``<think>`` block off."""
    for tag in ("think", "thinking", "reasoning"):
        opening, closing = f"<{tag}>", f"</{tag}>"
        if body.startswith(opening):
            inner, found, rest = body[len(opening) :].partition(closing)
            return inner.strip(), rest.strip() if found else ""
    return "", body


def _sane(text: str) -> str:
    """Lone surrogates become U+FFFD, so that everything later can be written as UTF-8."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _sane(value)
    if isinstance(value, dict):
        return {_sane(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value


def _broken(source: str, detail: str, name: str | None = None) -> ToolCall:
    return ToolCall(name, None, None, ErrorKind.UNPARSEABLE, detail, source[:_KEPT])


def _reason(error: BaseException) -> str:
    if isinstance(error, _Malformed):
        return str(error)
    if isinstance(error, json.JSONDecodeError):
        return f"invalid JSON at character {error.pos}: {error.msg[:1].lower()}{error.msg[1:]}"
    if isinstance(error, RecursionError | MemoryError):
        return "it is nested too deeply"
    return "it is no valid JSON"


def _decode(text: str, start: int = 0) -> tuple[Any, int]:
    """One JSON value from ``start``; ``_Malformed`` and friends pass through."""
    value, end = _DECODER.raw_decode(text, start)
    return _clean(value), end


def _calls(value: Any, source: str) -> list[ToolCall] | AssistantTurn | None:
    """Calls of a JSON value; a turn where it is a full assistant message; ``None`` where it is no call by its shape."""
    if isinstance(value, list):
        if not value or not all(isinstance(item, dict) and _call_shaped(item) for item in value):
            return None
        return [_call(item, source) for item in value[:_MAX_CALLS]]
    if not isinstance(value, dict):
        return None
    if "tool_calls" in value or value.get("role") == "assistant":
        content = value.get("content")
        prose = content if isinstance(content, str) else ""
        inner = value.get("tool_calls")
        thought = value.get("reasoning_content")
        reasoning = thought if isinstance(thought, str) else ""
        if inner is None or inner == []:
            return AssistantTurn(message=prose, thought=reasoning)
        if not isinstance(inner, list):
            return [_broken(source, "tool_calls is a list of calls")]
        return AssistantTurn(
            tuple(_call(item, source) for item in inner[:_MAX_CALLS]), thought=f"{reasoning}\n{prose}".strip()
        )
    return [_call(value, source)] if _call_shaped(value) else None


def _call_shaped(value: dict[str, Any]) -> bool:
    if isinstance(value.get("function"), dict):
        return True
    named = any(key in value for key in _NAMES) or isinstance(value.get("function"), str)
    return named and (any(key in value for key in _ARGUMENTS) or len(value) == 1)


def _call(value: Any, source: str) -> ToolCall:
    if not isinstance(value, dict):
        return _broken(source, "a call is an object with name and arguments")
    ident = value.get("id")
    ident = ident[:128] if isinstance(ident, str) else None
    inner = value["function"] if isinstance(value.get("function"), dict) else value
    name = next((inner[key] for key in (*_NAMES, "function") if key in inner), None)
    if not isinstance(name, str) or not name:
        return _broken(source, "the call's name is a string")
    name = name[:256]
    arguments = next((inner[key] for key in _ARGUMENTS if key in inner), None)
    if isinstance(arguments, str):
        try:
            decoded, end = _decode(arguments.strip() or "{}")
            if arguments.strip()[end:].strip():
                raise _Malformed("text follows the arguments' JSON")
            arguments = decoded
        except (ValueError, RecursionError) as error:
            return _broken(source, f"arguments: {_reason(error)}", name)._replace(id=ident)
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        return _broken(source, "arguments is an object of names and values", name)._replace(id=ident)
    return ToolCall(name, arguments, ident)


def _read_json(body: str) -> AssistantTurn | None:
    """Text that begins with JSON: one value, or several one after the other."""
    if body[0] not in "{[":
        return None
    calls: list[ToolCall] = []
    place = 0
    while place < len(body) and body[place] in "{[" and len(calls) < _MAX_CALLS:
        try:
            value, end = _decode(body, place)
        except (ValueError, RecursionError) as error:
            if calls or (_CALL_SHAPE.search(body, place, place + 4096) and not _PYTHON.match(body)):
                calls.append(_broken(body[place:], _reason(error)))
                return AssistantTurn(tuple(calls))
            return None
        found = _calls(value, body[place:end])
        if isinstance(found, AssistantTurn):
            return found if not calls else AssistantTurn((*calls, *found.calls))
        if found is None:
            break
        calls.extend(found)
        place = end
        while place < len(body) and body[place] in " \t\r\n,;":
            place += 1
    if not calls:
        return None
    return AssistantTurn(tuple(calls[:_MAX_CALLS]), thought=body[place:].strip())


def _inner_calls(text: str) -> list[ToolCall] | None:
    """Calls of a text that is supposed to hold nothing else; ``None`` where it holds none."""
    turn = _read_json(text) if text else None
    if turn is None and text:
        turn = _read_python(text)
    return list(turn.calls) if turn is not None and turn.calls else None


def _read_tags(body: str) -> AssistantTurn | None:
    """Hermes and Llama tags."""
    if "<tool_call>" in body:
        calls: list[ToolCall] = []
        for match in _HERMES.finditer(body):
            inner = match.group(1).strip()
            found = _inner_calls(inner)
            if not found or found[0].error is not None:
                found = _literal_call(inner) or found
            calls.extend(found or [_broken(inner, "a <tool_call> holds one JSON object with name and arguments")])
        return AssistantTurn(tuple(calls[:_MAX_CALLS]), thought=_HERMES.sub("", body).strip())
    if "<function=" in body:
        calls = []
        for match in _FUNCTION_TAG.finditer(body):
            calls.append(_call({"name": match.group(1), "arguments": match.group(2).strip() or "{}"}, match.group(0)))
        if calls:
            return AssistantTurn(tuple(calls[:_MAX_CALLS]), thought=_FUNCTION_TAG.sub("", body).strip())
    if body.startswith("[TOOL_CALLS]"):
        found = _inner_calls(body[len("[TOOL_CALLS]") :].strip())
        return AssistantTurn(tuple(found)) if found else AssistantTurn((_broken(body, "no JSON list of calls follows"),))
    return None


def _literal_call(text: str) -> list[ToolCall] | None:
    """A call written as a Python dict (single quotes, ``True``)."""
    if not text.startswith("{") or len(text) > _MAX_PYTHON:
        return None
    try:
        value = _json_value(ast.literal_eval(text))
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None
    found = _calls(value, text)
    return found if isinstance(found, list) else None


def _read_react(body: str) -> AssistantTurn | None:
    """``Thought:``, ``Action:``, ``Action Input:``, ``Final Answer:``."""
    action = _REACT.search(body)
    final = _FINAL.search(body)
    if final is not None and (action is None or final.start() < action.start()):
        thought = _THOUGHT.sub("", body[: final.start()]).strip()
        return AssistantTurn(message=body[final.end() :].strip(), thought=thought)
    if action is None:
        return None
    thought = _THOUGHT.sub("", body[: action.start()]).strip()
    name = action.group(1).strip().strip("`*")
    given = _REACT_INPUT.search(body, action.end())
    if given is None:
        found = _inner_calls(name)
        if found:
            return AssistantTurn(tuple(found), thought=thought)
        if re.fullmatch(r"[\w.-]{1,128}", name):
            return AssistantTurn((ToolCall(name, {}),), thought=thought)
        return AssistantTurn((_broken(body, "an Action needs a tool's name, and an Action Input with JSON"),), thought=thought)
    following = _REACT_NEXT.search(body, given.end())
    inner = body[given.end() : following.start() if following else len(body)].strip()
    fence = _FENCE.match(inner)
    if fence:
        inner = fence.group(2).strip()
    if not inner:
        return AssistantTurn((ToolCall(name[:256], {}),), thought=thought)
    try:
        value, end = _decode(inner)
        if inner[end:].strip():
            raise _Malformed("text follows the Action Input's JSON")
        if not isinstance(value, dict):
            raise _Malformed("an Action Input is a JSON object of names and values")
    except (ValueError, RecursionError) as error:
        return AssistantTurn((_broken(inner, f"Action Input: {_reason(error)}", name[:256]),), thought=thought)
    return AssistantTurn((ToolCall(name[:256], value),), thought=thought)


def _read_fences(body: str) -> AssistantTurn | None:
    """Calls in code fences; the prose around them is kept as thought."""
    if "```" not in body:
        return None
    calls: list[ToolCall] = []
    for match in _FENCE.finditer(body):
        inner = match.group(2).strip()
        found = _inner_calls(inner)
        if found is None and match.group(1).lower() in ("tool_call", "tool_code", "tool_calls"):
            found = [_broken(inner, "the block holds no readable call")]
        calls.extend(found or ())
    if not calls:
        return None
    return AssistantTurn(tuple(calls[:_MAX_CALLS]), thought=_FENCE.sub("", body).strip())


def _read_python(body: str) -> AssistantTurn | None:
    """``tool(a=1, b="x")``, a list of these, or one a line."""
    if not _PYTHON.match(body):
        return None
    shaped = _PYTHON_SHAPE.match(body) is not None
    if len(body) > _MAX_PYTHON:
        return AssistantTurn((_broken(body, "the call is too long"),)) if shaped else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # What a model writes is no concern of Python's linter.
            nodes = list(_expressions(ast.parse(body)))
        if not nodes or not all(isinstance(node, ast.Call) for node in nodes):
            return None
        return AssistantTurn(tuple(_python_call(node, body) for node in nodes[:_MAX_CALLS]))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if not shaped:
            return None
        reason = error.msg if isinstance(error, SyntaxError) and error.msg else "it cannot be read"
        return AssistantTurn((_broken(body, f"the call is no valid Python call: {reason}"),))


def _expressions(tree: ast.Module) -> Iterator[ast.expr | ast.stmt]:
    for statement in tree.body:
        if isinstance(statement, ast.Expr):
            inner = statement.value
            if isinstance(inner, ast.List | ast.Tuple):
                yield from inner.elts
            elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "print" and inner.args:
                yield from inner.args
            else:
                yield inner
        elif isinstance(statement, ast.Assign):
            yield statement.value
        else:
            yield statement


def _python_call(node: Any, source: str) -> ToolCall:
    name = ast.unparse(node.func)
    if not re.fullmatch(r"[\w.]{1,256}", name):
        return _broken(source, "a call names its tool")
    if node.args or any(keyword.arg is None for keyword in node.keywords):
        return _broken(source, "give every argument by name", name)
    arguments: dict[str, Any] = {}
    for keyword in node.keywords:
        try:
            arguments[keyword.arg] = _clean(_json_value(_literal(keyword.value)))
        except (ValueError, TypeError, RecursionError, MemoryError):
            return _broken(source, f"argument {keyword.arg[:40]!r} is no plain value", name)
    return ToolCall(name, arguments)


_JSON_NAMES = {"true": True, "false": False, "null": None}


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Name) and node.id in _JSON_NAMES:
        return _JSON_NAMES[node.id]
    return ast.literal_eval(node)


def _json_value(value: Any) -> Any:
    """A Python literal as JSON data.

    Raises:
        ValueError: It is none.
    """
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _json_value(item) for key, item in value.items()}
    raise ValueError("no JSON value")


def _read_embedded(body: str) -> AssistantTurn | None:
    """A JSON call after prose, without a fence."""
    match = _CALL_START.search(body)
    if match is None or match.start() == 0:
        return None
    turn = _read_json(body[match.start() :])
    if turn is None or not turn.calls:
        return None
    prose = body[: match.start()].strip()
    return turn._replace(thought=f"{prose}\n{turn.thought}".strip())


def render(turn: AssistantTurn) -> str:
    """A turn as text that :func:`parse` reads back: plain text for a message, OpenAI JSON for calls.

    Raises:
        ValueError: The turn holds a call that could not be read.
    """
    if not turn.calls:
        text = turn.message or ""
        if not turn.thought and parse(text) == turn:
            return text
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if turn.thought:
            message["reasoning_content"] = turn.thought
        return json.dumps(message, ensure_ascii=False)
    if any(call.error is not None for call in turn.calls):
        raise ValueError("a call that could not be read has no canonical text; see ToolCall.source")
    if len(turn.calls) == 1 and turn.calls[0].id is None and not turn.thought:
        call = turn.calls[0]
        return json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
    message = {"role": "assistant", "content": None, "tool_calls": [_openai_call(call, call.id) for call in turn.calls]}
    if turn.thought:
        message["reasoning_content"] = turn.thought
    return json.dumps(message, ensure_ascii=False)


def _openai_call(call: ToolCall, ident: str | None) -> dict[str, Any]:
    arguments = call.source if call.arguments is None else json.dumps(call.arguments, ensure_ascii=False)
    found: dict[str, Any] = {} if ident is None else {"id": ident}
    return {**found, "type": "function", "function": {"name": call.name or "invalid_call", "arguments": arguments}}


def openai_message(turn: AssistantTurn, ids: tuple[str, ...] = ()) -> dict[str, Any]:
    """A turn as an assistant message in OpenAI chat format.

    Args:
        turn: The turn.
        ids: The ids that the world gave its calls, one each.
    """
    if not turn.calls:
        return {"role": "assistant", "content": turn.message or ""}
    given = ids or tuple(call.id or "" for call in turn.calls)
    calls = [_openai_call(call, ident) for call, ident in zip(turn.calls, given, strict=True)]
    return {"role": "assistant", "content": turn.thought or None, "tool_calls": calls}
