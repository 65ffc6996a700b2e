"""Labels the state of an episode: can it still reach native score 1 within the turns that are left? Hidden side.

``yes`` comes with a way that was played on a fork to score 1; ``no`` with a reason that no play can undo; all else is
``unknown``. It is the ground truth for early stops.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dynsteer_gym.envs.sandbox.agents import Expert
from dynsteer_gym.envs.sandbox.draw import Found, Plan
from dynsteer_gym.envs.sandbox.env import SandboxEnv
from dynsteer_gym.envs.sandbox.goals import Goal, KeyOf, Number, Span
from dynsteer_gym.envs.sandbox.state import TABLES, State, row_of
from dynsteer_gym.language import MessageAct, message_act

__all__ = ["Label", "Verdict", "solve"]


class Label(StrEnum):
    """Whether native score 1 can still be reached."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A label and why.

    Attributes:
        label: The label.
        reason: One sentence.
        turns: With ``yes``, how many turns the way takes; else 0.
    """

    label: Label
    reason: str
    turns: int = 0


_UNDO = {
    "contacts": "delete_contact",
    "messages": "delete_message",
    "reminders": "delete_reminder",
    "events": "cancel_event",
    "members": "remove_from_group",
    "payees": "delete_payee",
    "alarms": "delete_alarm",
}
"""The tool that takes a row out of a table; rows of other tables stay for good."""


def solve(env: SandboxEnv, budget: int | None = None) -> Verdict:
    """Labels an episode as it stands.

    Args:
        env: A running or ended episode; it is not changed.
        budget: Turns that are left, or ``None`` for the env's own limit.
    """
    left = env.max_turns - env.turn if budget is None else budget
    if env.ended:
        good = env.native_score() == 1.0
        return Verdict(Label.YES if good else Label.NO, "the episode is over")
    hopeless = _hopeless(env, left)
    if hopeless:
        return Verdict(Label.NO, hopeless)
    for plan in _ways(env):
        if len(plan) > left:
            continue
        if _works(env, plan, left):
            return Verdict(Label.YES, "a way was played to the end", len(plan))
    return Verdict(Label.UNKNOWN, "no way was found, and no reason why there is none")


# No: what nothing can undo.


def _hopeless(env: SandboxEnv, left: int) -> str:
    if any(score < 1.0 for score in env.scores):
        return "a request was ended wrongly"
    needed = _fewest(env)
    if needed > left:
        return f"{left} turns are left, and {needed} are needed at least"
    return _scar(env)


def _fewest(env: SandboxEnv) -> int:
    """Turns that every way takes: each request is ended by a message, and what it asks for takes a call or a question."""
    total = 0
    for place, request in enumerate(env.instance.requests[env.place :]):
        goals = [request.goal, *request.goal.others]
        total += 1 + len(request.checks) - (env.user.checked if place == 0 else 0)
        if place == 0:
            total += all(_undone(goal, env.begun, env.state) for goal in goals)
            if request.goal.declines and request.goal.declines not in env.user.heard.asked:
                total += 1
        else:
            total += all(bool(goal.adds or goal.removes or goal.changes or goal.declines) for goal in goals)
    return total


def _undone(goal: Goal, begun: State, state: State) -> bool:
    """Whether a goal surely needs another call: it adds or removes rows, and the tables are as they were."""
    tables = {table for table, *_ in (*goal.adds, *goal.removes)}
    return any(getattr(begun, table) is getattr(state, table) for table in tables)


def _scar(env: SandboxEnv) -> str:
    """What the running request has done that neither it nor anything later can make good, or ``""``."""
    request, begun, state = env.instance.requests[env.place], env.begun, env.state
    goals = [request.goal, *request.goal.others]
    own = {spec.name for spec in env.instance.tools}
    if env.instance.scramble is not None:
        own = {env.instance.scramble.names[name] for name in own}
    reasons = [_scar_of(goal, begun, state, own) for goal in goals]
    return reasons[0] if all(reasons) else ""


def _scar_of(goal: Goal, begun: State, state: State, tools: set[str]) -> str:
    for table, kind in TABLES.items():
        if getattr(begun, table) is getattr(state, table):
            continue
        key = next(iter(kind.__dataclass_fields__))
        before = {getattr(row, key): row for row in getattr(begun, table)}
        after = {getattr(row, key): row for row in getattr(state, table)}
        named = [item for name, item in goal.removes if name == table]
        for gone in before.keys() - after.keys():
            if not any(item == gone or (isinstance(item, Mapping) and _may_be(before[gone], item)) for item in named):
                return f"a row of {table} is gone that nobody asked to delete"
        if table in _UNDO and _UNDO[table] in tools:
            continue
        wanted = [values for name, values in goal.adds if name == table]
        fresh = [after[new] for new in after.keys() - before.keys()]
        if len(fresh) > len(wanted) or any(not any(_may_be(row, values) for values in wanted) for row in fresh):
            return f"a row was added to {table} that nobody asked for and no tool takes out"
    return ""


def _may_be(row: Any, values: Mapping[str, Any]) -> bool:
    """Whether a row is, or can become, one that is asked for: never ``False`` where it could."""
    for name, value in values.items():
        own = getattr(row, name)
        if isinstance(value, KeyOf) or (name == "status" and own == "draft"):
            continue
        if isinstance(value, Span | Number):
            if not value.admits(own):
                return False
        elif (own != value and type(row).__name__ in _FIXED and name != "status") or (name == "status" and own != value):
            return False
    return True


_FIXED = frozenset(("Message", "Email", "Transfer", "Note", "Member"))
"""Rows whose fields no tool changes."""


# Yes: a way, played.


def _ways(env: SandboxEnv) -> Iterator[Plan]:
    """Ways from here: what is left of each of the request's plans, after repairs, then the plans of the requests to come."""
    instance = env.instance
    request = instance.requests[env.place]
    done, said = _history(env)
    later = tuple(turn for other in instance.requests[env.place + 1 :] for turn in other.plan)
    repairs = _repairs(env)
    for plan in (request.plan, *request.routes):
        rest: list[Any] = []
        open_calls = list(done)
        for turn in plan:
            if isinstance(turn, str):
                rest.append(turn)
            elif (match := next((other for other in open_calls if _same(turn, other)), None)) is not None:
                open_calls.remove(match)
            else:
                rest.append(turn)
        asked = env.user.confirmed or request.goal.declines in env.user.heard.asked
        lean = [turn for turn in rest if not (isinstance(turn, str) and (message_act(turn) == MessageAct.QUESTION or turn in said))]
        brief = [turn for turn in rest if not (isinstance(turn, str) and turn in said)]
        for way in ([lean, brief, rest] if asked or not request.goal.declines else [brief, rest]):
            yield (*repairs, *way, *later)
    yield (*repairs, *request.plan, *later)


def _same(planned: tuple[str, Mapping[str, Any]], called: tuple[str, Mapping[str, Any]]) -> bool:
    """Whether a call is the planned one; what the run makes may be anything."""
    if planned[0] != called[0] or planned[1].keys() != called[1].keys():
        return False
    return all(isinstance(value, Found) or value == called[1][key] for key, value in planned[1].items())


def _history(env: SandboxEnv) -> tuple[list[Any], list[str]]:
    """Calls of the running request that succeeded, and messages said in it, both as plans have them."""
    calls: dict[str, Any] = {}
    done, said = [], []
    scramble = env.instance.scramble
    openings = [request.text for request in env.instance.requests[: env.place + 1]]
    for message in env.messages:
        if message["role"] == "user" and message["content"] == openings[-1]:
            done, said = [], []
        for entry in message.get("tool_calls") or ():
            calls[entry["id"]] = entry["function"]
        if message["role"] == "assistant" and message["content"]:
            said.append(message["content"])
        if message["role"] == "tool" and not message["content"].startswith("Error:"):
            function = calls[message["tool_call_id"]]
            try:
                arguments = json.loads(function["arguments"])
            except ValueError:
                continue
            name = function["name"]
            if scramble is not None and name in scramble.names:
                name = scramble.names[name]
                arguments = scramble.read(name, arguments)
            done.append((name, arguments))
    return done, said


def _repairs(env: SandboxEnv) -> Plan:
    """Calls that take out what was added and nobody asked for, and put back what was changed, where tools can."""
    request, begun, state = env.instance.requests[env.place], env.begun, env.state
    found: list[tuple[str, dict[str, object]]] = []
    for table, kind in TABLES.items():
        if getattr(begun, table) is getattr(state, table):
            continue
        key = next(iter(kind.__dataclass_fields__))
        before = {getattr(row, key): row for row in getattr(begun, table)}
        wanted = [values for name, values in request.goal.adds if name == table]
        changed = [item for name, item, _ in request.goal.changes if name == table]
        for row in getattr(state, table):
            old = before.get(getattr(row, key))
            if old is None:
                fits = next((values for values in wanted if _is(row, values)), None)
                if fits is not None:
                    wanted.remove(fits)
                elif table == "members":
                    found.append(("remove_from_group", {"contact_id": row.contact_id, "group": row.group}))
                elif table in _UNDO:
                    found.append((_UNDO[table], {key: getattr(row, key)}))
            elif old is not row and old != row and getattr(row, key) not in changed:
                found.extend(_put_back(table, key, old, row))
    return tuple(found)


def _is(row: Any, values: Mapping[str, Any]) -> bool:
    return all(
        isinstance(value, KeyOf) or (value.admits(getattr(row, name)) if isinstance(value, Span | Number) else getattr(row, name) == value)
        for name, value in values.items()
    )


def _put_back(table: str, key: str, old: Any, new: Any) -> Iterator[tuple[str, dict[str, object]]]:
    before, after = row_of(old), row_of(new)
    moved = {name: value for name, value in before.items() if value != after[name]}
    named = {key: before[key]}
    if table == "contacts" and all(value is not None for value in moved.values()):
        yield "update_contact", {**named, **moved}
    if table == "reminders" and "due" in moved:
        yield "move_reminder", {**named, "due": before["due"]}
    if table == "events" and "start" in moved:
        yield "move_event", {**named, "start": before["start"]}
    if table == "events" and "place" in moved and before["place"]:
        yield "set_event_place", {**named, "place": before["place"]}
    if table == "accounts" and "card_frozen" in moved:
        yield ("freeze_card" if before["card_frozen"] else "unfreeze_card"), named
    if table == "accounts" and "transfer_limit" in moved:
        yield "set_transfer_limit", {**named, "limit": before["transfer_limit"]}


def _works(env: SandboxEnv, plan: Plan, left: int) -> bool:
    fork = env.fork()
    fork.max_turns = fork.turn + left
    expert = Expert(env.instance, [plan], returns=_returns(env))
    observation = ""
    for _ in plan:
        observation, score, terminated, truncated, _ = fork.step(expert.act(observation))
        if terminated or truncated:
            return terminated and score == 1.0
    return False


def _returns(env: SandboxEnv) -> dict[str, Any]:
    """What tools returned last, by their own names."""
    names = env.instance.scramble.names if env.instance.scramble is not None else {}
    found = {}
    for message in env.messages:
        if message["role"] == "tool" and not message["content"].startswith("Error:"):
            name = message["name"]
            try:
                found[names.get(name, name)] = json.loads(message["content"])
            except ValueError:
                continue
    return found
