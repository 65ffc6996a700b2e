"""What a scenario's reference milestones ask for, by kind and by tool: hidden side, for measuring."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["MESSAGE", "SWITCHES", "Kind", "Reference", "forbidden_tools", "references", "row_tool", "traced"]

Kind = Literal["tool_trace", "database_state", "sentence"]
MESSAGE = "message to the user"
"""Name of the operation of every sentence to the user."""
SWITCHES = {
    "cellular": "set_cellular_service_status",
    "wifi": "set_wifi_status",
    "location_service": "set_location_service_status",
    "low_battery_mode": "set_low_battery_mode_status",
}
"""The tool that sets each column of the settings."""
_VERBS = {"addition_similarity": "add", "removal_similarity": "remove"}


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference milestone.

    Attributes:
        kind: Whether it is a tool trace, a database state or a sentence to the user.
        name: The tool that meets it by its own name, or :data:`MESSAGE`.
    """

    kind: Kind
    name: str


def traced(row: dict[str, Any]) -> dict[str, Any] | None:
    """The tool trace that a target row of the conversation asks for, or ``None``."""
    if not row.get("tool_trace"):
        return None
    wanted = json.loads(row["tool_trace"])
    return wanted[0] if isinstance(wanted, list) else wanted


def row_tool(space: str, change: str) -> str:
    """The tool that makes a change of a row.

    Args:
        space: Database, such as ``CONTACT``.
        change: Name of ToolSandbox's similarity, such as ``addition_similarity``.
    """
    if space == "MESSAGING":
        return "send_message_with_phone_number"
    return f"{_VERBS.get(change, 'modify')}_{'contact' if space == 'CONTACT' else 'reminder'}"


def _spoken(row: dict[str, Any]) -> Reference:
    """A target row of the conversation: a trace, a call by its tool's name (as minefields have it), or a sentence."""
    trace = traced(row)
    if trace is not None:
        return Reference("tool_trace", trace["tool_name"])
    if str(row.get("recipient")) == "EXECUTION_ENVIRONMENT":
        return Reference("tool_trace", row["content"])
    return Reference("sentence", MESSAGE)


def _asked(milestones: Any, guardrail: Any) -> Iterator[Reference]:
    for milestone in milestones:
        found: list[Reference] = []
        for constraint in milestone.snapshot_constraints:
            if constraint.snapshot_constraint is guardrail or constraint.target_dataframe is None:
                continue
            space, rows = str(constraint.database_namespace), constraint.target_dataframe.to_dicts()
            if space == "SANDBOX":
                found.append(_spoken(rows[0]))
            elif space == "SETTING":
                found += [Reference("database_state", SWITCHES[key]) for key in rows[0] if rows[0][key] is not None]
            else:
                kind = getattr(constraint.snapshot_constraint, "__name__", "")
                found.append(Reference("database_state", row_tool(space, kind)))
        yield from dict.fromkeys(found)  # Two constraints on one trace are one operation.


def references(library: Any, name: str) -> list[Reference]:
    """A scenario's reference milestones, one entry for each operation that one asks for.

    Args:
        library: ToolSandbox, as built.
        name: The scenario.
    """
    evaluation = library.scenarios[name].evaluation
    return list(_asked(evaluation.milestone_matcher.milestones, library.evaluation.guardrail_similarity))


def forbidden_tools(library: Any, name: str) -> list[str]:
    """The tools whose call a scenario's reference minefields forbid, by their own names."""
    evaluation = library.scenarios[name].evaluation
    mines = evaluation.minefield_matcher.milestones
    return [entry.name for entry in _asked(mines, library.evaluation.guardrail_similarity)]
