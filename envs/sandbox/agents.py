"""Scripted agents, hidden side: the expert of every scenario, its other legal routes, and some that fail."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from dynsteer_gym.envs.actions import AssistantTurn, ToolCall
from dynsteer_gym.envs.sandbox.draw import Found, Plan
from dynsteer_gym.envs.sandbox.instance import Instance

__all__ = ["Expert", "Refuser", "Silent", "other_routes"]


class Expert:
    """Plays a scenario's own plan, request after request; native score 1.

    >>> from dynsteer_gym.envs.sandbox import SandboxEnv
    >>> env = SandboxEnv()
    >>> obs, info = env.reset(seed=0)
    >>> expert, done = Expert(env.instance), False
    >>> while not done:
    ...     obs, score, done, _, info = env.step(expert.act(obs))
    >>> score
    1.0
    """

    def __init__(
        self, instance: Instance, plans: Sequence[Plan] | None = None, returns: Mapping[str, Any] | None = None
    ) -> None:
        """Takes the plans.

        Args:
            instance: The scenario.
            plans: One plan for each request instead of the expert's own.
            returns: What tools have returned before, by their own names.
        """
        chosen = [request.plan for request in instance.requests] if plans is None else plans
        self._turns = [turn for plan in chosen for turn in plan]
        self._scramble = instance.scramble
        self._place = 0
        self._called = ""
        self._returns: dict[str, Any] = dict(returns or {})

    def act(self, observation: str) -> AssistantTurn:
        """The next turn; an empty message once the plan is over."""
        if self._called:
            with suppress(ValueError):
                self._returns[self._called] = json.loads(observation)
            self._called = ""
        if self._place >= len(self._turns):
            return AssistantTurn(message="")
        turn = self._turns[self._place]
        self._place += 1
        if isinstance(turn, str):
            return AssistantTurn(message=turn)
        self._called = turn[0]
        name, arguments = turn[0], {key: self._value(value) for key, value in turn[1].items()}
        if self._scramble is not None:
            name, arguments = self._scramble.show(name, arguments)
        return AssistantTurn(calls=(ToolCall(name, arguments),))

    def _value(self, value: object) -> object:
        if isinstance(value, Found):
            return self._returns.get(value.tool, {}).get(value.field, "")
        return value


def other_routes(instance: Instance) -> list[list[Plan]]:
    """Every alternative: for each request with other routes, the expert's plans with that one exchanged."""
    own = [request.plan for request in instance.requests]
    found = []
    for place, request in enumerate(instance.requests):
        for route in request.routes:
            found.append([*own[:place], route, *own[place + 1 :]])
    return found


class Refuser:
    """Refuses at once, in one line."""

    def act(self, observation: str) -> AssistantTurn:
        """A refusal."""
        return AssistantTurn(message="I cannot do that.")


class Silent:
    """Says nothing, does nothing."""

    def act(self, observation: str) -> AssistantTurn:
        """An empty message."""
        return AssistantTurn(message="")
