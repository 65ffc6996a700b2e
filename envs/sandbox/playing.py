"""Plays scenarios with their own plans: for building, checking and labelling them. Hidden side."""

from __future__ import annotations

from collections.abc import Sequence

from dynsteer_gym.envs.sandbox.agents import Expert, other_routes
from dynsteer_gym.envs.sandbox.draw import Plan
from dynsteer_gym.envs.sandbox.env import SandboxEnv
from dynsteer_gym.envs.sandbox.instance import Instance

__all__ = ["play_plans", "solved", "user_turns"]


def play_plans(instance: Instance, plans: Sequence[Plan] | None = None) -> tuple[float, SandboxEnv]:
    """Plays a scenario's plan, or others.

    Args:
        instance: The scenario.
        plans: One plan for each request, or ``None`` for the expert's own.

    Returns:
        The native score, 0 where the turns ran out, and the env at the end.
    """
    env = SandboxEnv()
    env.start(instance)
    expert = Expert(instance, plans)
    observation, done, score = env.task_view.request, False, 0.0
    while not done:
        observation, score, terminated, truncated, _ = env.step(expert.act(observation))
        done = terminated or truncated
    return score, env


def user_turns(instance: Instance) -> int:
    """What the user says while the expert plays, the closing words left out."""
    _, env = play_plans(instance)
    return sum(message["role"] == "user" for message in env.messages) - 1


def solved(instance: Instance) -> bool:
    """Whether the expert and every other route reach native score 1."""
    return all(play_plans(instance, plans)[0] == 1.0 for plans in (None, *other_routes(instance)))
