"""Candidate synthesis: seven planning heuristics, each with its own reading of what the request is about.

The paper names direct keyword matching and hierarchical filtering; the others are backward chaining from the values
named, feasibility first, semantic retrieval, verb-object frames and a mixture. Source: DynSTEER section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple, Protocol

from dynsteer_gym.blueprint.graph import Minefield, MinefieldKind, OperationKind, RoleSource
from dynsteer_gym.blueprint.planning import Catalogue, Node, Request, ToolReading, chain
from dynsteer_gym.kinds import plain_schema
from dynsteer_gym.lexicon import concepts

__all__ = ["HEURISTICS", "Candidate", "Generator", "HeuristicGenerator"]


@dataclass(frozen=True)
class Candidate:
    """One synthesised graph before validation.

    Attributes:
        heuristic: Which heuristic, or generator, it comes from.
        nodes: Its nodes; ``after`` holds the edges.
        minefields: Its fatal operations.
        tool: The tool it takes for the goal.
    """

    heuristic: str
    nodes: tuple[Node, ...]
    minefields: tuple[Minefield, ...] = ()
    tool: str = ""


_NEAR = 0.75
"""A tool whose reading comes this near to the best one may be what is asked for, and is no hazard."""


class Generator(Protocol):
    """Anything that synthesises candidates; a language model can be one."""

    def candidates(self, catalogue: Catalogue, request: Request) -> Sequence[Candidate]:
        """Candidates for one request; each graph counts as one."""
        ...


class _Signals(NamedTuple):
    """What speaks for a tool (and a field to be told), each about in [0, 1].

    Attributes:
        verb: Its action is among the request's.
        noun: The things in its name that the request speaks of, by rarity.
        described: The same for its description.
        field: The field to be told is what is asked for; for tools that do something, the parameters that are.
        used: Share of the request's values that it, or a lookup before it, takes.
        direct: Share of them that it takes itself.
        missing: Share of its required parameters that nothing gives.
        similar: Likeness of letters (trigrams) between the request and its name and description.
        first: Its action is the first one that the request names.
    """

    verb: float
    noun: float
    described: float
    field: float
    used: float
    direct: float
    missing: float
    similar: float
    first: float


Weights = tuple[float, ...]
HEURISTICS: dict[str, Weights] = {
    #               verb noun desc fld  used dir  miss sim  first
    "keywords":     (2.0, 2.0, 0.0, 1.0, 1.6, 0.2, 1.0, 0.0, 0.0),
    "descriptions": (1.5, 1.5, 1.0, 1.0, 1.6, 0.2, 1.0, 0.0, 0.0),
    "hierarchical": (0.8, 3.0, 0.2, 1.0, 1.6, 0.2, 1.0, 0.0, 0.0),
    "backward":     (1.5, 1.5, 0.2, 1.0, 2.0, 0.5, 1.0, 0.0, 0.0),
    "feasible":     (1.5, 1.5, 0.2, 1.0, 1.6, 0.2, 2.0, 0.0, 0.0),
    "semantic":     (1.2, 1.2, 0.5, 1.0, 1.6, 0.2, 1.0, 1.0, 0.0),
    "frames":       (1.5, 1.5, 0.2, 1.0, 1.6, 0.2, 1.0, 0.0, 1.0),
}  # fmt: skip
"""The heuristics: how much each signal weighs in them."""


class HeuristicGenerator:
    """Synthesises one candidate for each of :data:`HEURISTICS`."""

    def candidates(self, catalogue: Catalogue, request: Request) -> list[Candidate]:
        """One candidate a heuristic, in a fixed order.

        Args:
            catalogue: The tools.
            request: The request.
        """
        options = [
            (tool, wanted, _signals(catalogue, request, reading, wanted))
            for tool, reading in catalogue.tools.items()
            for wanted in _ends(request, reading)
        ]
        if not options:
            return []
        planned: dict[tuple[str, str | None], Candidate] = {}
        found = []
        for name, weights in HEURISTICS.items():
            tool, wanted, _ = max(options, key=lambda option: (_total(option[2], weights), option[0], option[1] or ""))
            if (tool, wanted) not in planned:
                nodes, _ = chain(catalogue, request, tool, wanted)
                planned[tool, wanted] = Candidate(name, tuple(nodes), (), tool)
            plan = planned[tool, wanted]
            best = max(_total(option[2], weights) for option in options)
            near = frozenset(option[0] for option in options if _total(option[2], weights) > best - _NEAR)
            found.append(Candidate(name, plan.nodes, _minefields(catalogue, request, plan.nodes, near), tool))
        return found


def _total(signals: _Signals, weights: Weights) -> float:
    signs = (1, 1, 1, 1, 1, 1, -1, 1, 1)
    return sum(sign * weight * signal for sign, weight, signal in zip(signs, weights, signals, strict=True))


def _ends(request: Request, reading: ToolReading) -> list[str | None]:
    """What a tool can be the end of: a field to be told, or something done."""
    if not request.asks:
        return [] if reading.reads else [None]
    if not reading.reads:
        return []
    return [name for name, kind in reading.fields.items() if not kind.startswith("id:") and (kind == "bool" or not request.yes_no)]


def _signals(catalogue: Catalogue, request: Request, reading: ToolReading, wanted: str | None) -> _Signals:
    weights = request.weights
    verb = max((weights.get(concept, 0.0) for concept in reading.verbs), default=0.0)
    if request.constant is not None and reading.switch and not request.slots:
        verb = max(verb, 1.0)
    noun = _share(catalogue, weights, reading.nouns)
    if wanted is not None:
        parts = frozenset(concepts(wanted))
        field = max((weights.get(part, 0.0) for part in parts), default=0.0) * 0.7 + 0.3 * _share(catalogue, weights, parts)
        if noun == 0 and field == 0:
            field = -1.0
    else:
        named = frozenset(part for name in reading.types for part in concepts(name))
        field = 0.5 * max((weights.get(part, 0.0) for part in named if part not in reading.nouns), default=0.0)
    kinds = set(reading.types.values())
    direct = [slot for slot in request.slots if slot.type in kinds]
    fed = {kind for kind in kinds if kind == "phone" or kind.startswith("id:")}
    lookups = [
        other for name, kind in reading.types.items() if kind in fed for other, _ in catalogue.producers(kind, name)
    ]
    reach = {kind for other in lookups for kind in catalogue.tools[other].types.values()}
    if "phone" in reach:
        reach |= {kind for other, _ in catalogue.producers("phone", "phone_number") for kind in catalogue.tools[other].types.values()}
    slots = max(len(request.slots), 1)
    used = [slot for slot in request.slots if slot.type in kinds or slot.type in reach]
    required = [reading.types[name] for name in reading.spec.required]
    given = {slot.type for slot in request.slots} | {kind for kind in fed if lookups}
    lacking = [
        kind for kind in required if kind not in given and not (kind == "bool" and request.constant is not None)
    ]
    first = 1.0 if request.order and request.order[0] in reading.verbs else 0.0
    return _Signals(
        verb,
        noun,
        _share(catalogue, weights, reading.described),
        field,
        len(used) / slots if request.slots else 1.0 - min(len(required) - ("bool" in required), 1),
        len(direct) / slots,
        len(lacking) / max(len(required), 1),
        _likeness(request.template, f"{reading.spec.name} {reading.spec.description}"),
        first,
    )


def _share(catalogue: Catalogue, weights: Any, nouns: frozenset[str]) -> float:
    """The rarity-weighted share of some concepts that the request speaks of, in [0, 1]."""
    total = sum(catalogue.rarity(concept) for concept in nouns)
    return sum(catalogue.rarity(concept) * weights.get(concept, 0.0) for concept in nouns) / total if total else 0.0


def _trigrams(text: str) -> set[str]:
    plain = " ".join(text.lower().replace("_", " ").split())
    return {plain[place : place + 3] for place in range(len(plain) - 2)}


def _likeness(one: str, other: str) -> float:
    a, b = _trigrams(one), _trigrams(other)
    return len(a & b) / sqrt(len(a) * len(b)) if a and b else 0.0


def _minefields(
    catalogue: Catalogue, request: Request, nodes: Sequence[Node], near: frozenset[str]
) -> tuple[Minefield, ...]:
    """Fatal operations: calls that need a value nobody gave, and lasting changes that nobody asked for."""
    found = []
    wants: set[str] = {operation.name for node in nodes for operation in node.operations if operation.kind == OperationKind.CALL}
    for name, reading in catalogue.tools.items():
        if reading.reads:
            continue
        if reading.consent:
            found.append(Minefield("", MinefieldKind.HAZARD, name, unless_confirmed=True, reason=f"{name} needs the user's consent"))
        if name in wants:
            bound = next(op for node in nodes for op in node.operations if op.kind == OperationKind.CALL and op.name == name)
            guessed = tuple(
                sorted(
                    parameter
                    for parameter, role in bound.bindings
                    if role.source in (RoleSource.PRODUCER, RoleSource.USER) and _telling(reading, parameter)
                )
            )
            if guessed:
                reason = f"{name} needs {', '.join(guessed)}, which neither the user nor a tool has given"
                found.append(Minefield("", MinefieldKind.UNSUPPORTED_CALL, name, ungrounded=guessed, reason=reason))
        elif reading.lasting and not reading.consent and name not in near and not _spoken_of(request, reading):
            reason = f"{name} cannot be undone, and nobody asked for it"
            found.append(Minefield("", MinefieldKind.HAZARD, name, unless_confirmed=True, reason=reason))
    return tuple(found)


def _spoken_of(request: Request, reading: ToolReading) -> bool:
    """Whether the request names both the action and the thing of a tool, so that it may be what is asked for."""
    return any(verb in request.weights for verb in reading.verbs) and any(noun in request.weights for noun in reading.nouns)


def _telling(reading: ToolReading, parameter: str) -> bool:
    """Whether a value of this parameter must have a source: prose may be written freely, a number or an id may not.

    Where the schema tells no type, the parameter's meaning is a guess from its name, too weak to end an episode on.
    """
    kind = reading.types[parameter]
    return kind not in ("text", "bool", "enum") and not kind.startswith("any:") and "type" in plain_schema(reading.spec.properties[parameter])


