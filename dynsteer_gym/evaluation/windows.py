"""The evidence window between a milestone and its dominator (equation 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dynsteer_gym.blueprint.graph import Blueprint
from dynsteer_gym.events import ClosedAction

__all__ = ["window"]


def window(
    blueprint: Blueprint,
    milestone: str,
    settled_at: Mapping[str, int],
    actions: Sequence[ClosedAction],
    tried: Mapping[int, str],
    t: int,
    *,
    branches: bool = True,
) -> tuple[ClosedAction | None, tuple[ClosedAction, ...]]:
    """``W(m*) = [t_idom(m*), t]``, with ``t_s0 = 0``: the anchor's own action is context, the rest is evidence.

    Args:
        blueprint: The graph.
        milestone: The settled milestone ``m*``.
        settled_at: Closed step at which each milestone settled.
        actions: All closed actions, ``actions[i]`` being step ``i + 1``.
        tried: Milestone that a closed step settled or tried.
        t: The step at which ``m*`` settled.
        branches: Leave out steps that advanced or tried a milestone that neither leads to ``m*`` nor is ``m*``.

    Returns:
        The anchor's action (``None`` at ``s0``), and the steps in ``(t_idom, t]``.
    """
    anchor = blueprint.anchors[milestone]
    start = settled_at[anchor] if anchor is not None else 0
    steps = actions[start:t]
    if branches:
        above = blueprint.ancestors[milestone]
        steps = [step for step in steps if (own := tried.get(step.t)) is None or own == milestone or own in above]
    return (actions[start - 1] if anchor is not None and start else None), tuple(steps)
