"""The budgets, measured: what ``dynsteer bench`` prints. Medians; machines differ, so nothing here is a test."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

__all__ = ["measure"]

_CALLS = (
    '{"name": "search_contacts", "arguments": {"name": "Ada"}}',
    '{"name": "get_settings", "arguments": {}}',
    '{"name": "search_messages", "arguments": {}}',
)
_FIRST = """
import json, sys, time
start = time.perf_counter()
import gymnasium as gym, dynsteer_gym
env = gym.make("DynSTEER-ToolSandbox-v0", judge="cheap")
env.reset(seed=0)
env.step("What is the number?")
print(json.dumps([time.perf_counter() - start, "torch" in sys.modules]))
"""
_LOAD = """
import json, time
import gymnasium as gym, dynsteer_gym
gym.make("DynSTEER-ToolSandbox-v0", judge="cheap").reset(seed=0)
start = time.perf_counter()
gym.make("DynSTEER-ToolSandbox-v0", judge="cheap", suite="dynsteer-509", split="all")
print(json.dumps(time.perf_counter() - start))
"""
_MEMORY = """
import json, gymnasium as gym, dynsteer_gym
def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024
import numpy, pydantic, networkx
before = resident()
envs = [gym.make("DynSTEER-ToolSandbox-v0", judge="cheap", disable_env_checker=True, **SETTINGS) for _ in range(1000)]
for seed, env in enumerate(envs):
    env.reset(seed=seed)
    env.step('{"name": "get_settings", "arguments": {}}')
print(json.dumps(resident() - before))
"""


def _fresh(code: str) -> Any:
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(found.stdout.strip().splitlines()[-1])


def _us(call: Callable[[], Any], count: int, rounds: int = 7) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - start) / count)
    return round(median(times) * 1e6, 2)


def _stepper(env: Any) -> Callable[[], Any]:
    place = 0

    def step() -> None:
        nonlocal place
        env.step(_CALLS[place % 3])
        place += 1

    return step


def _evaluated(**settings: Any) -> Any:
    import gymnasium as gym

    import dynsteer_gym  # noqa: F401

    env: Any = gym.make("DynSTEER-ToolSandbox-v0", judge="cheap", disable_env_checker=True, **settings)
    while not hasattr(env, "built_in"):
        env = env.env
    return env


def measure(tell: Callable[[str, Any], None] = lambda name, value: None, *, train: bool = True) -> dict[str, Any]:
    """Measures every line of the budget table.

    Args:
        tell: Called with each figure's name and value.
        train: Also measure the training rate, which takes half a minute.

    Returns:
        Figures by name: microseconds (``_us``), milliseconds (``_ms``), seconds (``_s``), MiB (``_mb``).
    """
    import numpy as np

    from dynsteer_gym.blueprint.compiler import BlueprintCompiler
    from dynsteer_gym.envs.sandbox import SandboxEnv

    figures: dict[str, Any] = {}

    def note(name: str, value: Any) -> None:
        figures[name] = value
        tell(name, value)

    world = SandboxEnv(max_turns=10**9)
    world.reset(options={"scenario": "send_message/0"})
    note("world_step_us", _us(_stepper(world), 300))

    env = _evaluated(stop="none", max_turns=10**9, report=False)
    env.reset(options={"scenario": "send_message/0"})
    step = _stepper(env)
    early, late = [], []
    for _ in range(15):
        env.reset(options={"scenario": "send_message/0"})
        for _ in range(5):
            step()
        early.append(_us(step, 10, 1))
        for _ in range(985):
            step()
        late.append(_us(step, 10, 1))
    note("wrapped_step_us", _us(step, 300))
    note("growth_ratio", round(median(late) / median(early), 3))

    plain = _evaluated(report=False)
    plain.reset(seed=0)
    for _ in range(3000):
        plain.reset()
    note("reset_us", _us(plain.reset, 300))

    times = []
    for seed in range(60):
        world.reset(seed=seed)
        compiler = BlueprintCompiler()
        start = time.perf_counter()
        compiler.compile(world.task_view)
        times.append(time.perf_counter() - start)
    note("compile_ms", round(median(times) * 1e3, 3))

    running = _evaluated(report=False)
    running.reset(options={"scenario": "send_message/0"})
    for _ in range(4):
        running.step(_CALLS[0])
    note("fork_us", _us(running.fork, 200))

    discrete = _evaluated(interface="discrete", report=False)
    discrete.reset(seed=0)
    random = np.random.default_rng(0)
    spent: list[float] = []
    for _ in range(6000):
        action = int(random.integers(int(discrete.action_masks().sum())))
        start = time.perf_counter()
        *_, terminated, truncated, _info = discrete.step(action)
        discrete.action_masks()
        spent.append(time.perf_counter() - start)
        if terminated or truncated:
            discrete.reset()
    note("discrete_step_us", round(median(spent) * 1e6, 2))
    note("discrete_step_mean_us", round(sum(spent) / len(spent) * 1e6, 2))

    first = [_fresh(_FIRST) for _ in range(5)]
    note("first_step_s", round(median(value for value, _ in first), 3))
    note("torch_imported", any(loaded for _, loaded in first))
    note("envs_1000_mb", round(_fresh(_MEMORY.replace("SETTINGS", "{}")), 1))
    suite = '{"suite": "dynsteer-509", "split": "all"}'
    note("suite_load_ms", round(median(_fresh(_LOAD) for _ in range(5)) * 1e3, 1))
    note("suite_envs_1000_mb", round(_fresh(_MEMORY.replace("SETTINGS", suite)), 1))
    whole = _evaluated(report=False, suite="dynsteer-509", split="all")
    whole.reset(seed=0)
    times = []
    for _ in range(400):
        start = time.perf_counter()
        whole.reset()
        times.append(time.perf_counter() - start)
    note("suite_reset_ms", round(median(times) * 1e3, 3))

    if train:
        from dynsteer_gym.training.config import TrainConfig
        from dynsteer_gym.training.runner import train as train_now

        rates: list[float] = []
        config = TrainConfig.from_preset("quick", total_steps=49_152, curve_every=10**9)
        train_now(config, progress=lambda steps, books, rate: rates.append(rate))
        note("train_steps_s", round(median(rates[3:]), 0))
    return figures
