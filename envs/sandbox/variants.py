"""Variants of a scenario: distraction tools, scrambled catalogues, missing information. Hidden side.

Source: DynSTEER appendix A, table 4 (canonical, distraction tools, scrambled arguments and descriptions, insufficient
information).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from dynsteer_gym.envs.sandbox.draw import Piece, Plan, Taken
from dynsteer_gym.envs.sandbox.goals import Goal
from dynsteer_gym.language import MessageAct, message_act, stem, words
from dynsteer_gym.task import ToolSpec

__all__ = ["SCRAMBLES", "Scramble", "likeness", "scramble", "without_fact"]

SCRAMBLES = ("tool_names", "argument_names", "argument_order", "descriptions", "types")
"""What can be scrambled. Names and descriptions are never scrambled together: something has to tell what a tool does."""


@dataclass(frozen=True, slots=True)
class Scramble:
    """A bijection between the catalogue as it is and as it is shown.

    Attributes:
        parts: What is scrambled, of :data:`SCRAMBLES`.
        specs: Specs as shown, by the tool's own name.
        names: Own name by shown name.
        arguments: Own argument name by shown one, by the tool's own name.
        shown: Shown argument name by own one, by the tool's own name.
        kinds: Types of arguments whose shown type is ``string``, by the tool's own name.
    """

    parts: tuple[str, ...]
    specs: Mapping[str, ToolSpec]
    names: Mapping[str, str]
    arguments: Mapping[str, Mapping[str, str]]
    shown: Mapping[str, Mapping[str, str]]
    kinds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def show(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """A call as an agent writes it that sees the scrambled catalogue.

        Args:
            name: The tool's own name.
            arguments: By own names.
        """
        if name not in self.specs:
            return name, dict(arguments)
        shown, kinds = self.shown[name], self.kinds.get(name, {})
        return self.specs[name].name, {
            shown.get(key, key): _written(value) if key in kinds else value for key, value in arguments.items()
        }

    def read(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by their own names, in their own types.

        Args:
            name: The tool's own name.
            arguments: As shown; unknown names stay as they are.
        """
        own, kinds = self.arguments[name], self.kinds.get(name, {})
        found = {}
        for key, value in arguments.items():
            # An own name is no name here, so it must not pass for one.
            plain = own.get(key, key if key not in self.shown[name] else f"{key} ")
            found[plain] = _typed(value, kinds[plain]) if plain in kinds else value
        return found


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def _typed(value: Any, kind: str) -> Any:
    """A value given as text, in its own type; text that cannot be read stays and is refused later."""
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, value)
    try:
        return int(text) if kind == "integer" else float(text)
    except ValueError:
        return value


def scramble(specs: Sequence[ToolSpec], parts: Sequence[str], seed: int) -> Scramble:
    """Scrambles a catalogue.

    Args:
        specs: The tools as they are.
        parts: What to scramble, of :data:`SCRAMBLES`.
        seed: Decides how.
    """
    shuffler = Random(seed)
    numbers = shuffler.sample(range(1, len(specs) + 1), len(specs))
    shown_specs, names, arguments, shown, kinds = {}, {}, {}, {}, {}
    for spec, number in zip(specs, numbers, strict=True):
        keys = list(spec.properties)
        new = {key: key for key in keys}
        if "argument_names" in parts:
            places = shuffler.sample(range(1, len(keys) + 1), len(keys))
            new = {key: f"arg_{place}" for key, place in zip(keys, places, strict=True)}
        entries = {key: dict(spec.properties[key]) for key in keys}
        if "descriptions" in parts:
            told = [entries[key].get("description", "") for key in keys]
            for key, text in zip(keys, (*told[1:], *told[:1]), strict=True):
                entries[key]["description"] = text  # Each argument carries its neighbour's.
        if "types" in parts:
            own = {key: _kind(entries[key]) for key in keys}
            kinds[spec.name] = {key: kind for key, kind in own.items() if kind in ("boolean", "integer", "number")}
            for key in keys:
                entries[key] = {"type": "string", "description": entries[key].get("description", "")}
        order = shuffler.sample(keys, len(keys)) if "argument_order" in parts else keys
        parameters = {
            **spec.parameters,
            "properties": {new[key]: entries[key] for key in order},
            **({"required": [new[key] for key in order if key in spec.required]} if spec.required else {}),
        }
        name = f"function_{number:02d}" if "tool_names" in parts else spec.name
        shown_specs[spec.name] = replace(spec, name=name, parameters=parameters)
        names[name] = spec.name
        arguments[spec.name] = {new[key]: key for key in keys}
        shown[spec.name] = new
    return Scramble(tuple(parts), shown_specs, names, arguments, shown, kinds)


def _kind(entry: Mapping[str, Any]) -> str:
    """The type of an argument; an optional one's own type."""
    if "type" in entry:
        return entry["type"]
    return next((option["type"] for option in entry.get("anyOf", ()) if option.get("type") not in (None, "null")), "string")


def likeness(spec: ToolSpec, others: Sequence[ToolSpec]) -> float:
    """How much a tool's words are those of the most similar of some others, in [0, 1]."""
    own = _words(spec)
    return max((len(own & _words(other)) / len(own | _words(other)) for other in others), default=0.0)


def _words(spec: ToolSpec) -> set[str]:
    return {stem(word) for word in (*words(spec.name), *words(spec.description), *spec.properties)}


_READS = ("search", "list", "get", "find", "convert", "shift")


def without_fact(piece: Piece, topic: str) -> tuple[Piece, tuple[str, dict[str, object]] | None]:
    """The request of a user who does not know one thing that is needed: to ask and then to decline is right.

    Args:
        piece: A request with facts.
        topic: The fact that the user does not know.

    Returns:
        The request, and the first call that needs the fact, which is unsupported; ``None`` where it is a look at one of
        several things that a search gives.

    Raises:
        Taken: The plan never asks for it, or does nothing afterwards.
    """
    gone = next(fact for fact in piece.facts if fact.topic == topic)
    plan = _until(piece.plan, gone.keywords)
    rest = [turn for turn in piece.plan[len(plan) :] if not isinstance(turn, str)]
    guess = next((turn for turn in rest if not turn[0].startswith(("search", "list"))), None)
    if guess is None:
        raise Taken("nothing is left out")
    routes = []
    for route in piece.routes:
        try:
            routes.append((*_until(route, gone.keywords), "Without that it cannot be done."))
        except Taken:
            continue
    facts = tuple(replace(fact, answer="", more=()) if fact.topic == topic else fact for fact in piece.facts)
    done = [turn[0] for turn in plan if not isinstance(turn, str)]
    if guess[0] in done:
        raise Taken("it is done before it is asked for")
    return (
        replace(
            piece,
            goal=Goal(declines=topic),
            plan=(*plan, "I cannot do that."),
            routes=tuple(routes),
            facts=facts,
            wants_answer=False,
            checks=(),
            then=(),
            confirms=False,
            failing=(),
            happenings=(),
        ),
        None if topic == "which" and guess[0].startswith(_READS) else guess,
    )


def _until(plan: Plan, keywords: frozenset[str]) -> Plan:
    """A plan up to the question that holds one of the keywords."""
    for place, turn in enumerate(plan):
        if isinstance(turn, str) and message_act(turn) == MessageAct.QUESTION and keywords & {stem(word) for word in words(turn)}:
            return plan[: place + 1]
    raise Taken("it is never asked for")
