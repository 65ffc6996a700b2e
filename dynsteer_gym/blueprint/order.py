"""Partial orders of a handful of nodes: cycles, topological order, transitive reduction.

Graphs of a task have some ten nodes, and a first episode must not wait for a graph library to load; the tests hold these
against networkx, and :meth:`~dynsteer_gym.blueprint.graph.Blueprint.to_networkx` hands a blueprint over to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TypeVar

__all__ = ["find_cycle", "topological", "transitive_reduction"]

Node = TypeVar("Node", bound=tuple[object, ...] | str)


def find_cycle(pairs: Iterable[tuple[Node, Node]]) -> list[tuple[Node, Node]]:
    """The pairs of one cycle, or none.

    >>> find_cycle([("a", "b"), ("b", "c"), ("c", "b")])
    [('b', 'c'), ('c', 'b')]

    Args:
        pairs: ``(earlier, later)``.
    """
    before: dict[Node, list[Node]] = {}
    for earlier, later in sorted(pairs):
        before.setdefault(later, []).append(earlier)
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        nodes: list[Node] = error.args[1]
        return list(pairwise(nodes))
    return []


def topological(nodes: Iterable[Node], pairs: Iterable[tuple[Node, Node]]) -> list[Node]:
    """The topological order that takes the smallest node whenever several could come next.

    Args:
        nodes: All nodes.
        pairs: ``(earlier, later)``, without cycles.

    Raises:
        ValueError: There is a cycle.
    """
    after: dict[Node, list[Node]] = {node: [] for node in nodes}
    waiting = dict.fromkeys(after, 0)
    for earlier, later in set(pairs):
        after[earlier].append(later)
        waiting[later] += 1
    ready = [node for node, number in waiting.items() if not number]
    heapify(ready)
    order = []
    while ready:
        node = heappop(ready)
        order.append(node)
        for later in after[node]:
            waiting[later] -= 1
            if not waiting[later]:
                heappush(ready, later)
    if len(order) < len(after):
        raise ValueError("the pairs hold a cycle")
    return order


def transitive_reduction(order: Sequence[Node], pairs: Iterable[tuple[Node, Node]]) -> list[tuple[Node, Node]]:
    """The fewest pairs with the same transitive closure, sorted.

    >>> transitive_reduction("abc", [("a", "b"), ("b", "c"), ("a", "c")])
    [('a', 'b'), ('b', 'c')]

    Args:
        order: All nodes in a topological order.
        pairs: ``(earlier, later)``, without cycles.
    """
    direct: dict[Node, set[Node]] = {node: set() for node in order}
    for earlier, later in pairs:
        direct[later].add(earlier)
    ancestors: dict[Node, set[Node]] = {}
    kept = []
    for node in order:
        over = set().union(*(ancestors[other] for other in direct[node]))
        kept.extend((other, node) for other in direct[node] - over)
        ancestors[node] = over | direct[node]
    return sorted(kept)
