"""Gymnasium ids, registered when the package is imported."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

__all__ = ["EVALUATED", "WORLD", "make_env", "make_vector_env", "make_world", "register"]

EVALUATED = "DynSTEER-ToolSandbox-v0"
"""The world with stage reward and early stops."""
WORLD = "ToolSandbox-v0"
"""The bare world: native score at the end."""


def register() -> None:
    """Registers both ids; registering twice changes nothing."""
    if EVALUATED not in gym.registry:
        gym.register(
            EVALUATED,
            entry_point="dynsteer_gym.registration:make_env",
            vector_entry_point="dynsteer_gym.registration:make_vector_env",
        )
    if WORLD not in gym.registry:
        gym.register(WORLD, entry_point="dynsteer_gym.registration:make_world")


def make_env(**settings: Any) -> gym.Env[Any, Any]:
    """One evaluated env.

    Args:
        **settings: Fields of :class:`~dynsteer_gym.settings.EnvSettings`.

    Raises:
        ConfigurationError: A setting is unknown, of the wrong type or out of range.
    """
    from dynsteer_gym.settings import EnvSettings

    return EnvSettings.read(settings).make()


def make_world(**settings: Any) -> gym.Env[Any, Any]:
    """One bare world.

    Args:
        **settings: Fields of :class:`~dynsteer_gym.settings.WorldSettings`.

    Raises:
        ConfigurationError: A setting is unknown, of the wrong type or out of range.
    """
    from dynsteer_gym.settings import WorldSettings

    return WorldSettings.read(settings).make_world()


def make_vector_env(num_envs: int = 1, **settings: Any) -> gym.vector.VectorEnv[Any, Any, Any]:
    """Many evaluated envs in one process, reviewed in one judge batch a step.

    Args:
        num_envs: How many, >= 1.
        **settings: Fields of :class:`~dynsteer_gym.settings.EnvSettings`, and of
            :class:`~dynsteer_gym.vector.DynSTEERVectorEnv`: ``autoreset_mode``, ``max_episode_steps``.

    Raises:
        ConfigurationError: A setting is unknown, of the wrong type or out of range.
    """
    from dynsteer_gym.settings import EnvSettings
    from dynsteer_gym.vector import DynSTEERVectorEnv

    own = {key: settings.pop(key) for key in ("autoreset_mode", "max_episode_steps") if key in settings}
    read = EnvSettings.read(settings)
    return DynSTEERVectorEnv(read.make, num_envs, **own)


for _entry in (make_env, make_world):
    _entry.metadata = {"render_modes": ["ansi", "human"]}  # type: ignore[attr-defined]
