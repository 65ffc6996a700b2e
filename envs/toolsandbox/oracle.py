"""An agent that follows a scenario's reference milestones: hidden side, for measuring the adapter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from dynsteer_gym.envs.actions import AssistantTurn, ToolCall
from dynsteer_gym.envs.toolsandbox.library import NOW
from dynsteer_gym.envs.toolsandbox.references import SWITCHES, row_tool, traced
from dynsteer_gym.envs.toolsandbox.world import ToolSandboxWorld

__all__ = ["Oracle"]

_LONG_AGO = 400_000_000.0
_SEARCHES: tuple[dict[str, Any], ...] = (
    {"is_self": False},
    {"creation_timestamp_lowerbound": _LONG_AGO},
    {"reminder_timestamp_lowerbound": _LONG_AGO},
    {"creation_timestamp_upperbound": NOW.timestamp()},
)


class Oracle:
    """Plays the reference milestones in order; declines where there is none."""

    def __init__(self, world: ToolSandboxWorld) -> None:
        """Takes the running episode.

        Args:
            world: The world, right after ``reset``.
        """
        self._world = world
        matcher = world.evaluation.milestone_matcher
        self._milestones = matcher.milestones
        import networkx

        self._order = list(networkx.lexicographical_topological_sort(matcher.milestone_dag)) if self._milestones else []
        self._results: dict[int, dict[str, Any]] = {}

    def play(self) -> dict[str, Any]:
        """Plays the episode to its end.

        Returns:
            The last step's ``info``.
        """
        info: dict[str, Any] = {}
        for action in self._actions():
            *_, terminated, truncated, info = self._world.step(action)
            if terminated or truncated:
                return info
        while not self._world.ended:
            *_, info = self._world.step("I cannot do more than that." if not self._milestones else "That is all.")
        return info

    def _actions(self) -> Iterator[AssistantTurn | str]:
        for node in self._order:
            yield from self._milestone(node)

    def _milestone(self, node: int) -> Iterator[AssistantTurn | str]:
        guardrail = self._world.library.evaluation.guardrail_similarity
        for constraint in self._milestones[node].snapshot_constraints:
            if constraint.snapshot_constraint is guardrail or constraint.target_dataframe is None:
                continue
            space, rows = str(constraint.database_namespace), constraint.target_dataframe.to_dicts()
            if space == "SANDBOX":
                yield from self._sandbox(node, constraint, rows[0])
            else:
                kind = getattr(constraint.snapshot_constraint, "__name__", "")
                for row in rows:
                    yield from self._change(space, kind, {key: value for key, value in row.items() if value is not None})

    def _sandbox(self, node: int, constraint: Any, row: dict[str, Any]) -> Iterator[AssistantTurn | str]:
        more = getattr(constraint.snapshot_constraint, "keywords", None)
        filled: dict[str, Any] = {}
        if more:
            filled = more["extractor"](self._results[constraint.reference_milestone_node_index])[0]
        wanted = traced(row)
        if wanted is not None:
            yield from self._traced(node, wanted["tool_name"], {**wanted["arguments"], **filled})
        elif str(row.get("sender")) == "AGENT":
            yield row["content"].format(**filled) if filled else row["content"]

    def _traced(self, node: int, tool: str, arguments: dict[str, Any]) -> Iterator[AssistantTurn]:
        """Calls a tool with what the reference asks for, and with what else it needs, until it succeeds."""
        for extra in self._completions(node, tool, arguments):
            before = len(self._world.messages)
            yield self._call(tool, {**extra, **arguments})
            answer = self._world.messages[before + 1]["content"]
            if not answer.startswith("Error:"):
                self._results[node] = {"tool_name": tool, "arguments": {**extra, **arguments}, "result": _read(answer)}
                return

    def _completions(self, node: int, tool: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        if tool == "datetime_info_to_timestamp":
            moment = datetime.fromtimestamp(self._later("reminder_timestamp") or NOW.timestamp())
            return [{key: getattr(moment, key) for key in ("year", "month", "day", "hour", "minute", "second")}]
        if tool == "timestamp_diff":
            results = [entry["result"] for entry in self._results.values() if isinstance(entry["result"], float)]
            others = [value for value in results if value not in arguments.values()]
            return [{"timestamp_0": value, "timestamp_1": value} for value in reversed(others)] or [{}]
        if arguments or not tool.startswith("search"):
            return [{}]
        spec = next((spec for spec in self._world.task_view.tools if spec.name == self._shown(tool)), None)
        return [extra for extra in _SEARCHES if spec is not None and set(extra) <= set(spec.properties)] or [{}]

    def _later(self, column: str) -> float | None:
        """The value of a column that a later milestone asks for."""
        for milestone in self._milestones:
            for constraint in milestone.snapshot_constraints:
                frame = constraint.target_dataframe
                if frame is not None and column in frame.columns and frame[column][0] is not None:
                    return float(frame[column][0])
        return None

    def _change(self, space: str, kind: str, row: dict[str, Any]) -> Iterator[AssistantTurn]:
        if space == "SETTING":
            for column, value in row.items():
                if value and column != "low_battery_mode":
                    yield self._call("set_low_battery_mode_status", {"on": False})
                yield self._call(SWITCHES[column], {"on": value})
        else:
            tool = row_tool(space, kind)
            if space == "MESSAGING":
                row = {"phone_number": row["recipient_phone_number"], "content": row["content"]}
            elif tool.startswith("remove"):
                row = {key: value for key, value in row.items() if key in ("person_id", "reminder_id")}
            yield self._call(tool, row)

    def _call(self, tool: str, arguments: dict[str, Any]) -> AssistantTurn:
        """A call under the name that is shown; one that is not on offer is still made, and refused."""
        return AssistantTurn(calls=(ToolCall(self._shown(tool), arguments),))

    def _shown(self, tool: str) -> str:
        return next((key for key, own in self._world.tools_by_shown_name.items() if own.__name__ == tool), tool)


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
