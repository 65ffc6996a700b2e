"""The table of a suite, counted from its scenarios (DynSTEER, table 4). Hidden side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from dynsteer_gym.envs.sandbox.instance import VARIANTS, Instance
from dynsteer_gym.envs.sandbox.playing import user_turns

__all__ = ["suite_statistics"]


def suite_statistics(instances: Sequence[Instance]) -> dict[str, Any]:
    """Counts scenarios, user turns, tools and minefields.

    User turns are the opening, answers, questions asked back and further requests while the expert plays; the closing
    thanks are left out.

    Args:
        instances: The scenarios.

    Returns:
        JSON data: ``scenarios``, ``families``, ``domains`` (each with ``scenarios``, ``user_turns``, ``tools``,
        ``minefields``), ``variants``, ``factors``, ``user_turns``, ``tools``, ``minefields``, ``calls``.
    """
    turns = {instance.name: user_turns(instance) for instance in instances}
    calls = [
        sum(not isinstance(turn, str) for request in instance.requests for turn in request.plan) for instance in instances
    ]
    domains = {}
    for domain in dict.fromkeys(instance.domain for instance in instances):
        own = [instance for instance in instances if instance.domain == domain]
        domains[domain] = {"scenarios": len(own), **_spread(own, turns)}
    return {
        "scenarios": len(instances),
        "families": len({request.family for instance in instances for request in instance.requests}),
        "primary_families": len({instance.family for instance in instances}),
        "domains": domains,
        "variants": {variant: sum(instance.variant == variant for instance in instances) for variant in VARIANTS},
        "factors": {
            "distractors": sum(bool(instance.distractors) for instance in instances),
            "scramble": sum(instance.scramble is not None for instance in instances),
            "missing": sum(bool(instance.missing) for instance in instances),
        },
        "scrambled_parts": dict(
            Counter(part for instance in instances for part in (instance.scramble.parts if instance.scramble else ()))
        ),
        **_spread(instances, turns),
        "calls": {"mean": sum(calls) / len(calls), "most": max(calls), "10 to 25": _within(calls, 10, 25), "40 to 110": _within(calls, 40, 110)},
    }


def _within(numbers: Sequence[int], low: int, high: int) -> int:
    return sum(low <= number <= high for number in numbers)


def _spread(instances: Sequence[Instance], turns: dict[str, int]) -> dict[str, Any]:
    own = [turns[instance.name] for instance in instances]
    tools = [len(instance.tools) for instance in instances]
    mines = [mine for instance in instances for mine in instance.minefields or ()]
    return {
        "user_turns": {"mean": sum(own) / len(own), "fewest": min(own), "most": max(own)},
        "tools": {"mean": sum(tools) / len(tools), "fewest": min(tools), "most": max(tools)},
        "minefields": {
            "all": len(mines),
            "hazard": sum(not mine.unsupported for mine in mines),
            "unsupported": sum(mine.unsupported for mine in mines),
            "kinds": dict(Counter(mine.kind for mine in mines).most_common()),
        },
    }
