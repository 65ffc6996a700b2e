"""Stage-wise reward and early stops for tool-using agents, as Gymnasium environments.

>>> import gymnasium as gym
>>> import dynsteer_gym
>>> env = gym.make("DynSTEER-ToolSandbox-v0")
>>> observation, info = env.reset(seed=0)
>>> sorted(info)
['messages', 'task_id', 'tools']

Importing the package registers ``DynSTEER-ToolSandbox-v0`` and ``ToolSandbox-v0``; everything else is loaded when it
is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dynsteer_gym.registration import register

if TYPE_CHECKING:
    from dynsteer_gym.blueprint.compiler import BlueprintCompiler
    from dynsteer_gym.envs.base import ToolEnv
    from dynsteer_gym.evaluation.evaluator import StageEvaluator
    from dynsteer_gym.rewards import RewardConfig
    from dynsteer_gym.task import TaskView, ToolSpec
    from dynsteer_gym.vector import DynSTEERVectorEnv
    from dynsteer_gym.wrapper import DynSTEERWrapper

__version__ = "0.1.0"

_HOMES = {
    "BlueprintCompiler": "dynsteer_gym.blueprint.compiler",
    "DynSTEERVectorEnv": "dynsteer_gym.vector",
    "DynSTEERWrapper": "dynsteer_gym.wrapper",
    "RewardConfig": "dynsteer_gym.rewards",
    "StageEvaluator": "dynsteer_gym.evaluation.evaluator",
    "TaskView": "dynsteer_gym.task",
    "ToolEnv": "dynsteer_gym.envs.base",
    "ToolSpec": "dynsteer_gym.task",
}

__all__ = [
    "BlueprintCompiler",
    "DynSTEERVectorEnv",
    "DynSTEERWrapper",
    "RewardConfig",
    "StageEvaluator",
    "TaskView",
    "ToolEnv",
    "ToolSpec",
    "__version__",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dynsteer_gym' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))


register()
