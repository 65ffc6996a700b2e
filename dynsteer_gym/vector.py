"""Many episodes side by side, with one judge batch for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array

from dynsteer_gym.envs.discrete import DiscreteActions
from dynsteer_gym.wrapper import DynSTEERWrapper

__all__ = ["DynSTEERVectorEnv", "EnvBatch"]

Result = tuple[Any, float, bool, bool, dict[str, Any]]


class EnvBatch:
    """Runs the parts of a step over several envs, and reviews what all of them have due in one batch.

    Attributes:
        envs: The envs, each a ``DynSTEERWrapper`` or a ``DiscreteActions`` right over one.
    """

    def __init__(self, envs: Sequence[gym.Env[Any, Any]]) -> None:
        """Takes the envs.

        Args:
            envs: Envs that share one judge.

        Raises:
            TypeError: An env is neither of the two kinds.
        """
        self.envs = list(envs)
        self._parts: list[tuple[DiscreteActions | None, DynSTEERWrapper]] = []
        for env in self.envs:
            discrete = env if isinstance(env, DiscreteActions) else None
            core = discrete.env if discrete is not None else env
            if not isinstance(core, DynSTEERWrapper):
                raise TypeError(f"EnvBatch needs DynSTEERWrapper envs, bare or under DiscreteActions; got {env}")
            self._parts.append((discrete, core))
        self._judge = self._parts[0][1].judge

    def step(self, actions: Sequence[Any], places: Sequence[int] | None = None, out: Sequence[Any] | None = None) -> list[Result]:
        """One step of the envs at ``places`` (all by default), in order.

        Args:
            actions: One action for each of them.
            places: Which envs are stepped.
            out: Arrays that their observations are written to, one for each; discrete interface only.
        """
        parts = self._parts if places is None else [self._parts[place] for place in places]
        outcomes = [
            core.act(action if discrete is None else discrete.translate(int(action)))
            for (discrete, core), action in zip(parts, actions, strict=True)
        ]
        self._review([core for _, core in parts], outcomes)
        results: list[Result] = []
        for place, ((discrete, core), outcome) in enumerate(zip(parts, outcomes, strict=True)):
            observation, reward, terminated, truncated, info = core.finish(outcome)
            if discrete is not None:
                discrete.follow(info)
                target = None if out is None else out[place]
                results.append((discrete.observe(target), reward, terminated, truncated, info))
            else:
                results.append((observation, reward, terminated, truncated, info))
        return results

    def _review(self, cores: list[DynSTEERWrapper], outcomes: Sequence[Any]) -> None:
        waiting = cores
        while waiting:
            requests: list[Any] = []
            owners: list[tuple[Any, int]] = []
            for core in waiting:
                evaluator = core.evaluator
                assert evaluator is not None
                due = evaluator.reviews()
                if due:
                    owners.append((core, len(due)))
                    requests.extend(due)
            if not requests:
                return
            try:
                reviews = self._judge.review(requests)
            except Exception:
                self._one_by_one(owners, requests, dict(zip(map(id, cores), outcomes, strict=True)))
                return
            start = 0
            for core, count in owners:
                core.evaluator.apply(reviews[start : start + count])
                start += count
            waiting = [core for core, _ in owners]


    def _one_by_one(self, owners: list[tuple[Any, int]], requests: list[Any], outcomes: dict[int, Any]) -> None:
        """After a batch that failed: each env by itself, so that only those whose review fails are at fault."""
        start = 0
        for core, count in owners:
            due = requests[start : start + count]
            start += count
            try:
                while due:
                    core.evaluator.apply(self._judge.review(due))
                    due = core.evaluator.reviews()
            except Exception as error:
                core.mark_fault(outcomes[id(core)], "judge", error)


class DynSTEERVectorEnv(gym.vector.VectorEnv[Any, Any, Any]):
    """The vector entry point of the registered ids: all envs in one process, one judge batch a step.

    >>> import gymnasium as gym, dynsteer_gym
    >>> envs = gym.make_vec("DynSTEER-ToolSandbox-v0", num_envs=3)
    >>> observations, infos = envs.reset(seed=0)
    >>> len(observations)
    3
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": ["ansi"]}

    def __init__(
        self,
        make: Callable[[], gym.Env[Any, Any]],
        num_envs: int,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
    ) -> None:
        """Makes the envs.

        Args:
            make: Makes one env.
            num_envs: How many, >= 1.
            autoreset_mode: When a finished env is reset: at the next step, in the same step, or never.
            max_episode_steps: Truncates an episode after so many steps.

        Raises:
            ValueError: ``num_envs`` is below 1 or the mode is unknown.
        """
        if num_envs < 1:
            raise ValueError(f"num_envs is at least 1; got {num_envs}")
        self.num_envs = num_envs
        self.envs = [make() for _ in range(num_envs)]
        self._batch = EnvBatch(self.envs)
        self._mode = AutoresetMode(autoreset_mode)
        self.metadata = {**type(self).metadata, "autoreset_mode": self._mode}
        self.render_mode = self.envs[0].render_mode
        self.single_observation_space = self.envs[0].observation_space
        self.single_action_space = self.envs[0].action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._limit = max_episode_steps
        self._steps = np.zeros(num_envs, np.int64)
        self._done = np.zeros(num_envs, np.bool_)
        self._observations: list[Any] = [None] * num_envs

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts all episodes, or those of ``options["reset_mask"]``; env ``i`` gets ``seed + i``."""
        seeds: Sequence[int | None]
        if seed is None:
            seeds = [None] * self.num_envs
        elif isinstance(seed, int):
            seeds = [seed + place for place in range(self.num_envs)]
        else:
            seeds = seed
            if len(seeds) != self.num_envs:
                raise ValueError(f"one seed for each of the {self.num_envs} envs is expected; got {len(seeds)}")
        mask = np.ones(self.num_envs, np.bool_)
        if options is not None and "reset_mask" in options:
            options = dict(options)
            mask = np.asarray(options.pop("reset_mask"), np.bool_)
            options = options or None
        infos: dict[str, Any] = {}
        for place in range(self.num_envs):
            if not mask[place]:
                continue
            self._observations[place], info = self.envs[place].reset(seed=seeds[place], options=options)
            self._steps[place] = 0
            self._done[place] = False
            infos = self._add_info(infos, info, place)
        return self._stacked(), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One step of all envs."""
        given = list(gym.vector.utils.iterate(self.action_space, actions))
        rewards = np.zeros(self.num_envs, np.float64)
        terminations = np.zeros(self.num_envs, np.bool_)
        truncations = np.zeros(self.num_envs, np.bool_)
        infos: dict[str, Any] = {}
        if self._mode is AutoresetMode.DISABLED and self._done.any():
            raise gym.error.ResetNeeded(f"envs {np.flatnonzero(self._done).tolist()} have ended; reset them with reset_mask")
        running = np.flatnonzero(~self._done).tolist()
        if self._mode is AutoresetMode.NEXT_STEP:
            for place in np.flatnonzero(self._done).tolist():
                infos = self._restart(place, infos)
        for place, result in zip(running, self._batch.step([given[i] for i in running], running), strict=True):
            observation, reward, terminated, truncated, info = result
            self._steps[place] += 1
            if self._limit is not None and self._steps[place] >= self._limit and not terminated:
                truncated = True
            self._observations[place] = observation
            rewards[place], terminations[place], truncations[place] = reward, terminated, truncated
            if terminated or truncated:
                self._done[place] = True
                if self._mode is AutoresetMode.SAME_STEP:
                    infos = self._add_info(infos, {"final_obs": observation, "final_info": info}, place)
                    infos = self._restart(place, infos)
                    continue
            infos = self._add_info(infos, info, place)
        return self._stacked(), rewards, terminations, truncations, infos

    def _restart(self, place: int, infos: dict[str, Any]) -> dict[str, Any]:
        self._observations[place], info = self.envs[place].reset()
        self._steps[place] = 0
        self._done[place] = False
        return self._add_info(infos, info, place)

    def _stacked(self) -> Any:
        out = create_empty_array(self.single_observation_space, self.num_envs)
        return concatenate(self.single_observation_space, self._observations, out)

    def action_masks(self) -> np.ndarray[Any, Any]:
        """Masks of the discrete interface, shape ``(num_envs, max_candidates)``."""
        return np.stack([env.get_wrapper_attr("action_masks")() for env in self.envs])

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of every env, or reads an attribute of every env."""
        results = []
        for env in self.envs:
            found = env.get_wrapper_attr(name)
            results.append(found(*args, **kwargs) if callable(found) else found)
        return tuple(results)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Reads an attribute of every env."""
        return tuple(env.get_wrapper_attr(name) for env in self.envs)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of every env, to one value each or the same for all."""
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        for env, value in zip(self.envs, values, strict=True):
            env.set_wrapper_attr(name, value)

    def render(self) -> tuple[Any, ...] | None:
        """What each env renders."""
        return tuple(env.render() for env in self.envs)

    def close_extras(self, **kwargs: Any) -> None:
        """Closes all envs."""
        for env in self.envs:
            env.close()
