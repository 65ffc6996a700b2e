"""Reading a request against a tool catalogue, and chaining back from a goal to what it needs.

Everything here is general: names, descriptions, schemas, the request's words through an everyday lexicon, and the
types of the values it names. No tool, table or task of any world is mentioned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import log
from typing import Any, NamedTuple

from dynsteer_gym.blueprint.graph import Operation, OperationKind, Role, RoleSource
from dynsteer_gym.kinds import field_type, literal_type, parameter_type, plain_schema, return_fields
from dynsteer_gym.language import delexicalise, stem, words
from dynsteer_gym.lexicon import IMPERATIVES, VERBS, concepts, weighted
from dynsteer_gym.task import ToolSpec

__all__ = ["Catalogue", "Node", "Request", "Slot", "ToolReading", "chain", "read_request"]

HELD = "<return>"
"""Pseudo-parameter of a call's operation: what it returned holds this value."""
_READ_VERBS = frozenset(("search", "get", "convert"))
_SWITCHES = frozenset(("on", "enabled", "enable", "active", "activate", "state", "status", "value", "turned"))
_CONSENT = re.compile(
    r"\bask (?:the )?user (?:before|first|for)\b|\b(?:user|customer)['’]?s? (?:explicit |prior )?(?:confirmation|consent|approval)\b",
    re.IGNORECASE,
)
_LASTING = re.compile(r"\b(?:undone|undo|irreversibl\w*|permanent\w*)\b", re.IGNORECASE)


class Slot(NamedTuple):
    """A value that the request names.

    Attributes:
        key: Its role key, ``r0/<type>:<index>``.
        type: Its coarse type.
        before: The word before it, lower case.
    """

    key: str
    type: str
    before: str


@dataclass(frozen=True)
class ToolReading:
    """What name, description and schemas say about a tool.

    Attributes:
        spec: The tool.
        verbs: Action concepts of its name.
        nouns: Other concepts of its name.
        described: Concepts of name and description.
        reads: It looks something up and changes nothing.
        lasting: What it does cannot be undone.
        types: Coarse type by parameter.
        fields: Coarse type by field of its return.
        consent: Its description says that the user is to be asked before.
        switch: Its boolean parameter that turns something on and off, or ``""``.
    """

    spec: ToolSpec
    verbs: frozenset[str]
    nouns: frozenset[str]
    described: frozenset[str]
    reads: bool
    lasting: bool
    consent: bool
    types: Mapping[str, str]
    fields: Mapping[str, str]
    switch: str


class Catalogue:
    """The readings of a tool catalogue, with the rarity of each concept."""

    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        """Reads the tools.

        Args:
            tools: The catalogue.
        """
        self.tools = {tool.name: _read_tool(tool) for tool in tools}
        holding: dict[str, int] = {}
        for reading in self.tools.values():
            for concept in reading.nouns:
                holding[concept] = holding.get(concept, 0) + 1
        count = max(len(self.tools), 1)
        self._rarity = {concept: log(1 + count / number) for concept, number in holding.items()}
        self._common = log(1 + count)

    def rarity(self, concept: str) -> float:
        """``log(1 + N / n)``: how telling a concept is among the tools' names."""
        return self._rarity.get(concept, self._common)

    def producers(self, kind: str, name: str) -> list[tuple[str, str]]:
        """``(tool, field)`` pairs of lookups that return a value for a parameter, best first.

        Args:
            kind: The parameter's coarse type.
            name: Its name; an id's kind holds the name that it is produced under.
        """
        found = []
        for tool, reading in self.tools.items():
            if not reading.reads or name in reading.spec.required:
                continue  # A look-up that needs the very value gives none.
            for key, own in reading.fields.items():
                if own == kind:
                    ident = kind.startswith("id:")
                    about = ident and not set(concepts(key.removesuffix("_id"))) & reading.nouns
                    found.append((key != name and not ident, about, len(reading.spec.required), len(reading.fields), tool, key))
        return [(tool, key) for *_, tool, key in sorted(found)]


def _read_tool(tool: ToolSpec) -> ToolReading:
    parts = words(tool.name)
    head = set(concepts(parts[0])) if parts else set()
    rest = " ".join(parts[1:])
    if not head & VERBS:
        # A name that tells nothing: the description's first sentence begins with the deed, as a rule.
        told = words(tool.description.partition(".")[0])
        own = set(concepts(told[0])) if told else set()
        if own & VERBS:
            head, rest = own, f"{' '.join(parts)} {' '.join(told[1:])}"
    types = {name: parameter_type(name, schema) for name, schema in tool.properties.items()}
    fields = {
        name: "bool" if plain_schema(schema).get("type") == "boolean" else field_type(name, _example(schema))
        for name, schema in return_fields(tool.returns).items()
    }
    switch = next((name for name, kind in types.items() if kind == "bool" and set(words(name)) & _SWITCHES), "")
    verbs = head & VERBS
    if switch:
        verbs |= {"enable", "disable"}
    nouns = set(concepts(rest)) - VERBS
    told = words(tool.description)[:1]
    gets = bool(told) and bool(set(concepts(told[0])) & _READ_VERBS) and not head & {"complete", "enable", "disable"}
    reads = (bool(head & _READ_VERBS) or gets) and not head & {"create", "send", "delete"}
    return ToolReading(
        tool,
        frozenset(verbs),
        frozenset(nouns),
        frozenset(concepts(f"{tool.name} {tool.description}")),
        reads,
        not reads and (bool(_LASTING.search(tool.description)) or bool(head & {"delete", "send"})),
        not reads and bool(_CONSENT.search(tool.description)),
        types,
        fields,
        switch,
    )


def _example(schema: Mapping[str, Any]) -> Any:
    kind = plain_schema(schema).get("type")
    return 0 if kind in ("integer", "number") else ""


@dataclass(frozen=True)
class Request:
    """A request as read: its words, its values, and whether it asks for something to be told.

    Attributes:
        template: The words with values replaced by ``<type:index>``.
        slots: The values in order, each once.
        weights: Concepts of its words; a word of several meanings shares its weight among them.
        order: Action concepts in order of appearance.
        asks: It wants to be told something.
        yes_no: It wants to know whether something holds.
        constant: On (``True``), off (``False``), or neither.
        relative: It names a time relative to the present or to another one, or a length of time.
    """

    template: str
    slots: tuple[Slot, ...]
    weights: Mapping[str, float]
    order: tuple[str, ...]
    asks: bool
    yes_no: bool
    constant: bool | None
    relative: bool = False
    literals: Mapping[str, Any] = field(default_factory=dict)


_POLITE = re.compile(r"^(?:please\b|kindly\b|(?:can|could|would|will) you(?: please)?\b|i(?:['’]d| would) like you to\b|i (?:want|need|would like|have) to\b(?! know)|i(?:['’]d| would) like to\b(?! know)|i(?:['’]m| am) (?:looking|trying|hoping) to\b|(?:hi|hello|hey)(?: there)?[!,. ]+|[\s,])+")
_ASKS = re.compile(
    r"^(?:what|when|where|which|who|whose|how|is|are|was|do|does|did|has|have"
    r"|(?:tell|show|give|read|find) me|look up|check (?:if|whether|the|what|which|when)|see (?:if|whether)|find (?:out|the)"
    r"|(?:at|on|in|from|to) (?:what|which)|i (?:need|want) (?:to know|the current)|let me know)\b"
)
_RELATIVE = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|mon|tues|wednes|thurs|fri|satur|sun)(?:day)?\b|\b(?:next|this|last) (?:week|month|year)\b"
    r"|\b(?:minutes?|hours?|days?|weeks?|months?) (?:from now|later|earlier|before|after|ago)\b"
    r"|\b(?:in|by|for|within) (?:<number:\d+>|an?|one|two|three) (?:minutes?|hours?|days?|weeks?|months?)\b",
    re.IGNORECASE,
)
_YES_NO = re.compile(r"^(?:is|are|was|do|does|did|has|have)\b|[,;] is\b|\b(?:if|whether)\b")


@lru_cache(maxsize=2048)
def read_request(text: str, prefix: str = "r0") -> Request:
    """Reads a request.

    Args:
        text: The user's words.
        prefix: Which request of the talk it is, for role keys.
    """
    template, literals = delexicalise(text)
    slots: dict[str, Slot] = {}
    values: dict[str, Any] = {}
    for literal, mark in zip(literals, re.finditer(r"<(\w+:\d+)>", template), strict=True):
        key = f"{prefix}/{mark.group(1)}"
        before = template[: mark.start()].split()
        if key not in slots:
            slots[key] = Slot(key, literal_type(literal.type), before[-1].lower().strip(",:(") if before else "")
            values[key] = literal.value
    plain = re.sub(r"<\w+:\d+>", " ", template)
    weights: dict[str, float] = {}
    order: list[str] = []
    lowered = template.strip().lower()
    bare = _POLITE.sub("", lowered).strip()
    command = IMPERATIVES.get((words(bare) or ("",))[0])
    for concept, weight in ((command, 1.0), *weighted(plain)) if command else weighted(plain):
        weights[concept] = max(weights.get(concept, 0.0), weight)
        if concept in VERBS and concept not in order:
            order.append(concept)
    asks = bool(_ASKS.search(bare)) or (bare == lowered and lowered.endswith("?"))
    said = set(words(plain))
    constant = True if "on" in said and "off" not in said else False if "off" in said and "on" not in said else None
    if constant is None and not asks and said & {"enable", "activate", "disable", "deactivate"}:
        constant = bool(said & {"enable", "activate"})
    return Request(
        template,
        tuple(slots.values()),
        weights,
        tuple(order),
        asks,
        asks and bool(_YES_NO.search(bare)),
        constant,
        bool(_RELATIVE.search(template)),
        values,
    )


@dataclass(frozen=True)
class Node:
    """A node of a candidate graph: one operation, or alternatives of which one must be done.

    Attributes:
        operations: The alternatives, the plain one first.
        goal: One sentence on what is to be reached.
        after: Places of the nodes that must come before, in the same candidate.
    """

    operations: tuple[Operation, ...]
    goal: str
    after: tuple[int, ...] = ()


class _Need(NamedTuple):
    bindings: dict[str, Role]
    after: list[int]
    asked: list[str]
    used: set[str]


def chain(catalogue: Catalogue, request: Request, tool: str, wanted: str | None = None) -> tuple[list[Node], list[str]]:
    """Chains back from a goal to the lookups and questions it needs, and on to the message that ends the request.

    Args:
        catalogue: The tools.
        request: The request.
        tool: The tool that does, or tells, what is asked for.
        wanted: The field to be told, or ``None`` where something is to be done.

    Returns:
        The nodes in an order that respects ``after``, and the parameters that only the user can give.
    """
    nodes: list[Node] = []
    free = {slot.key: slot for slot in request.slots}
    reading = catalogue.tools[tool]
    if wanted is not None:
        place = _lookup(catalogue, request, nodes, tool, free, set())
        told = Operation(OperationKind.MESSAGE, "answer", ((wanted, Role(RoleSource.PRODUCER, f"{tool}.{wanted}")),))
        ends = (told, _REFUSAL) if request.slots else (told,)
        nodes.append(Node(ends, f"Tell the user the {wanted.replace('_', ' ')}.", (place,)))
        return nodes, []
    need = _needs(catalogue, request, nodes, reading, free)
    goal = Operation(OperationKind.CALL, tool, tuple(sorted(need.bindings.items())))
    options: list[Operation] = [goal]
    refusable = False
    for name in need.asked:
        question = Operation(OperationKind.MESSAGE, "question", ((name, Role(RoleSource.FREE)),))
        nodes.append(Node((question,), f"Ask the user for the {name.replace('_', ' ')}."))
        need.after.append(len(nodes) - 1)
        refusable = True
    if need.asked:
        options.append(_REFUSAL)
    else:
        for name, role in need.bindings.items():
            # What a lookup should give but may not, the user can be asked for.
            if role.source == RoleSource.PRODUCER and not reading.types[name].startswith("id:"):
                options.append(Operation(OperationKind.MESSAGE, "question", ((name, Role(RoleSource.FREE)),)))
                refusable = True
    nodes.append(Node(tuple(options), f"{reading.spec.description.split('.')[0]}, as asked.", tuple(dict.fromkeys(need.after))))
    finisher = _finisher(catalogue, reading)
    if finisher is not None:
        bound = tuple((name, Role(RoleSource.PRODUCER, f"{tool}.{name}")) for name in finisher.spec.required)
        done = Operation(OperationKind.CALL, finisher.spec.name, bound)
        nodes.append(Node((done,), f"{finisher.spec.description.split('.')[0]}, as asked.", (len(nodes) - 1,)))
    end = (_REPORT, _REFUSAL) if refusable else (_REPORT,)
    nodes.append(Node(end, "Tell the user how it ended.", (len(nodes) - 1,)))
    return nodes, need.asked


_CONFIRMS = frozenset((stem("confirm"), stem("approve"), stem("submit"), stem("finalise"), stem("finalize")))


def _finisher(catalogue: Catalogue, reading: ToolReading) -> ToolReading | None:
    """The second step of what is done in two: a tool that confirms what the first one has made."""
    for other in catalogue.tools.values():
        required = other.spec.required
        if other is reading or other.reads or not required:
            continue
        first = words(other.spec.name)[:1] + words(other.spec.description)[:1]
        if {stem(word) for word in first} & _CONFIRMS and all(
            other.types[name].startswith("id:") and name in reading.fields for name in required
        ):
            return other
    return None


_REPORT = Operation(OperationKind.MESSAGE, "report")
_REFUSAL = Operation(OperationKind.MESSAGE, "refusal")


def _needs(catalogue: Catalogue, request: Request, nodes: list[Node], reading: ToolReading, free: dict[str, Slot]) -> _Need:
    """Sources for the parameters of the tool that does what is asked for."""
    need = _Need({}, [], [], set())
    required = list(reading.spec.required)
    ids = [name for name in required if reading.types[name].startswith("id:")]
    producers = {name: catalogue.producers(reading.types[name], name) for name in ids}
    kept: set[str] = set()
    for name in ids:
        if producers[name]:
            identifying = _identifying(catalogue, producers[name][0][0], free)
            kept |= {identifying.key} if identifying is not None else set()
    for name in required:
        if name in ids:
            continue
        role = _constant(request, reading, name) or _literal(reading.types[name], free, kept, name)
        if role is not None:
            need.bindings[name] = role
            free.pop(role.key, None)
    for name, kind in reading.types.items():
        if name not in required and kind != "bool":
            role = _literal(kind, free, kept, name)
            if role is not None:
                need.bindings[name] = role
                free.pop(role.key, None)
    for name in required:
        if name in need.bindings:
            continue
        kind = reading.types[name]
        found = producers[name] if name in ids else catalogue.producers(kind, name) if kind in ("phone", "email") else []
        usable = [pair for pair in found if _reachable(catalogue, pair[0], free, set())]
        # Of equals, the one that takes a value of the request.
        usable.sort(key=lambda pair: (pair[1] != name, not _takes(catalogue.tools[pair[0]], free)))
        if usable or (name in ids and found):
            tool, key = (usable or found)[0]
            need.after.append(_lookup(catalogue, request, nodes, tool, free, set()))
            need.bindings[name] = Role(RoleSource.PRODUCER, f"{tool}.{key}")
        elif name in ids or kind == "bool" or (kind == "datetime" and request.relative):
            need.bindings[name] = Role(RoleSource.FREE)  # A time that the request tells in its own way is worked out.
        else:
            need.bindings[name] = Role(RoleSource.USER, name)
            need.asked.append(name)
    return need


def _constant(request: Request, reading: ToolReading, name: str) -> Role | None:
    if reading.types[name] == "bool":
        return None if request.constant is None else Role(RoleSource.CONSTANT, "true" if request.constant else "false")
    if reading.types[name] == "enum":
        said = {stem(word) for word in words(request.template)}
        for option in plain_schema(reading.spec.properties[name]).get("enum", ()):
            if isinstance(option, str) and {stem(word) for word in words(option)} <= said:
                return Role(RoleSource.CONSTANT, f'"{option}"')
    return None


def _fits(kind: str, slot: Slot) -> bool:
    return kind == slot.type or (kind.startswith("any:") and slot.type in ("text", "code"))


def _literal(kind: str, free: Mapping[str, Slot], kept: set[str], name: str) -> Role | None:
    """A value of the request for a parameter; one that stands right after the parameter's own word comes first."""
    fitting = [slot for key, slot in free.items() if key not in kept and _fits(kind, slot)]
    named = frozenset(concepts(name))
    best = min(fitting, key=lambda slot: not named & set(concepts(slot.before)), default=None)
    return None if best is None else Role(RoleSource.LITERAL, best.key)


_IDENTIFY = {"name": 0, "text": 1}


def _identifying(catalogue: Catalogue, tool: str, free: Mapping[str, Slot]) -> Slot | None:
    """The value that a lookup goes by: names before titles before anything else."""
    reading = catalogue.tools[tool]
    able = [slot for slot in free.values() if any(_fits(kind, slot) for kind in reading.types.values())]
    return min(able, key=lambda slot: _IDENTIFY.get(slot.type, 2), default=None)


def _takes(reading: ToolReading, free: Mapping[str, Slot]) -> bool:
    return any(_fits(kind, slot) for slot in free.values() for kind in reading.types.values())


def _reachable(catalogue: Catalogue, tool: str, free: Mapping[str, Slot], seen: set[str]) -> bool:
    """Whether a lookup can be fed from the request, directly or through other lookups."""
    reading = catalogue.tools[tool]
    if not reading.types or _takes(reading, free):
        return True
    seen = seen | {tool}
    return any(
        other not in seen and _reachable(catalogue, other, free, seen)
        for name, kind in reading.types.items()
        if kind == "phone" or kind.startswith("id:")
        for other, _ in catalogue.producers(kind, name)
    )


def _other_lookups(catalogue: Catalogue, tool: str, free: Mapping[str, Slot]) -> list[Operation]:
    """Other tools that return the same ids, fed from the request or with nothing: they do as well."""
    ids = {(name, kind) for name, kind in catalogue.tools[tool].fields.items() if kind.startswith("id:")}
    found = []
    for other, reading in catalogue.tools.items():
        if other == tool or not reading.reads or not ids & set(reading.fields.items()):
            continue
        fed = [(name, Role(RoleSource.LITERAL, slot.key)) for name, kind in reading.types.items() for slot in free.values() if _fits(kind, slot)]
        if all(name in {key for key, _ in fed} for name in reading.spec.required):
            found += [Operation(OperationKind.CALL, other, (binding,)) for binding in fed]
            found += [] if reading.spec.required else [Operation(OperationKind.CALL, other)]
    return found


def _lookup(
    catalogue: Catalogue, request: Request, nodes: list[Node], tool: str, free: dict[str, Slot], seen: set[str]
) -> int:
    """Adds the lookup ``tool`` and what it needs itself; returns its place among the nodes."""
    reading = catalogue.tools[tool]
    options: list[Operation] = []
    after: list[int] = []
    for name, kind in reading.types.items():
        for slot in free.values():
            if _fits(kind, slot):
                role = Role(RoleSource.LITERAL, slot.key)
                options.append(Operation(OperationKind.CALL, tool, ((name, role),)))
                options.append(Operation(OperationKind.CALL, tool, ((HELD, role),)))
    fitting = {key for option in options for _, role in option.bindings for key in (role.key,)}
    left = {key: slot for key, slot in free.items() if key not in fitting}
    seen = seen | {tool}
    for name, kind in reading.types.items():
        if not left or not (kind == "phone" or kind.startswith("id:")):
            continue
        for other, key in catalogue.producers(kind, name):
            if other not in seen and any(_fits(own, slot) for slot in left.values() for own in catalogue.tools[other].types.values()):
                after.append(_lookup(catalogue, request, nodes, other, left, seen))
                options.append(Operation(OperationKind.CALL, tool, ((name, Role(RoleSource.PRODUCER, f"{other}.{key}")),)))
                break
    options += _other_lookups(catalogue, tool, free)
    unique = tuple(dict.fromkeys(options)) if any(option.name == tool for option in options) else (Operation(OperationKind.CALL, tool), *options)
    nodes.append(Node(unique, f"{reading.spec.description.split('.')[0]}, for what the request names.", tuple(dict.fromkeys(after))))
    return len(nodes) - 1
