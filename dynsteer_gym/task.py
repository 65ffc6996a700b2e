"""What may be seen of a task: the public view that compiler, evaluator, judges and stop rules work from.

Nothing in this module can hold, or lead to, the hidden side of a scenario (its goals, reference milestones,
minefields, expert, name or family). Source: DynSTEER section 3.1, equation 1: ``V_public = (x, A, I0)``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

__all__ = ["TableHeader", "TaskView", "ToolSpec"]


@dataclass(frozen=True)
class ToolSpec:
    """A tool on offer: its name, description and JSON schemas.

    Attributes:
        name: The name that a call must use.
        description: What the tool does, in prose.
        parameters: JSON Schema of type ``object``: ``properties``, ``required``, ``additionalProperties: false``.
        returns: JSON Schema of the value returned on success, or ``None`` where the world gives none.
        returns_inferred: Whether ``returns`` was inferred from the description rather than given by the world.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    returns: Mapping[str, Any] | None = None
    returns_inferred: bool = False

    @cached_property
    def properties(self) -> Mapping[str, Mapping[str, Any]]:
        """The parameters' own schemas by parameter name."""
        return self.parameters.get("properties", {})

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The names of the parameters that a call must give, in schema order."""
        return tuple(self.parameters.get("required", ()))

    def openai(self) -> dict[str, Any]:
        """The tool in OpenAI's ``tools`` format."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": dict(self.parameters)},
        }


@dataclass(frozen=True)
class TableHeader:
    """Public metadata of one table of the world (``I0`` of equation 1).

    Attributes:
        name: The table's name.
        columns: Its column names, in order.
        rows: How many rows it has when the episode starts, or ``None`` where that is not public.
    """

    name: str
    columns: tuple[str, ...]
    rows: int | None = None


@dataclass(frozen=True)
class TaskView:
    """The public task view (equation 1): the instruction, the tool catalogue and public metadata.

    Attributes:
        task_id: An opaque identifier; it says nothing about what is to be done.
        request: The user's request as it now stands (the newest one, in a talk with several).
        tools: The catalogue of tools on offer, in the order shown to the agent.
        tables: Headers of the world's tables.
        max_requests: The most requests that the user may bring in one talk, >= 1.
        request_index: Which request of the talk ``request`` is, from 0.
        policy: Standing instructions shown to the agent (a system prompt), or ``""``.
    """

    task_id: str
    request: str
    tools: tuple[ToolSpec, ...]
    tables: tuple[TableHeader, ...] = ()
    max_requests: int = 1
    request_index: int = 0
    policy: str = ""
    _by_name: dict[str, ToolSpec] = field(init=False, repr=False, compare=False, hash=False, default_factory=dict)

    def tool(self, name: str | None) -> ToolSpec | None:
        """The tool called ``name``, or ``None`` where the catalogue has none of that name."""
        if not self._by_name:
            self._by_name.update({tool.name: tool for tool in self.tools})
        return self._by_name.get(name) if name is not None else None

    @cached_property
    def catalogue_key(self) -> str:
        """A digest of tools, tables and policy: equal for views that differ in the request, or the order of tools, only."""
        return catalogue_key(self.tools, self.tables, self.policy)

    def openai_tools(self) -> list[dict[str, Any]]:
        """The catalogue in OpenAI's ``tools`` format."""
        return [tool.openai() for tool in self.tools]


_KEYS: dict[Any, tuple[Any, str]] = {}


def catalogue_key(tools: tuple[ToolSpec, ...], tables: tuple[TableHeader, ...], policy: str = "") -> str:
    """A digest of a catalogue; the same catalogue object is digested once.

    Worlds share one tuple of tools between many episodes, so identity is tried before content.
    """
    memo = (id(tools), tuple((header.name, header.columns) for header in tables), policy)
    known = _KEYS.get(memo)
    if known is not None and known[0] is tools:
        return known[1]
    body = json.dumps(
        [
            sorted(([t.name, t.description, t.parameters, t.returns] for t in tools), key=lambda entry: str(entry[0])),
            [[h.name, h.columns] for h in tables],
            policy,
        ],
        sort_keys=True,
        default=dict,
    )
    digest = blake2b(body.encode(), digest_size=16).hexdigest()
    if len(_KEYS) >= 4096:
        _KEYS.clear()
    _KEYS[memo] = (tools, digest)
    return digest
