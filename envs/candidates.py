"""The candidates of the finite action interface: every action that what was said and returned so far grounds.

A candidate is a tool call with typed, grounded arguments, or a message: a question for a parameter, an answer with a
returned field, a request for confirmation, a report, a refusal. Masking goes by type and grounding only, never by
preconditions or hidden state.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynsteer_gym.envs.actions import AssistantTurn, ToolCall
from dynsteer_gym.envs.features import EMBEDDING, OVERLAPS, CatalogueWords
from dynsteer_gym.envs.grounding import Value, accepts, row_canonicals
from dynsteer_gym.kinds import field_type, literal_type, plain_schema, rows_of
from dynsteer_gym.language import canonical, extract_literals
from dynsteer_gym.task import ToolSpec

__all__ = ["STATIC", "Candidate", "CandidateList"]

KINDS = ("call", "ask", "tell", "confirm", "report", "refuse")
_PREPOSITIONS = {"to": 0, "for": 1, "of": 1, "from": 2, "with": 2, "by": 2, "at": 3, "on": 3, "as": 4, "is": 4}
_WORDS_AT = 26
STATIC = _WORDS_AT + OVERLAPS + EMBEDDING
"""Columns of a candidate that never change during a request."""

_ROWS_KEPT = 5
_VALUES_PER_SLOT = 8
_CALLS_PER_TOOL = 24


class Candidate(NamedTuple):
    """One action on offer.

    Attributes:
        turn: What choosing it sends to the world.
        tool: Number of its tool in the catalogue; messages count on from there by kind.
        variant: Its row in the catalogue's words.
        step: The agent turn in which the newest of its values appeared.
    """

    turn: AssistantTurn
    tool: int
    variant: int
    step: int


class _Slot(NamedTuple):
    name: str
    type: str
    required: bool
    constants: tuple[Any, ...]


class _Shape(NamedTuple):
    number: int
    name: str
    required: tuple[_Slot, ...]
    optional: tuple[_Slot, ...]
    types: frozenset[str]


def shapes(tools: Sequence[ToolSpec], index: CatalogueWords) -> tuple[_Shape, ...]:
    """The typed parameter lists of a catalogue."""
    found = []
    for number, tool in enumerate(tools):
        slots = []
        for name, schema in tool.properties.items():
            plain = plain_schema(schema)
            constants = (True, False) if plain.get("type") == "boolean" else tuple(plain.get("enum", ()))
            slots.append(_Slot(name, index.types[tool.name][name], name in tool.required, constants))
        found.append(
            _Shape(
                number,
                tool.name,
                tuple(slot for slot in slots if slot.required),
                tuple(slot for slot in slots if not slot.required),
                frozenset(slot.type for slot in slots if not slot.constants),
            )
        )
    return tuple(found)


class CandidateList:
    """The growing list of candidates of one request, with their static features.

    Attributes:
        entries: The candidates in order of appearance; the order says nothing of the task to a policy, since the
            interface shuffles it at every step.
        static: Their static features, shape ``(capacity, STATIC)``; rows from ``len(entries)`` on are unused.
        overflow: Candidates left out for lack of room.
    """

    def __init__(self, tools: tuple[ToolSpec, ...], index: CatalogueWords, typed: tuple[_Shape, ...], capacity: int) -> None:
        """Makes an empty list.

        Args:
            tools: The catalogue.
            index: Its words.
            typed: Its typed parameters (:func:`shapes`).
            capacity: The most candidates held.
        """
        self._tools = tools
        self._index = index
        self._shapes = typed
        self._capacity = capacity
        self.entries: list[Candidate] = []
        self.static: NDArray[np.float32] = np.zeros((capacity, STATIC), np.float32)
        self.overflow = 0
        self._seen: set[Any] = set()
        self._values: dict[str, list[Value]] = {}
        self._known: set[Any] = set()
        self._names: list[Any] = []
        self._table: NDArray[np.float32] = np.zeros((0, 0), np.float32)
        self._row = 0

    def start(self, request: str, step: int, words_hidden: bool) -> None:
        """Forgets everything and begins with a request.

        Args:
            request: The user's words.
            step: The agent turn after which it came.
            words_hidden: Leave all features of words at 0 (the blind baseline).
        """
        self.entries.clear()
        self._seen.clear()
        self._values = {}
        self._known.clear()
        self._names = []
        self.overflow = 0
        self._hidden = words_hidden
        self._table = (
            np.zeros((self._index.size, OVERLAPS + EMBEDDING), np.float32) if words_hidden else self._index.features(request)
        )
        literals = self._literals(request, "request", step)
        self._names = [value.canonical for value in literals]
        self._pool(literals)
        for shape in self._shapes:
            self._calls(shape)
            for slot in shape.required + shape.optional:
                if not slot.constants and not slot.type.startswith("id:"):
                    self._question(slot.name, step)
        count = len(self._tools)
        for offset, (kind, text) in enumerate(
            (("confirm", "Shall I go ahead?"), ("report", "Done."), ("refuse", "I cannot do that."))
        ):
            self._add((kind,), AssistantTurn(message=text), count + 2 + offset, (kind, "", None), kind, (), step)

    def heard(self, reply: str, step: int) -> None:
        """Takes in what the user answered."""
        self._pool(self._literals(reply, "user", step))
        self._extend(step)

    def returned(self, value: Any, step: int) -> None:
        """Takes in what a tool returned, and offers its fields as answers."""
        rows = []
        given = list(rows_of(value))
        count = len(given)
        for rank, row in enumerate(given):
            held = row_canonicals(row)
            matches = sum(
                name in held or (isinstance(name, str) and any(isinstance(h, str) and name in h for h in held))
                for name in self._names
            )
            rows.append((-matches, rank, count, row))
        # Rows that hold what the request names come first; the rest keep the tool's order.
        rows.sort(key=lambda item: item[:2])
        if rows and rows[0][0]:
            # The rows that fit best tell more of what the request speaks of: a person's number finds the person's messages.
            best = rows[0][0]
            for other, _, _, row in rows:
                if other == best:
                    told = [canonical(v) for key, v in row.items() if isinstance(v, str) and field_type(key, v) in ("phone", "email")]
                    self._names.extend(item for item in told if item not in self._names and len(self._names) < 12)
        self.overflow += max(0, len(rows) - _ROWS_KEPT)
        found = []
        for other, rank, count, row in rows[:_ROWS_KEPT]:
            self._row += 1
            for key, item in row.items():
                if isinstance(item, str | int | float) and item != "":
                    found.append(
                        Value(
                            canonical(item), item, field_type(key, item), key, "return", self._row, -other, rank, count, step=step
                        )
                    )
        for value_ in found:
            if not value_.type.startswith("id:"):
                self._answer(value_)
        self._pool(found)
        self._extend(step)

    def _literals(self, text: str, source: str, step: int) -> list[Value]:
        found = []
        for place, literal in enumerate(extract_literals(text)):
            before = text[max(0, literal.start - 16) : literal.start].split()
            word = before[-1].lower().strip("\"'“‘(:,") if before and not self._hidden else ""
            item: Any = literal.value
            if literal.type == "number":
                item = float(item) if "." in item else int(item)
            kind = literal_type(literal.type)
            found.append(Value(canonical(item), item, kind, "", source, literal=place, before=word, step=step))
        return found

    def _pool(self, values: Sequence[Value]) -> None:
        for value in values:
            key = (value.type, value.canonical)
            if key in self._known:
                continue
            self._known.add(key)
            self._values.setdefault(value.type, []).append(value)

    def _extend(self, step: int) -> None:
        fresh = {kind for kind, values in self._values.items() if values[-1].step == step}
        if not fresh:
            return
        texts = any(kind == "datetime" or kind == "text" for kind in fresh)
        for shape in self._shapes:
            if shape.types & fresh or (texts and any(kind == "text" or kind.startswith("any:") for kind in shape.types)):
                self._calls(shape)

    def _fitting(self, slot: _Slot) -> list[Value]:
        exact = self._values.get(slot.type, [])
        if slot.type == "text":
            exact = exact + [value for value in self._values.get("datetime", ()) if accepts("text", value)]
        elif slot.type.startswith("any:"):
            exact = exact + [value for value in self._values.get("text", ()) if accepts(slot.type, value)]
        if len(exact) > _VALUES_PER_SLOT:
            self.overflow += len(exact) - _VALUES_PER_SLOT
            exact = exact[:4] + exact[-(_VALUES_PER_SLOT - 4) :]
        return exact

    def _calls(self, shape: _Shape) -> None:
        choices: list[list[Any]] = []
        for slot in shape.required:
            choice = list(slot.constants) or self._fitting(slot)
            if not choice:
                return
            choices.append(choice)
        extras: list[tuple[_Slot | None, Any]] = [(None, None)]
        for slot in shape.optional:
            extras.extend((slot, item) for item in (slot.constants or self._fitting(slot)))
        made = 0
        for picked in product(*choices) if choices else ((),):
            for slot, item in extras:
                made += self._call(shape, picked, slot, item)
                if made >= _CALLS_PER_TOOL:
                    self.overflow += 1
                    return

    def _call(self, shape: _Shape, picked: tuple[Any, ...], slot: _Slot | None, item: Any) -> int:
        arguments: dict[str, Any] = {}
        values: list[Value] = []
        word, constant = "", None
        for needed, choice in zip(shape.required, picked, strict=True):
            if needed.constants:
                arguments[needed.name] = choice
                word, constant = needed.name, choice
            else:
                arguments[needed.name] = choice.value
                values.append(choice)
        if slot is not None:
            word = slot.name
            if slot.constants:
                arguments[slot.name] = constant = item
            else:
                arguments[slot.name] = item.value
                values.append(item)
        key = (shape.number, *arguments.items())
        if key in self._seen:
            return 0
        self._seen.add(key)
        turn = AssistantTurn(calls=(ToolCall(shape.name, arguments),))
        variant = (shape.name, word, constant)
        return self._add(None, turn, shape.number, variant, "call", values, 0, len(shape.required), slot is not None, constant)

    def _question(self, name: str, step: int) -> None:
        turn = AssistantTurn(message=f"What is the {name.replace('_', ' ')}?")
        self._add(("ask", name), turn, len(self._tools), ("?", name, None), "ask", (), step)

    def _answer(self, value: Value) -> None:
        said = str(value.value).lower() if isinstance(value.value, bool) else str(value.value)
        key = ("tell", value.key, value.canonical)
        turn = AssistantTurn(message=f"The {value.key.replace('_', ' ')} is {said}.")
        constant = value.value if isinstance(value.value, bool) else None
        variant = ("=", value.key, None)
        self._add(key, turn, len(self._tools) + 1, variant, "tell", (value,), value.step, 0, False, constant)

    def _add(
        self,
        key: Any,
        turn: AssistantTurn,
        tool: int,
        variant: tuple[str, str, Any],
        kind: str,
        values: Sequence[Value],
        step: int,
        required: int = 0,
        optional: bool = False,
        constant: Any = None,
    ) -> int:
        if key is not None:
            if key in self._seen:
                return 0
            self._seen.add(key)
        number = len(self.entries)
        if number >= self._capacity:
            self.overflow += 1
            return 0
        place = self._index.variants.get(variant)
        if place is None:
            place = self._index.variants[("report", "", None)]
        row = [0.0] * _WORDS_AT
        row[0] = 1.0
        row[1 + KINDS.index(kind)] = 1.0
        row[7] = required / 3
        row[8] = 1.0 if optional else 0.0
        if constant is True:
            row[9] = 1.0
        elif constant is False:
            row[10] = 1.0
        for value in values:
            if value.step > step:
                step = value.step
            if value.source == "request":
                row[11] += 0.5
                row[22 if value.literal <= 0 else 23] = 1.0
            elif value.source == "user":
                row[12] += 0.5
            else:
                row[13] += 0.5
                if value.matches:
                    row[14] = 0.5 * min(value.matches, 2)
                if value.rank == 0:
                    row[15] = 1.0
                if value.rows == 1:
                    row[16] = 1.0
                if value.rank == value.rows - 1:
                    row[24] = 1.0
            if value.before in _PREPOSITIONS:
                row[17 + _PREPOSITIONS[value.before]] = 1.0
        if len(values) == 2 and values[0].row >= 0 and values[0].row == values[1].row:
            row[25] = 1.0
        static = self.static[number]
        static[:_WORDS_AT] = row
        static[_WORDS_AT:] = self._table[place]
        self.entries.append(Candidate(turn, tool, place, step))
        return 1

    def fork(self) -> CandidateList:
        """An independent copy."""
        other = object.__new__(CandidateList)
        other.__dict__.update(self.__dict__)
        other.entries = list(self.entries)
        other.static = self.static.copy()
        other._seen = set(self._seen)
        other._names = list(self._names)
        other._known = set(self._known)
        other._values = {kind: list(values) for kind, values in self._values.items()}
        return other


