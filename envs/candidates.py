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

__all__ = ["STATIC", "Candidate", "CandidateList", "Typed"]

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
    constants: tuple[Any, ...]


class _Shape(NamedTuple):
    number: int
    name: str
    required: tuple[_Slot, ...]
    optional: tuple[_Slot, ...]
    types: frozenset[str]


class _Held(NamedTuple):
    """A value in the pool: its number, and the columns that it marks in a candidate that uses it."""

    number: int
    value: Value
    marks: tuple[tuple[int, float], ...]


class _Recipe(NamedTuple):
    """What a call's turn is written from, once it is chosen."""

    shape: _Shape
    picked: tuple[Any, ...]
    slot: _Slot | None
    item: Any


class Typed:
    """The typed parameters of a catalogue, and the candidates that are on offer whatever was said.

    Attributes:
        shapes: One parameter list for each tool.
        fixed: The recipes or texts of candidates that need no value.
        rows: Their static features but for words, shape ``(len(fixed), 26)``.
        tools: Their tools' numbers.
        variants: Their rows in the catalogue's words.
    """

    def __init__(self, tools: Sequence[ToolSpec], index: CatalogueWords) -> None:
        """Reads the catalogue.

        Args:
            tools: The tools on offer.
            index: Their words.
        """
        self.shapes = tuple(_shape(number, tool, index) for number, tool in enumerate(tools))
        self.fixed: list[_Recipe | str] = []
        rows: list[list[float]] = []
        numbers: list[int] = []
        variants: list[int] = []

        def add(recipe: _Recipe | str, number: int, variant: tuple[str, str, Any], row: list[float]) -> None:
            self.fixed.append(recipe)
            rows.append(row)
            numbers.append(number)
            variants.append(index.variants.get(variant, index.variants[("report", "", None)]))

        asked: set[str] = set()
        for shape in self.shapes:
            constants = [slot.constants for slot in shape.required]
            if all(constants):
                extras = [(slot, item) for slot in shape.optional for item in slot.constants]
                for picked in product(*constants):
                    for slot, item in [(None, None), *extras][:_CALLS_PER_TOOL]:
                        word, constant = _word(shape, picked, slot, item)
                        row = _row("call", shape, slot is not None, constant)
                        add(_Recipe(shape, picked, slot, item), shape.number, (shape.name, word, constant), row)
            for slot in shape.required + shape.optional:
                if not slot.constants and not slot.type.startswith("id:") and slot.name not in asked:
                    asked.add(slot.name)
                    text = f"What is the {slot.name.replace('_', ' ')}?"
                    add(text, len(tools), ("?", slot.name, None), _row("ask"))
        for offset, (kind, text) in enumerate((("confirm", "Shall I go ahead?"), ("report", "Done."), ("refuse", "I cannot do that."))):
            add(text, len(tools) + 2 + offset, (kind, "", None), _row(kind))
        self.rows: NDArray[np.float32] = np.array(rows, np.float32)
        self.tools: NDArray[np.int64] = np.array(numbers, np.int64)
        self.variants: NDArray[np.int64] = np.array(variants, np.int64)


def _shape(number: int, tool: ToolSpec, index: CatalogueWords) -> _Shape:
    required, optional = [], []
    for name, schema in tool.properties.items():
        plain = plain_schema(schema)
        constants = (True, False) if plain.get("type") == "boolean" else tuple(plain.get("enum", ()))
        (required if name in tool.required else optional).append(_Slot(name, index.types[tool.name][name], constants))
    types = frozenset(slot.type for slot in required + optional if not slot.constants)
    return _Shape(number, tool.name, tuple(required), tuple(optional), types)


def _word(shape: _Shape, picked: Sequence[Any], slot: _Slot | None, item: Any) -> tuple[str, Any]:
    """The parameter and constant that tell a call's variant apart from the tool's others."""
    word, constant = "", None
    for needed, choice in zip(shape.required, picked, strict=True):
        if needed.constants:
            word, constant = needed.name, choice
    if slot is not None:
        word = slot.name
        if slot.constants:
            constant = item
    return word, constant


def _row(kind: str, shape: _Shape | None = None, optional: bool = False, constant: Any = None) -> list[float]:
    row = [0.0] * _WORDS_AT
    row[0] = 1.0
    row[1 + KINDS.index(kind)] = 1.0
    if shape is not None:
        row[7] = len(shape.required) / 3
        row[8] = float(optional)
    if constant is True:
        row[9] = 1.0
    elif constant is False:
        row[10] = 1.0
    return row


def _marks(value: Value) -> tuple[tuple[int, float], ...]:
    marks: list[tuple[int, float]] = []
    if value.source == "request":
        marks += [(11, 0.5), (22 if value.literal <= 0 else 23, 1.0)]
    elif value.source == "user":
        marks.append((12, 0.5))
    else:
        marks.append((13, 0.5))
        if value.rank == 0:
            marks.append((15, 1.0))
        if value.rows == 1:
            marks.append((16, 1.0))
        if value.rank == value.rows - 1:
            marks.append((24, 1.0))
    place = _PREPOSITIONS.get(value.before)
    if place is not None:
        marks.append((17 + place, 1.0))
    return tuple(marks)


class CandidateList:
    """The growing list of candidates of one request, with their static features.

    Rows from ``count`` on are unused. The order of appearance says nothing of the task to a policy, since the interface
    shuffles it at every step.

    Attributes:
        count: How many candidates there are.
        static: Their static features, shape ``(capacity, STATIC)``.
        tools: Numbers of their tools, shape ``(capacity,)``.
        variants: Their rows in the catalogue's words, shape ``(capacity,)``.
        steps: The agent turns in which the newest of their values appeared, shape ``(capacity,)``.
        overflow: Candidates left out for lack of room.
    """

    def __init__(self, index: CatalogueWords, typed: Typed, capacity: int) -> None:
        """Makes an empty list.

        Args:
            index: The catalogue's words.
            typed: Its typed parameters.
            capacity: The most candidates held.
        """
        self._index = index
        self._typed = typed
        self._capacity = capacity
        self._report = index.variants[("report", "", None)]
        self._tell = len(typed.shapes) + 1
        self.count = 0
        self.static: NDArray[np.float32] = np.zeros((capacity, STATIC), np.float32)
        self.tools: NDArray[np.int64] = np.zeros(capacity, np.int64)
        self.variants: NDArray[np.int64] = np.zeros(capacity, np.int64)
        self.steps: NDArray[np.int64] = np.zeros(capacity, np.int64)
        self.overflow = 0
        self._recipes: list[Any] = []
        self._told: set[Any] = set()
        self._values: dict[str, list[_Held]] = {}
        self._known: set[Any] = set()
        self._names: list[Any] = []
        self._seen: dict[int, tuple[frozenset[Any], int]] = {}
        self._uses: dict[int, list[int]] = {}
        self._table: NDArray[np.float32] = np.zeros((0, 0), np.float32)
        self._row = 0
        self._number = 0
        self._fits: dict[str, list[_Held]] = {}
        self._rows: list[list[float]] = []
        self._new: list[tuple[int, int, int]] = []

    def turn(self, place: int) -> AssistantTurn:
        """What choosing the candidate at ``place`` sends to the world."""
        recipe = self._recipes[place]
        if isinstance(recipe, str):
            return AssistantTurn(message=recipe)
        if isinstance(recipe, Value):
            said = str(recipe.value).lower() if isinstance(recipe.value, bool) else str(recipe.value)
            return AssistantTurn(message=f"The {recipe.key.replace('_', ' ')} is {said}.")
        pairs = [*zip(recipe.shape.required, recipe.picked, strict=True), *([(recipe.slot, recipe.item)] if recipe.slot else [])]
        arguments = {slot.name: item.value.value if isinstance(item, _Held) else item for slot, item in pairs}
        return AssistantTurn(calls=(ToolCall(recipe.shape.name, arguments),))

    def entry(self, place: int) -> Candidate:
        """The candidate at ``place``."""
        return Candidate(self.turn(place), int(self.tools[place]), int(self.variants[place]), int(self.steps[place]))

    def start(self, request: str, step: int, words_hidden: bool) -> None:
        """Forgets everything and begins with a request.

        Args:
            request: The user's words.
            step: The agent turn after which it came.
            words_hidden: Leave all features of words at 0 (the blind baseline).
        """
        typed = self._typed
        self._told.clear()
        self._values = {}
        self._known.clear()
        self._fits.clear()
        self._seen.clear()
        self._uses.clear()
        self._number = 0
        self._hidden = words_hidden
        self._table = (
            np.zeros((self._index.size, OVERLAPS + EMBEDDING), np.float32) if words_hidden else self._index.features(request)
        )
        count = self.count = min(len(typed.fixed), self._capacity)
        self.overflow = len(typed.fixed) - count
        self._recipes = typed.fixed[:count]
        self.static[:count, :_WORDS_AT] = typed.rows[:count]
        self.static[:count, _WORDS_AT:] = self._table[typed.variants[:count]]
        self.tools[:count] = typed.tools[:count]
        self.variants[:count] = typed.variants[:count]
        self.steps[:count] = step
        literals = self._literals(request, "request", step)
        self._names = [value.canonical for value in literals]
        self._extend(literals, step)

    def heard(self, reply: str, step: int) -> None:
        """Takes in what the user answered."""
        self._extend(self._literals(reply, "user", step), step)

    def returned(self, value: Any, step: int) -> None:
        """Takes in what a tool returned, and offers its fields as answers."""
        rows = []
        given = list(rows_of(value))
        count = len(given)
        for rank, row in enumerate(given):
            held = frozenset(row_canonicals(row))
            rows.append((-self._matches(held), rank, row, held))
        # Rows that hold what the request names come first; the rest keep the tool's order.
        rows.sort(key=lambda item: item[:2])
        if rows and rows[0][0]:
            # The rows that fit best tell more of what the request speaks of: a person's number finds the person's messages.
            best = rows[0][0]
            told = [
                canonical(item)
                for other, _, row, _ in rows
                if other == best
                for key, item in row.items()
                if isinstance(item, str) and field_type(key, item) in ("phone", "email")
            ]
            self._learn(told)
        self.overflow += max(0, len(rows) - _ROWS_KEPT)
        found = []
        for other, rank, row, held in rows[:_ROWS_KEPT]:
            self._row += 1
            self._seen[self._row] = held, -other
            for key, item in row.items():
                if not isinstance(item, str | int | float) or item == "":
                    continue
                kind, form = field_type(key, item), canonical(item)
                known = (kind, form) in self._known
                told_ = kind.startswith("id:") or (key, form) in self._told
                if known and told_:
                    continue
                value_ = Value(form, item, kind, key, "return", self._row, -other, rank, count, step=step)
                if not told_:
                    self._told.add((key, form))
                    self._answer(value_)
                if not known:
                    found.append(value_)
        self._extend(found, step)

    def _matches(self, held: frozenset[Any]) -> int:
        """How many of the values that the request speaks of a row holds."""
        return sum(
            name in held or (isinstance(name, str) and any(isinstance(item, str) and name in item for item in held))
            for name in self._names
        )

    def _learn(self, told: Sequence[Any]) -> None:
        """Adds to what the request speaks of, and looks at the rows that were seen before in its light."""
        known = len(self._names)
        self._names.extend(item for item in dict.fromkeys(told) if item not in self._names)
        del self._names[max(known, 12) :]
        if len(self._names) == known:
            return
        for row, (held, before) in self._seen.items():
            matches = self._matches(held)
            if matches != before:
                self._seen[row] = held, matches
                self.static[self._uses.get(row, []), 14] = 0.5 * min(matches, 2)

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

    def _extend(self, values: Sequence[Value], step: int) -> None:
        """Takes values into the pool, and offers the calls that they ground."""
        first = self._number
        fresh = set()
        for value in values:
            key = (value.type, value.canonical)
            if key not in self._known:
                self._known.add(key)
                self._values.setdefault(value.type, []).append(_Held(self._number, value, _marks(value)))
                self._number += 1
                fresh.add(value.type)
        if fresh:
            self._fits.clear()
            texts = "datetime" in fresh or "text" in fresh
            for shape in self._typed.shapes:
                if shape.types & fresh or (texts and any(kind == "text" or kind.startswith("any:") for kind in shape.types)):
                    self._calls(shape, first)
        self._flush()

    def _fitting(self, slot: _Slot) -> list[_Held]:
        known = self._fits.get(slot.type)
        if known is not None:
            return known
        exact = self._values.get(slot.type, [])
        other = self._values.get("datetime" if slot.type == "text" else "text", [])
        if other and (slot.type == "text" or slot.type.startswith("any:")):
            held = {item.value.canonical for item in exact}
            exact = exact + [item for item in other if accepts(slot.type, item.value) and item.value.canonical not in held]
        if len(exact) > _VALUES_PER_SLOT:
            self.overflow += len(exact) - _VALUES_PER_SLOT
            exact = exact[:4] + exact[-(_VALUES_PER_SLOT - 4) :]
        self._fits[slot.type] = exact
        return exact

    def _calls(self, shape: _Shape, first: int) -> None:
        """Offers the calls of a tool that use a value of number ``first`` or later."""
        choices: list[Sequence[Any]] = []
        newer = False
        for slot in shape.required:
            choice: Sequence[Any] = slot.constants or self._fitting(slot)
            if not choice:
                return
            choices.append(choice)
            newer = newer or (not slot.constants and any(item.number >= first for item in choice))
        extras: list[tuple[_Slot | None, Any]] = []
        fresh: list[tuple[_Slot | None, Any]] = []
        for slot in shape.optional:
            if slot.constants:
                extras.extend((slot, item) for item in slot.constants)
            else:
                fitting = self._fitting(slot)
                extras.extend((slot, item) for item in fitting)
                fresh.extend((slot, item) for item in fitting if item.number >= first)
        if not newer and not fresh:
            return
        made = 0
        for picked in product(*choices):
            whole = newer and any(type(item) is _Held and item.number >= first for item in picked)
            for slot, item in [(None, None), *extras] if whole else fresh:
                if made >= _CALLS_PER_TOOL:
                    self.overflow += 1
                    return
                self._call(shape, picked, slot, item)
                made += 1

    def _call(self, shape: _Shape, picked: tuple[Any, ...], slot: _Slot | None, item: Any) -> None:
        if len(self._recipes) >= self._capacity:
            self.overflow += 1
            return
        word, constant = _word(shape, picked, slot, item)
        row = _row("call", shape, slot is not None, constant)
        step, source = 0, -1
        for choice in (*picked, item):
            if type(choice) is _Held:
                for column, amount in choice.marks:
                    row[column] += amount
                value = choice.value
                step = max(step, value.step)
                if value.row >= 0:
                    if value.row == source:
                        row[25] = 1.0
                    source = value.row
                    row[14] = max(row[14], 0.5 * min(self._seen[source][1], 2))
                    self._uses.setdefault(source, []).append(len(self._recipes))
        self._recipes.append(_Recipe(shape, picked, slot, item))
        self._rows.append(row)
        self._new.append((shape.number, self._index.variants.get((shape.name, word, constant), self._report), step))

    def _answer(self, value: Value) -> None:
        if len(self._recipes) >= self._capacity:
            self.overflow += 1
            return
        row = _row("tell", None, False, value.value if isinstance(value.value, bool) else None)
        for column, amount in _marks(value):
            row[column] += amount
        row[14] = 0.5 * min(self._seen[value.row][1], 2)
        self._uses.setdefault(value.row, []).append(len(self._recipes))
        self._recipes.append(value)
        self._rows.append(row)
        self._new.append((self._tell, self._index.variants.get(("=", value.key, None), self._report), value.step))

    def _flush(self) -> None:
        """Writes the features of what was offered since the last time."""
        if not self._rows:
            return
        first, last = self.count, self.count + len(self._rows)
        numbers = np.array(self._new, np.int64)
        np.minimum(np.array(self._rows, np.float32), 1.0, out=self.static[first:last, :_WORDS_AT])
        self.static[first:last, _WORDS_AT:] = self._table[numbers[:, 1]]
        self.tools[first:last], self.variants[first:last], self.steps[first:last] = numbers.T
        self.count = last
        self._rows, self._new = [], []

    def fork(self) -> CandidateList:
        """An independent copy."""
        other = object.__new__(CandidateList)
        other.__dict__.update(self.__dict__)
        for name in ("static", "tools", "variants", "steps"):
            setattr(other, name, getattr(self, name).copy())
        other._recipes = list(self._recipes)
        other._seen = dict(self._seen)
        other._uses = {row: list(places) for row, places in self._uses.items()}
        other._told = set(self._told)
        other._names = list(self._names)
        other._known = set(self._known)
        other._values = {kind: list(values) for kind, values in self._values.items()}
        other._fits = dict(self._fits)
        other._rows, other._new = [], []
        return other
