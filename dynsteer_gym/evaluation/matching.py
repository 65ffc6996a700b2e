"""The settlement predicate: does a closed action meet a milestone's operation (equation 4 and Algorithm 1)?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from dynsteer_gym.blueprint.graph import Blueprint, Operation, OperationKind, Role, RoleSource
from dynsteer_gym.blueprint.planning import HELD
from dynsteer_gym.evaluation.evidence import Ledger, first_rows, key_of
from dynsteer_gym.events import ActionKind, ClosedAction
from dynsteer_gym.language import MessageAct, canonical, message_act, stem, switch_said, words
from dynsteer_gym.lexicon import concepts

__all__ = ["Match", "carries", "match", "partial", "possible", "ready_frontier"]


class Match(NamedTuple):
    """How an action meets an operation.

    Attributes:
        operation: Place of the operation among the milestone's alternatives.
        bound: Bound arguments that were matched.
        right: How far entities and values are the right ones, in [0, 1].
        undecided: Share of that which no rule could decide, in [0, 1].
        reason: Why ``right`` is below 1.
        used: What the predicate was decided on: ``call``, ``return``, ``state`` or ``message``.
    """

    operation: int
    bound: int
    right: float = 1.0
    undecided: float = 0.0
    reason: str = ""
    used: str = "call"


def ready_frontier(blueprint: Blueprint, settled: Mapping[str, Any]) -> tuple[str, ...]:
    """``F_t = { m not settled : Pred(m) subset of settled }`` in topological order (equation 4)."""
    return tuple(
        milestone.id
        for milestone in blueprint.milestones
        if milestone.id not in settled and all(key in settled for key in blueprint.predecessors[milestone.id])
    )


def match(
    operations: tuple[Operation, ...], action: ClosedAction, ledger: Ledger, literals: Mapping[str, Any]
) -> Match | None:
    """The best way in which an action meets one of several operations, or ``None``.

    Args:
        operations: A milestone's alternatives.
        action: The closed action.
        ledger: What had been said and returned when it closed.
        literals: Values of the literal roles.
    """
    best: Match | None = None
    for place, operation in enumerate(operations):
        if operation.kind == OperationKind.MESSAGE:
            found = _message(place, operation, action, ledger) if action.kind == ActionKind.MESSAGE else None
        elif operation.kind == OperationKind.STATE:
            found = _state(place, operation, action, literals)
        else:
            found = _call(place, operation, action, ledger, literals)
        if found is not None and (best is None or (found.bound, found.right) > (best.bound, best.right)):
            best = found
    return best


def _call(place: int, operation: Operation, action: ClosedAction, ledger: Ledger, literals: Mapping[str, Any]) -> Match | None:
    if action.tool != operation.name or action.error is not None or action.kind != ActionKind.CALL:
        return None
    arguments = action.arguments or {}
    bound, right, reason, used = 0, 1.0, "", "call"
    for name, role in operation.bindings:
        if name == HELD:
            if _held(action.value, literals.get(role.key)):
                bound += 1
            elif arguments:
                return None  # Only a look-up of everything shows that something does not exist.
            used = "return"
            continue
        if role.source in (RoleSource.FREE, RoleSource.PUBLIC):
            continue
        if name not in arguments:
            return None
        fits = _fits(arguments[name], role, ledger, literals)
        if not fits:
            return None
        bound += 1
        if fits < 2:
            right, reason = 0.0, f"{name} is not the one that the request speaks of"
    return Match(place, bound, right, 0.0, reason, used)


def possible(operation: Operation, action: ClosedAction, ledger: Ledger, literals: Mapping[str, Any]) -> bool:
    """Whether an action that does not meet a call may still have done what it is for: nothing is then proven undone.

    The tool succeeded, no text, name or switch that the request gives is another one, and the rest has some source.
    """
    if operation.kind != OperationKind.CALL or action.tool != operation.name or action.error is not None:
        return False
    arguments = action.arguments or {}
    for name, role in operation.bindings:
        if role.source in (RoleSource.LITERAL, RoleSource.CONSTANT):
            wanted = literals.get(role.key) if role.source == RoleSource.LITERAL else None
            worked_out = isinstance(wanted, str) and len(wanted) <= 10 and any(letter.isdigit() for letter in wanted)
            if not worked_out and not _fits(arguments.get(name), role, ledger, literals):
                return False
        elif name in arguments and ledger.grounded(arguments[name]) is False:
            return False
    return True


def _fits(value: Any, role: Role, ledger: Ledger, literals: Mapping[str, Any]) -> int:
    """0: another value; 1: from the right source, of another entity; 2: the right one."""
    source = role.source
    if source == RoleSource.LITERAL:
        wanted, own = key_of(literals.get(role.key)), key_of(value)
        return 2 if own == wanted or _part_of(wanted, own) else 0
    if source == RoleSource.CONSTANT:
        return 2 if canonical(value) == canonical(_constant(role.key)) else 0
    if key_of(value) in ledger.told:
        return 2
    if source == RoleSource.PRODUCER:
        return ledger.produced(role.key, value) or 0
    return 0


def _part_of(wanted: str, moment: str) -> bool:
    """Whether a request names a moment by its day or by its hour alone."""
    if len(moment) != 16 or moment[10] != " ":
        return False
    return (len(wanted) == 10 and moment.startswith(wanted)) or (len(wanted) in (4, 5) and moment[11:] == wanted.zfill(5))


@lru_cache(maxsize=1024)
def _constant(key: str) -> Any:
    return json.loads(key)


def _held(value: Any, wanted: Any) -> bool:
    if wanted is None:
        return False
    key = key_of(wanted)
    return any(key in key_of(item) for row in first_rows(value) for item in row.values() if isinstance(item, str | int | float))


def _state(place: int, operation: Operation, action: ClosedAction, literals: Mapping[str, Any]) -> Match | None:
    table, _, column = operation.name.partition(".")
    roles = dict(operation.bindings)
    for delta in action.writes or ():
        if delta.table != table or delta.after is None or column not in delta.after:
            continue
        if (delta.before or {}).get(column) == delta.after[column]:
            continue
        bound = 0
        for wanted, own in (("key", delta.key), ("value", delta.after[column])):
            role = roles.get(wanted)
            if role is None or role.source in (RoleSource.FREE, RoleSource.PUBLIC):
                continue
            value = literals.get(role.key) if role.source == RoleSource.LITERAL else None
            if role.source == RoleSource.CONSTANT:
                value = _constant(role.key)
            if value is None or key_of(value) != key_of(own):
                break
            bound += 1
        else:
            return Match(place, bound, used="state")
    return None


_ACTS = {"answer": MessageAct.REPORT, "report": MessageAct.REPORT, "question": MessageAct.QUESTION, "refusal": MessageAct.REFUSAL}


def _message(place: int, operation: Operation, action: ClosedAction, ledger: Ledger) -> Match | None:
    if message_act(action.text) != _ACTS.get(operation.name) or not action.text.strip():
        return None
    if operation.name == "question":
        said = concepts_in(action.text)
        asked = [name for name, _ in operation.bindings if concepts_in(name) & said]
        return Match(place, len(asked), used="message") if len(asked) == len(operation.bindings) else None
    if operation.name != "answer":
        return Match(place, 0, used="message")
    right, undecided, reason = 1.0, 0.0, ""
    for name, role in operation.bindings:
        told = [(key, support) for key, support in ledger.values(role.key).items() if carries(action.text, key)]
        if not told:
            return None
        best = ledger.best(role.key)
        longest = max(told, key=lambda item: (len(item[0]), item[1]))
        if longest[1] < best:
            right, reason = 0.0, f"the {name} told is not that of what the request speaks of"
        rivals = sum(support == best for support in ledger.values(role.key).values())
        undecided = max(undecided, 0.5 if rivals > 1 else 0.0)
    return Match(place, len(operation.bindings), right, undecided, reason, "message")


@lru_cache(maxsize=4096)
def concepts_in(text: str) -> frozenset[str]:
    """Concepts and stems of a text."""
    return frozenset(concepts(text)) | {stem(word) for word in words(text)} - {"is", "th", "the", "what", "of"}


@lru_cache(maxsize=8192)
def carries(text: str, key: str) -> bool:
    """Whether a message carries a value, given by its key: by the value, not by wording."""
    if key in ("True", "False", "true", "false"):
        return switch_said(text) is (key.lower() == "true")
    plain = " ".join(text.split()).casefold()
    if key in plain:
        return True
    if key.isdigit() and len(key) > 6:
        return key in "".join(letter for letter in plain if letter.isdigit())
    return False


def partial(operations: tuple[Operation, ...], action: ClosedAction, ledger: Ledger, literals: Mapping[str, Any]) -> float:
    """How near an action that does not settle a milestone comes to it, in [0, 1): its provisional score.

    The right tool counts 0.3, each bound argument that fits its share of 0.6; a message of the right act 0.3.
    """
    best = 0.0
    for operation in operations:
        if operation.kind == OperationKind.CALL and action.tool == operation.name and action.kind == ActionKind.CALL:
            arguments = action.arguments or {}
            named = [(name, role) for name, role in operation.bindings if name != HELD]
            fit = sum(name in arguments and _fits(arguments[name], role, ledger, literals) > 1 for name, role in named)
            best = max(best, 0.3 + 0.6 * fit / max(len(named), 1))
        elif operation.kind == OperationKind.MESSAGE and action.kind == ActionKind.MESSAGE and operation.bindings:
            best = max(best, 0.3 * (message_act(action.text) == _ACTS.get(operation.name)))
    return best
