"""Contract validation of a candidate (equation 2): ``SchemaCheck and Acyclic(E) and BindingConsistency(K)``."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from dynsteer_gym.blueprint.generation import Candidate
from dynsteer_gym.blueprint.graph import Operation, OperationKind, RoleSource
from dynsteer_gym.blueprint.planning import HELD, Catalogue, Request

__all__ = ["acyclic", "binding_consistency", "schema_check", "validate"]

ACTS = ("answer", "report", "question", "refusal")


def validate(candidate: Candidate, catalogue: Catalogue, request: Request) -> str | None:
    """Why a candidate is invalid, or ``None`` where it holds (equation 2).

    Args:
        candidate: The graph.
        catalogue: The tools.
        request: The request whose literals it may bind.
    """
    if not candidate.nodes:
        return "it has no nodes"
    return (
        schema_check(candidate, catalogue, request)
        or acyclic(candidate)
        or binding_consistency(candidate, catalogue, request)
    )


def schema_check(candidate: Candidate, catalogue: Catalogue, request: Request) -> str | None:
    """Tools exist; bound arguments exist and a bound literal has the type that the schema takes."""
    types = {slot.key: slot.type for slot in request.slots}
    for node in candidate.nodes:
        for operation in node.operations:
            if operation.kind == OperationKind.MESSAGE:
                if operation.name not in ACTS:
                    return f"no message act is called {operation.name}"
                continue
            if operation.kind == OperationKind.STATE:
                continue
            reading = catalogue.tools.get(operation.name)
            if reading is None:
                return f"no tool is called {operation.name}"
            for name, role in operation.bindings:
                if name == HELD:
                    continue
                if name not in reading.types:
                    return f"{operation.name} has no parameter {name}"
                own = types.get(role.key)
                taken = reading.types[name]
                if role.source == RoleSource.LITERAL and own is not None and own != taken and not taken.startswith("any:"):
                    return f"{operation.name}.{name} takes {taken}, not {own}"
    for minefield in candidate.minefields:
        if minefield.tool not in catalogue.tools:
            return f"no tool is called {minefield.tool}"
    return None


def acyclic(candidate: Candidate) -> str | None:
    """The edges make no cycle and name nodes that exist."""
    if any(not 0 <= place < len(candidate.nodes) for node in candidate.nodes for place in node.after):
        return "an edge names a node that does not exist"
    try:
        list(TopologicalSorter({place: node.after for place, node in enumerate(candidate.nodes)}).static_order())
    except CycleError:
        return "its edges make a cycle"
    return None


def binding_consistency(candidate: Candidate, catalogue: Catalogue, request: Request) -> str | None:
    """A bound value is produced by an ancestor, asked of the user, named in the request, or public."""
    named = {slot.key for slot in request.slots}
    ancestors: dict[int, set[int]] = {}
    for place in TopologicalSorter({place: node.after for place, node in enumerate(candidate.nodes)}).static_order():
        above = candidate.nodes[place].after
        ancestors[place] = set(above).union(*(ancestors[earlier] for earlier in above)) if above else set()
    for place, node in enumerate(candidate.nodes):
        before = [operation for earlier in ancestors[place] for operation in candidate.nodes[earlier].operations]
        for operation in node.operations:
            reason = _unbound(operation, before, named)
            if reason is not None:
                return reason
    return None


def _unbound(operation: Operation, before: list[Operation], named: set[str]) -> str | None:
    for name, role in operation.bindings:
        if role.source == RoleSource.LITERAL and role.key not in named:
            return f"{operation.name}.{name} is bound to {role.key}, which the request does not name"
        if role.source == RoleSource.PRODUCER:
            tool = role.key.partition(".")[0]
            if not any(other.kind == OperationKind.CALL and other.name == tool for other in before):
                return f"{operation.name}.{name} needs {tool} before it"
        if role.source == RoleSource.USER:
            asked = any(
                other.kind == OperationKind.MESSAGE and other.name == "question" and any(key == role.key for key, _ in other.bindings)
                for other in before
            )
            if not asked:
                return f"{operation.name}.{name} needs a question to the user before it"
    return None
