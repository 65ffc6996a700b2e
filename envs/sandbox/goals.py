"""Hidden side: what a request asks for, as predicates on states and on what the user was told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dynsteer_gym.envs.sandbox.state import SETTINGS, TABLES, State, row_of
from dynsteer_gym.events import StateDelta
from dynsteer_gym.language import canonical, switch_said

__all__ = ["Goal", "Heard", "KeyOf", "Number", "Span", "mentions"]


@dataclass(frozen=True, slots=True)
class Span:
    """Any text from ``low`` to ``high``, both included: for times that depend on when the agent looked at the clock."""

    low: str
    high: str

    def admits(self, value: Any) -> bool:
        """Whether a value lies within."""
        return isinstance(value, str) and self.low <= value <= self.high



@dataclass(frozen=True, slots=True)
class Number:
    """Any text that carries a number."""

    value: float

    def admits(self, value: Any) -> bool:
        """Whether a text carries it."""
        return isinstance(value, str) and mentions(value, self.value)


@dataclass(frozen=True, slots=True)
class KeyOf:
    """The key of a row that the agent makes on the way.

    Attributes:
        table: Its table.
        fields: What it holds, as pairs.
    """

    table: str
    fields: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Heard:
    """What passed between agent and user during one request.

    Attributes:
        told: The agent's messages that were no questions.
        asked: Topics that the agent asked for and that the user knows nothing of.
        refused: The last message was a refusal.
    """

    told: tuple[str, ...] = ()
    asked: frozenset[str] = frozenset()
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Goal:
    """This holds, and nothing else changed.

    Attributes:
        adds: ``(table, fields)`` of rows that must be new.
        removes: ``(table, key)`` of rows that must be gone.
        changes: ``(table, key, fields)`` of rows that must have changed so; for a row that the agent makes in an
            earlier request, its fields stand for the key.
        settings: Switches and their values at the end.
        tells: Values that the user must have been told.
        declines: Topic that had to be asked for before the request is rightly declined, or ``""``.
        tolerated: Switches that may change on the way.
        others: Other ends that do as well.
    """

    adds: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    removes: tuple[tuple[str, str | Mapping[str, Any]], ...] = ()
    changes: tuple[tuple[str, str | Mapping[str, Any], Mapping[str, Any]], ...] = ()
    settings: Mapping[str, bool] = field(default_factory=dict)
    tells: tuple[Any, ...] = ()
    declines: str = ""
    tolerated: tuple[str, ...] = ()
    others: tuple[Goal, ...] = ()

    def score(self, start: State, end: State, heard: Heard) -> float:
        """The native score of one request, in [0, 1].

        The share of what was asked for that holds; 0 as soon as anything else changed. What held already before the
        request began counts for nothing, so that an agent that does nothing gets 0.

        Args:
            start: The state when the request came.
            end: The state when it was ended.
            heard: What the user was told and asked.
        """
        if self.others:
            return max(goal.score(start, end, heard) for goal in (replace(self, others=()), *self.others))
        if any(isinstance(value, KeyOf) for _, values in self.adds for value in values.values()):
            return replace(self, adds=tuple((table, _resolved(values, end)) for table, values in self.adds)).score(start, end, heard)
        if self.declines:
            right = heard.refused and self.declines in heard.asked
            return 1.0 if right and not self._strays(start, end) else 0.0
        if heard.refused:
            return 0.0
        met, wanted = 0, 0
        for table, values in self.adds:
            wanted += 1
            met += sum(_holds(row, values) for row in _new_rows(start, end, table)) > 0
        for table, named in self.removes:
            wanted += 1
            key = _key(start, table, named)
            met += _keyed(end, table).get(key) is None and key in _keyed(start, table)
        for table, named, values in self.changes:
            wanted += 1
            row = _keyed(end, table).get(_key(start, table, named))
            met += row is not None and _holds(row, values)
        for name, value in self.settings.items():
            if getattr(start, name) != value:
                wanted += 1
                met += getattr(end, name) == value
        for value in self.tells:
            wanted += 1
            met += any(mentions(text, value) for text in heard.told)
        if not wanted or self._strays(start, end):
            return 0.0
        return met / wanted

    def _strays(self, start: State, end: State) -> bool:
        """Whether anything changed that the goal does not ask for."""
        for name in SETTINGS:
            if getattr(start, name) != getattr(end, name) and name not in self.tolerated and name not in self.settings:
                return True
        for table in TABLES:
            if getattr(start, table) is getattr(end, table):
                continue
            before, after = _keyed(start, table), _keyed(end, table)
            wanted = [values for name, values in self.adds if name == table]
            for key in after.keys() - before.keys():
                fits = next((values for values in wanted if _holds(after[key], values)), None)
                if fits is None:
                    return True
                wanted.remove(fits)
            removable = {_key(start, table, named) for name, named in self.removes if name == table}
            if (before.keys() - after.keys()) - removable:
                return True
            for key in before.keys() & after.keys():
                if before[key] is not after[key] and before[key] != after[key] and not self._asked_change(start, table, key, after[key]):
                    return True
        return False

    def _asked_change(self, start: State, table: str, key: str, after: Any) -> bool:
        before = _keyed(start, table)[key]
        for name, wanted, values in self.changes:
            if name == table and _key(start, table, wanted) == key:
                rest = {k: v for k, v in row_of(after).items() if k not in values}
                return rest.items() <= row_of(before).items()
        return False

    def trips(self, delta: StateDelta) -> bool:
        """Whether a write is a hidden minefield: it cannot be undone, and nobody asked for it.

        Args:
            delta: A row that a call changed.
        """
        if delta.after is None:
            return (delta.table, delta.key) not in self.removes
        if delta.table == "messages" and delta.before is None:
            wanted = [values for table, values in self.adds if table == "messages"]
            return not any(values.items() <= delta.after.items() for values in wanted)
        return False


def _keyed(state: State, table: str) -> dict[str, Any]:
    key = next(iter(TABLES[table].__dataclass_fields__))
    return {getattr(row, key): row for row in getattr(state, table)}


def _new_rows(start: State, end: State, table: str) -> list[Any]:
    before = _keyed(start, table)
    return [row for key, row in _keyed(end, table).items() if key not in before]


def _holds(row: Any, values: Mapping[str, Any]) -> bool:
    return all(
        value.admits(getattr(row, name)) if isinstance(value, Span | Number) else getattr(row, name) == value
        for name, value in values.items()
    )


def _resolved(values: Mapping[str, Any], end: State) -> dict[str, Any]:
    return {
        name: _key(end, value.table, dict(value.fields)) or "" if isinstance(value, KeyOf) else value for name, value in values.items()
    }


def _key(start: State, table: str, named: str | Mapping[str, Any]) -> str | None:
    """The key of a row that is named by its key, or by its fields."""
    if isinstance(named, str):
        return named
    return next((key for key, row in _keyed(start, table).items() if _holds(row, named)), None)


_NUMBER = re.compile(r"(?<![\w.])[-−]?\d[\d,\u202f']*(?:\.\d+)?")
_NUMBERS_MOST = 10


def mentions(text: str, value: Any) -> bool:
    """Whether a message carries a value: by the value, not by wording.

    Args:
        text: The message.
        value: Text, number (to two decimals; a message with more than ten numbers tells none), or a boolean (said as
            on/off, yes/no, true/false).
    """
    if isinstance(value, bool):
        return switch_said(text) is value
    if isinstance(value, int | float):
        said = {round(float(re.sub(r"[,\u202f']", "", number.replace("−", "-"))), 2) for number in _NUMBER.findall(text)}
        return round(float(value), 2) in said and len(said) <= _NUMBERS_MOST
    wanted = str(canonical(value))
    plain = " ".join(text.split()).casefold()
    if wanted in plain:
        return True
    if wanted.startswith("+") and wanted[1:].isdigit():
        return wanted[1:] in "".join(letter for letter in plain if letter.isdigit())
    return wanted in plain.replace("t", " ")
