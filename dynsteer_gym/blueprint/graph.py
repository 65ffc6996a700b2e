"""The milestone graph ``G = (M, E, K, M_fatal)``: its frozen types.

A blueprint speaks of *roles* (sources of values), never of values, so that one blueprint serves all requests that
differ in their literals only. The literals of an episode stand beside it in a :class:`CompiledTask`.
Source: DynSTEER section 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "Blueprint",
    "Compilation",
    "CompiledTask",
    "Milestone",
    "MinefieldKind",
    "Minefield",
    "Operation",
    "OperationKind",
    "Role",
    "RoleSource",
]


class RoleSource(StrEnum):
    """Where a value comes from."""

    LITERAL = "literal"
    """Written in a request; ``key`` is ``r<request>/<type>:<index>`` (see ``language.delexicalise``)."""
    USER = "user"
    """Told by the user when asked; ``key`` names what is asked for (a parameter's name)."""
    PRODUCER = "producer"
    """Returned by a tool; ``key`` is ``<tool>.<field>``."""
    CONSTANT = "constant"
    """Fixed by the reading of the request ("turn off" means ``false``); ``key`` is its JSON text."""
    PUBLIC = "public"
    """Public metadata or policy; ``key`` says which."""
    FREE = "free"
    """Left open: any schema-valid value will do."""


@dataclass(frozen=True, slots=True)
class Role:
    """The source of a value."""

    source: RoleSource
    key: str = ""


class OperationKind(StrEnum):
    """What a milestone asks for."""

    CALL = "call"
    STATE = "state"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation that meets a milestone.

    Attributes:
        kind: A tool call, a state change, or a message to the user.
        name: The tool's name; ``<table>.<column>`` of a state change; the act of a message: ``answer``, ``report``,
            ``question`` or ``refusal``.
        bindings: ``(parameter, role)`` pairs sorted by parameter. A state change binds ``key`` and ``value``; a message
            binds one entry for each fact that it must carry (``answer``) or ask for (``question``).
    """

    kind: OperationKind
    name: str
    bindings: tuple[tuple[str, Role], ...] = ()


@dataclass(frozen=True, slots=True)
class Milestone:
    """A node of the graph.

    Attributes:
        id: Unique in the blueprint: ``r<request>.m<number>``.
        operations: One operation, or several alternatives of which one must be done.
        share: Its part of the dense return, in [0, 1]; shares of a talk sum to at most 1.
        request: Which request of the talk it belongs to, from 0.
        support: Share of valid candidates that hold it, in (0, 1].
        certain: Whether all valid candidates hold it with the same binding.
        goal: One sentence that says what is to be reached, for judges and people.
    """

    id: str
    operations: tuple[Operation, ...]
    share: float
    request: int = 0
    support: float = 1.0
    certain: bool = False
    goal: str = ""


class MinefieldKind(StrEnum):
    """The two kinds of minefield, told apart everywhere."""

    HAZARD = "hazard"
    """An operation that would do harm here: irreversible, unconfirmed, leaking, off the task."""
    UNSUPPORTED_CALL = "unsupported_call"
    """A call that needs a value which neither user, tools nor public data can give."""


@dataclass(frozen=True, slots=True)
class Minefield:
    """An operation that ends the episode at once.

    Attributes:
        id: Unique in the blueprint: ``r<request>.f<number>``.
        kind: Hazard or unsupported call.
        tool: The tool concerned.
        arguments: ``(parameter, role)`` pairs that a call must match to be caught; empty catches every call.
        ungrounded: Parameters that catch a call when their value has no source (request, user, return, public data).
        unless_confirmed: The call is no minefield once the user has said yes to it.
        support: Share of valid candidates that hold it, in (0, 1].
        reason: One sentence for the record.
        request: Which request of the talk it belongs to, from 0.
    """

    id: str
    kind: MinefieldKind
    tool: str
    arguments: tuple[tuple[str, Role], ...] = ()
    ungrounded: tuple[str, ...] = ()
    unless_confirmed: bool = False
    support: float = 1.0
    reason: str = ""
    request: int = 0


@dataclass(frozen=True, slots=True)
class Compilation:
    """How a blueprint came about, for the report.

    Attributes:
        candidates: Candidates synthesised (C).
        valid: Candidates that passed validation (C_valid).
        dropped: One reason for each invalid candidate.
        low_consensus: Whether fewer than three candidates were valid.
        fallback: Whether the declared fallback stands in for a graph.
        dropped_cycles: Precedence pairs dropped to break majority cycles.
    """

    candidates: int
    valid: int
    dropped: tuple[str, ...] = ()
    low_consensus: bool = False
    fallback: bool = False
    dropped_cycles: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Blueprint:
    """The compiled milestone graph.

    Attributes:
        milestones: The nodes in topological order (ties by id).
        edges: Precedence pairs ``(earlier, later)`` of milestone ids, transitively reduced.
        minefields: Fatal operations.
        max_requests: The most requests the talk may hold.
        compilations: One entry for each request compiled so far.
    """

    milestones: tuple[Milestone, ...]
    edges: tuple[tuple[str, str], ...] = ()
    minefields: tuple[Minefield, ...] = ()
    max_requests: int = 1
    compilations: tuple[Compilation, ...] = ()

    @cached_property
    def by_id(self) -> Mapping[str, Milestone]:
        """Milestones by id."""
        return {milestone.id: milestone for milestone in self.milestones}

    def to_networkx(self) -> nx.DiGraph[str]:
        """The graph for networkx: a node for each milestone, with ``goal``, ``share`` and ``certain``, and its edges."""
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        for milestone in self.milestones:
            graph.add_node(milestone.id, goal=milestone.goal, share=milestone.share, certain=milestone.certain)
        graph.add_edges_from(self.edges)
        return graph

    @cached_property
    def predecessors(self) -> Mapping[str, tuple[str, ...]]:
        """``Pred(m)``: the direct predecessors of each milestone."""
        found: dict[str, list[str]] = {milestone.id: [] for milestone in self.milestones}
        for earlier, later in self.edges:
            found[later].append(earlier)
        return {key: tuple(sorted(value)) for key, value in found.items()}

    @cached_property
    def successors(self) -> Mapping[str, tuple[str, ...]]:
        """The direct successors of each milestone."""
        found: dict[str, list[str]] = {milestone.id: [] for milestone in self.milestones}
        for earlier, later in self.edges:
            found[earlier].append(later)
        return {key: tuple(sorted(value)) for key, value in found.items()}

    @cached_property
    def ancestors(self) -> Mapping[str, frozenset[str]]:
        """All milestones that must come before each milestone."""
        found: dict[str, frozenset[str]] = {}
        for milestone in self.milestones:
            direct = self.predecessors[milestone.id]
            found[milestone.id] = frozenset(direct).union(*(found[key] for key in direct))
        return found

    @cached_property
    def anchors(self) -> Mapping[str, str | None]:
        """``idom(m)``: the immediate dominator of each milestone over the graph with an added entry ``s0``.

        ``None`` stands for ``s0``. In topological order, the immediate dominator of a node is the nearest common
        ancestor of its predecessors in the dominator tree.
        """
        found: dict[str, str | None] = {}
        depth: dict[str | None, int] = {None: 0}
        for milestone in self.milestones:
            direct = self.predecessors[milestone.id]
            common: str | None = direct[0] if direct else None
            for other in direct[1:]:
                left: str | None = common
                right: str | None = other
                while left != right:
                    if depth[left] >= depth[right]:
                        left = found[left] if left is not None else None
                    else:
                        right = found[right] if right is not None else None
                common = left
            found[milestone.id] = common
            depth[milestone.id] = depth[common] + 1
        return found

    @cached_property
    def by_request(self) -> Mapping[int, tuple[Milestone, ...]]:
        """The milestones of each request, in topological order."""
        found: dict[int, list[Milestone]] = {}
        for milestone in self.milestones:
            found.setdefault(milestone.request, []).append(milestone)
        return {key: tuple(value) for key, value in found.items()}

    @cached_property
    def screens(self) -> Mapping[int, Mapping[str, tuple[Minefield, ...]]]:
        """Minefields by request and tool."""
        found: dict[int, dict[str, list[Minefield]]] = {}
        for minefield in self.minefields:
            found.setdefault(minefield.request, {}).setdefault(minefield.tool, []).append(minefield)
        return {request: {tool: tuple(own) for tool, own in tools.items()} for request, tools in found.items()}


@dataclass(frozen=True, slots=True)
class CompiledTask:
    """A blueprint with the literals of this episode's requests.

    Attributes:
        blueprint: The shared, value-free graph.
        literals: Values of the literal roles by role key (``r0/name:0``).
    """

    blueprint: Blueprint
    literals: Mapping[str, Any]
