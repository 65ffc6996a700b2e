"""Consensus of valid candidates (equations 3, 11 and 12): classes of nodes, strict majority, precedence, alternatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from math import ceil

from dynsteer_gym.blueprint.generation import Candidate
from dynsteer_gym.blueprint.graph import Milestone, Minefield, Operation, Role, RoleSource
from dynsteer_gym.blueprint.order import find_cycle, topological, transitive_reduction

__all__ = ["Consensus", "agree", "majority"]

ClassKey = tuple[str, str, tuple[tuple[str, str], ...], int]
"""Kind, name, the values of the request that the operation binds, and its number among equal ones."""


@dataclass(frozen=True)
class Consensus:
    """What the candidates agree on.

    Attributes:
        milestones: In topological order, ids ``m0``, ``m1``, ...; shares sum to 1.
        edges: Transitively reduced precedence pairs of ids.
        minefields: Fatal operations with a majority, ids ``f0``, ...
        dropped_cycles: Precedence pairs dropped to break majority cycles, by id.
    """

    milestones: tuple[Milestone, ...]
    edges: tuple[tuple[str, str], ...]
    minefields: tuple[Minefield, ...]
    dropped_cycles: tuple[tuple[str, str], ...] = ()


def majority(valid: int) -> int:
    """The strict majority ``ceil((C_valid + 1) / 2)`` (equation 11)."""
    return ceil((valid + 1) / 2)


def agree(candidates: Sequence[Candidate], *, alternatives: bool = True) -> Consensus:
    """The majority graph of valid candidates.

    Args:
        candidates: Valid candidates, at least one.
        alternatives: Merge classes that exclude each other into one milestone (off in the paper's mode).
    """
    count = len(candidates)
    needed = majority(count)
    keyed = [_classes(candidate) for candidate in candidates]
    support: dict[ClassKey, int] = {}
    for classes in keyed:
        for key in classes:
            support[key] = support.get(key, 0) + 1
    before = _precedence(candidates, keyed)
    kept: dict[ClassKey, tuple[ClassKey, ...]] = {key: (key,) for key, number in support.items() if number >= needed}
    if alternatives:
        kept.update(_alternatives(support, keyed, before, set(kept), needed))
    order, pairs, dropped = _order(kept, before, needed, support)
    names = {key: f"m{place}" for place, key in enumerate(order)}
    milestones = []
    for key in order:
        members = kept[key]
        held = sum(any(member in classes for member in members) for classes in keyed)
        operations, certain = _bind(members, candidates, keyed)
        goal = next(candidates[i].nodes[classes[m]].goal for m in members for i, classes in enumerate(keyed) if m in classes)
        milestones.append(
            Milestone(names[key], operations, 1 / len(order), support=held / count, certain=certain and held == count, goal=goal)
        )
    return Consensus(
        tuple(milestones),
        tuple(transitive_reduction(list(names.values()), [(names[a], names[b]) for a, b in pairs])),
        _minefields(candidates, needed),
        tuple((names[a], names[b]) for a, b in dropped),
    )


def _classes(candidate: Candidate) -> dict[ClassKey, int]:
    """Class of each node: operations agree in kind, name and the request's values they bind; equal ones are numbered."""
    order = list(TopologicalSorter({place: sorted(node.after) for place, node in enumerate(candidate.nodes)}).static_order())
    found: dict[ClassKey, int] = {}
    for place in order:
        operation = candidate.nodes[place].operations[0]
        named = tuple((name, role.key) for name, role in operation.bindings if role.source == RoleSource.LITERAL)
        if operation.name in ("question", "answer"):
            named = tuple((name, "") for name, _ in operation.bindings)
        number = 0
        while (key := (str(operation.kind), operation.name, named, number)) in found:
            number += 1
        found[key] = place
    return found


def _precedence(candidates: Sequence[Candidate], keyed: Sequence[dict[ClassKey, int]]) -> dict[tuple[ClassKey, ClassKey], int]:
    """How many candidates put one class before another, on each candidate's transitive closure (equation 12)."""
    counts: dict[tuple[ClassKey, ClassKey], int] = {}
    for candidate, classes in zip(candidates, keyed, strict=True):
        name = {place: key for key, place in classes.items()}
        above: dict[int, set[int]] = {}
        for place in TopologicalSorter({place: node.after for place, node in enumerate(candidate.nodes)}).static_order():
            direct = candidate.nodes[place].after
            above[place] = set(direct).union(*(above[earlier] for earlier in direct)) if direct else set()
            for earlier in above[place]:
                pair = (name[earlier], name[place])
                counts[pair] = counts.get(pair, 0) + 1
    return counts


def _alternatives(
    support: dict[ClassKey, int],
    keyed: Sequence[dict[ClassKey, int]],
    before: dict[tuple[ClassKey, ClassKey], int],
    kept: set[ClassKey],
    needed: int,
) -> dict[ClassKey, tuple[ClassKey, ...]]:
    """Classes below the majority that exclude each other, have the same kept neighbours and reach it together."""

    def neighbours(key: ClassKey) -> tuple[frozenset[ClassKey], frozenset[ClassKey]]:
        return (
            frozenset(other for other in kept if before.get((other, key), 0)),
            frozenset(other for other in kept if before.get((key, other), 0)),
        )

    groups: dict[object, list[ClassKey]] = {}
    for key in sorted(set(support) - kept):
        groups.setdefault((key[0], neighbours(key)), []).append(key)
    found: dict[ClassKey, tuple[ClassKey, ...]] = {}
    for members in groups.values():
        exclusive = [key for key in members if not any(key in c and other in c for c in keyed for other in members if other != key)]
        if len(exclusive) > 1 and sum(support[key] for key in exclusive) >= needed:
            ordered = sorted(exclusive, key=lambda key: (-support[key], key))
            found[ordered[0]] = tuple(ordered)
    return found


def _order(
    kept: dict[ClassKey, tuple[ClassKey, ...]],
    before: dict[tuple[ClassKey, ClassKey], int],
    needed: int,
    support: dict[ClassKey, int],
) -> tuple[list[ClassKey], list[tuple[ClassKey, ClassKey]], list[tuple[ClassKey, ClassKey]]]:
    """Majority precedence with cycles broken at their least supported pair; a topological order, ties by name."""
    counts: dict[tuple[ClassKey, ClassKey], int] = {}
    home = {member: key for key, members in kept.items() for member in members}
    for (a, b), number in before.items():
        if a in home and b in home and home[a] != home[b]:
            pair = (home[a], home[b])
            counts[pair] = counts.get(pair, 0) + number
    pairs = {pair for pair, number in counts.items() if number >= needed}
    dropped = []
    while True:
        cycle = find_cycle(pairs)
        if not cycle:
            break
        weakest = min(cycle, key=lambda pair: (counts[pair], pair))
        pairs.discard(weakest)
        dropped.append(weakest)
    return topological(kept, pairs), sorted(pairs), dropped


def _bind(
    members: Sequence[ClassKey], candidates: Sequence[Candidate], keyed: Sequence[dict[ClassKey, int]]
) -> tuple[tuple[Operation, ...], bool]:
    """The operations of a class: a binding is kept when most candidates that hold the class agree, else left free."""
    operations: list[Operation] = []
    certain = True
    for member in members:
        holders = [candidates[i].nodes[classes[member]].operations for i, classes in enumerate(keyed) if member in classes]
        certain = certain and all(ops == holders[0] for ops in holders)
        plain = holders[0][0]
        bindings = []
        for name in sorted({name for ops in holders for name, _ in ops[0].bindings}):
            votes: dict[Role | None, int] = {}
            for ops in holders:
                role = dict(ops[0].bindings).get(name)
                votes[role] = votes.get(role, 0) + 1
            role, number = max(votes.items(), key=lambda vote: (vote[1], vote[0] is not None, str(vote[0])))
            bindings.append((name, role if role is not None and number * 2 > len(holders) else Role(RoleSource.FREE)))
        operations.append(Operation(plain.kind, plain.name, tuple(bindings)))
        others = sorted({op for ops in holders for op in ops[1:]}, key=str)
        for other in others:
            if sum(other in ops for ops in holders) * 2 > len(holders):
                operations.append(other)
    return tuple(dict.fromkeys(operations)), certain


def _minefields(candidates: Sequence[Candidate], needed: int) -> tuple[Minefield, ...]:
    votes: dict[Minefield, int] = {}
    for candidate in candidates:
        for minefield in candidate.minefields:
            votes[minefield] = votes.get(minefield, 0) + 1
    kept = sorted((m for m, number in votes.items() if number >= needed), key=lambda m: (m.kind, m.tool, m.ungrounded))
    return tuple(
        replace(minefield, id=f"f{place}", support=votes[minefield] / len(candidates)) for place, minefield in enumerate(kept)
    )
