"""ToolSandbox's own score, exactly, by a dynamic programme in place of its search: hidden side.

Its search assigns snapshots to milestones in an order that its graph allows, later ones never before earlier ones, so as
to maximise the sum of similarities; a similarity may depend on the snapshots of milestones that it refers to. The
programme's state is what that depends on: which milestones are assigned, the last snapshot, and the snapshots of those
that are still referred to, up to what their databases tell apart.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

__all__ = ["native_progress", "native_score"]


class _Measure:
    """Similarities of one matcher's milestones in one context, each computed once."""

    def __init__(self, library: Any, context: Any, matcher: Any) -> None:
        self.library, self.context, self.milestones = library, context, matcher.milestones
        self.first = context.first_user_sandbox_message_index
        self.last = context.max_sandbox_message_index
        self._buckets: dict[Any, list[int]] = {}
        self._frames: dict[Any, Any] = {}
        self._values: dict[Any, float] = {}
        self._senders: list[tuple[str, str]] | None = None

    def bucket(self, namespace: Any, index: int) -> int:
        """The snapshot that a database shows at a message: the same until it changes."""
        known = self._buckets.get(namespace)
        if known is None:
            frame = self.context._dbs[namespace]
            known = self._buckets[namespace] = sorted(set(frame["sandbox_message_index"].to_list()))
        return known[max(bisect_right(known, index) - 1, 0)]

    def _frame(self, namespace: Any, index: int) -> Any:
        key = (namespace, self.bucket(namespace, index))
        if key not in self._frames:
            self._frames[key] = self.context.get_database(namespace=namespace, sandbox_message_index=index)
        return self._frames[key]

    def _cannot_match(self, constraint: Any, index: int) -> bool:
        """Whether a message's sender or recipient is another one than the target's, which makes the similarity 0."""
        target = constraint.target_dataframe
        if str(constraint.database_namespace) != "SANDBOX" or target is None or len(target) != 1:
            return False
        if self._senders is None:
            frame = self.context._dbs[constraint.database_namespace]
            rows = frame.filter(frame["sender"].is_not_null()).sort("sandbox_message_index")
            self._senders = list(zip(rows["sender"].to_list(), rows["recipient"].to_list(), strict=True))
        row = target.to_dicts()[0]
        sender, recipient = self._senders[index]
        return ("sender" in row and row["sender"] != sender) or ("recipient" in row and row["recipient"] != recipient)

    def _part(self, place: int, number: int, index: int, reference: int | None) -> float:
        constraint = self.milestones[place].snapshot_constraints[number]
        namespace = constraint.database_namespace
        key = (place, number, self.bucket(namespace, index), None if reference is None else self.bucket(namespace, reference))
        value = self._values.get(key)
        if value is None:
            if self._cannot_match(constraint, index):
                value = 0.0
            else:
                value = float(
                    constraint.snapshot_constraint(
                        snapshot=self._frame(namespace, index),
                        target_dataframe=constraint.target_dataframe,
                        column_similarities=constraint.column_similarity_measure,
                        reference_snapshot=None if reference is None else self._frame(namespace, reference),
                    )
                )
            self._values[key] = value
        return value

    def similarity(self, place: int, index: int, assigned: Mapping[int, int]) -> float:
        """A milestone's similarity at a snapshot, given the snapshots of those before."""
        product, count = 1.0, 0
        guardrail = self.library.evaluation.guardrail_similarity
        for number, constraint in enumerate(self.milestones[place].snapshot_constraints):
            wanted = constraint.reference_milestone_node_index
            reference = None if wanted is None else self.first if wanted == -1 else assigned[wanted]
            part = self._part(place, number, index, reference)
            if part == 0.0:
                return 0.0
            product *= part
            count += constraint.snapshot_constraint is not guardrail
        return math.pow(product, 1 / count)


def _best(measure: _Measure, matcher: Any) -> float:
    """The greatest sum of similarities over all assignments."""
    graph = matcher.milestone_dag
    nodes = sorted(graph.nodes)
    count = measure.last - measure.first + 1
    before = {node: set(graph.predecessors(node)) for node in nodes}
    # Which databases still tell a milestone's snapshot apart once others are assigned.
    asked: dict[int, list[tuple[int, Any]]] = {node: [] for node in nodes}
    for node in nodes:
        for constraint in measure.milestones[node].snapshot_constraints:
            wanted = constraint.reference_milestone_node_index
            if wanted is not None and wanted >= 0:
                asked[wanted].append((node, constraint.database_namespace))
    known: dict[Any, list[float]] = {}

    def solve(done: frozenset[int], assigned: dict[int, int]) -> list[float]:
        """The greatest sum of the milestones that are left, by the earliest snapshot that they may have."""
        left = [node for node in nodes if node not in done]
        spaces = {node: sorted({str(space): space for user, space in asked[node] if user not in done}.items()) for node in done}
        memory = tuple((node, *(measure.bucket(space, assigned[node]) for _, space in spaces[node])) for node in sorted(done) if spaces[node])
        key = (done, memory)
        if key not in known:
            sums = [0.0] * count
            ready = [node for node in left if not before[node] - done]
            for place in reversed(range(count if left else 0)):
                index = measure.first + place
                best = sums[place + 1] if place + 1 < count else -1.0
                for node in ready:
                    after = follow(done, assigned, node, index)
                    best = max(best, measure.similarity(node, index, assigned) + after[place])
                sums[place] = best
            known[key] = sums
        return known[key]

    following: dict[Any, list[float]] = {}

    def follow(done: frozenset[int], assigned: dict[int, int], node: int, index: int) -> list[float]:
        """What is left once a node has a snapshot: the same for all snapshots that nobody tells apart."""
        mark = tuple(measure.bucket(space, index) for _, space in asked[node])
        key = (done, tuple(sorted(assigned.items())), node, mark)
        if key not in following:
            following[key] = solve(done | {node}, {**assigned, node: index})
        return following[key]

    return solve(frozenset(), {})[0]


def _mean(library: Any, context: Any, matcher: Any) -> float | None:
    if matcher.milestone_dag.number_of_nodes() == 0:
        return None
    measure = _Measure(library, context, matcher)
    return _best(measure, matcher) / len(matcher.milestones)


def native_score(library: Any, context: Any, evaluation: Any) -> float:
    """ToolSandbox's similarity of a finished context: mean milestone similarity, 0 where a minefield matched.

    Args:
        library: The library.
        context: The finished context.
        evaluation: The scenario's evaluation.
    """
    mines = _mean(library, context, evaluation.minefield_matcher)
    if mines:
        return 0.0
    stones = _mean(library, context, evaluation.milestone_matcher)
    return min(max(1.0 if stones is None else stones, 0.0), 1.0)


def native_progress(library: Any, context: Any, evaluation: Any) -> float:
    """The best mean milestone similarity so far, minefields aside; 0 where there are no milestones.

    It never falls: whatever was assigned may stay assigned.

    Args:
        library: The library.
        context: The context so far.
        evaluation: The scenario's evaluation.
    """
    return min(max(_mean(library, context, evaluation.milestone_matcher) or 0.0, 0.0), 1.0)
