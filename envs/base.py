"""What the wrapper asks of a world: a Gymnasium environment whose actions and observations are text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from dynsteer_gym.envs.actions import AssistantTurn
from dynsteer_gym.events import Event
from dynsteer_gym.task import TaskView

__all__ = ["Observer", "ToolEnv"]

Observer = Callable[[Event], bool]
"""Called with each event as it happens. For a ``TOOL_CALL`` it is called *before* the tool runs; returning ``True``
halts the episode there: the world stays as it is, later calls of the turn are not run, and ``step`` returns."""


def _plain(value: Any) -> Any:
    """Models become mappings, tuples lists, so that a spec can be written as JSON."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


class ToolEnv(gym.Env[str, str]):
    """A tool-using world, text in and text out.

    The action is the assistant's text (or an already parsed :class:`~dynsteer_gym.envs.actions.AssistantTurn`, which
    spares the parsing); the observation is the text that the agent sees next. ``step`` pays the native score as reward
    at a true end and 0 elsewhere.

    ``info`` of ``reset``: ``task_id``, ``messages`` (the conversation so far) and ``tools``, both in OpenAI chat format.
    ``info`` of ``step``: ``messages`` (the new ones); at an end ``native_score`` and ``is_success``; ``world_end``
    where the world itself ended the episode (a native minefield), ``fault`` where world or user failed.

    Attributes:
        task_view: The public view of the running task, as it now stands.
        observer: Sees each event as it happens, or ``None``.
        max_turns: The most assistant turns of an episode; the last one truncates.
        turn: Assistant turns taken so far.
    """

    task_view: TaskView
    observer: Observer | None = None
    max_turns: int
    turn: int
    _spec: EnvSpec | None = None

    @property
    def spec(self) -> EnvSpec | None:  # type: ignore[override]
        """The spec that rebuilds the env; its keyword arguments are plain JSON data."""
        return self._spec

    @spec.setter
    def spec(self, value: EnvSpec | None) -> None:
        if value is not None:
            value.kwargs = {key: _plain(item) for key, item in value.kwargs.items()}
        self._spec = value

    @abstractmethod
    def step(self, action: str | AssistantTurn) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Runs one assistant turn."""

    @abstractmethod
    def drain_events(self) -> list[Event]:
        """The events since the last call, in order. They are the same that the observer saw."""

    @abstractmethod
    def native_score(self) -> float:
        """The world's own score of the episode as it stands, in [0, 1]. Hidden side: the wrapper reads it at a true end."""

    def native_progress(self) -> float:
        """How far the world's own score has come, in [0, 1], never falling. Hidden side: for ``reward="native_dense"``.

        Raises:
            NotImplementedError: The world's score is known at the end only.
        """
        raise NotImplementedError(f"{type(self).__name__} tells its score at the end only")

    def snapshot(self) -> Any:
        """The running episode as an opaque value; O(1) where the world's state is a value.

        Raises:
            NotImplementedError: The world cannot.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot take snapshots")

    def restore(self, snapshot: Any) -> None:
        """Goes back to a snapshot of this or another env of the same world.

        Raises:
            NotImplementedError: The world cannot.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot restore snapshots")

    def fork(self) -> Self:
        """An independent copy of the running episode.

        Raises:
            NotImplementedError: The world cannot.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be forked")
