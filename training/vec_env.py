"""SB3's ``VecEnv`` over the batched evaluator, in this process or over several."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvIndices, VecEnvObs, VecEnvStepReturn

from dynsteer_gym.envs.actions import AssistantTurn
from dynsteer_gym.envs.discrete import DiscreteActions
from dynsteer_gym.evaluation.stopping import Criterion
from dynsteer_gym.settings import EnvSettings
from dynsteer_gym.training.evaluate import family_of
from dynsteer_gym.vector import EnvBatch
from dynsteer_gym.wrapper import DynSTEERWrapper

__all__ = ["BatchedVecEnv", "ControlEpisode", "EpisodeRecord", "Lane"]

EpisodeRecord = dict[str, Any]
"""What the learner's side keeps of a finished episode: return, length, success, stop criterion, family."""


_LEARNED, _LEAST = 0.05, 0.08
"""Step of a family's running success rate, and the weight that a solved family keeps."""


class ControlEpisode(NamedTuple):
    """A stopped episode that is to be played on.

    Attributes:
        env: Its copy without stop rules, or ``None`` where no turn was left.
        turn: The turn that the stop intercepted, to be sent first, or ``None``.
        criterion: What had stopped it.
    """

    env: DiscreteActions | None
    turn: AssistantTurn | None
    criterion: str


class Lane:
    """Some envs with autoreset: what one process steps.

    Besides the envs it keeps the *control arm*: copies of a share of the stopped episodes, played on without stops by
    the same policy and unseen by the learner, which measure what a stop saves and whether it was false.
    """

    def __init__(
        self,
        settings: dict[str, Any],
        seeds: Sequence[int],
        *,
        curriculum: bool = False,
        anneal: bool = False,
        control_share: float = 0.0,
    ) -> None:
        """Makes the envs.

        Args:
            settings: Keyword arguments of ``gym.make``.
            seeds: One env for each, and its first seed.
            curriculum: Draw families that seldom succeed more often.
            anneal: Multiply ``lambda`` of an episode's stage reward by one minus its family's running success rate, so
                that what is solved is paid by its outcome alone and what is not keeps its stages' pay.
            control_share: Share of stopped episodes that are kept for the control arm.
        """
        made = EnvSettings.read(settings)
        count = len(seeds)
        envs = [made.make() for _ in seeds]
        for env in envs:
            if not isinstance(env, DiscreteActions):
                raise TypeError("training steps the discrete interface: pass interface='discrete'")
        self.batch = EnvBatch(envs)
        self.envs: list[DiscreteActions] = list(self.batch.envs)  # type: ignore[arg-type]
        self._seeds = list(seeds)
        self._returns = [0.0] * count
        self._lengths = [0] * count
        self._sides: tuple[NDArray[np.float32], NDArray[np.float32]] = (np.zeros((0, 0), np.float32),) * 2
        self._control_share = control_share
        self._control: list[ControlEpisode] = []
        self._draws = np.random.default_rng([*seeds[:1], 0xC0])
        self._curriculum = curriculum
        self._anneal = anneal
        self._scale = self._core(self.envs[0]).reward.scale
        self._learned: dict[str, float] = {}
        self._finished = 0

    def use(self, first: NDArray[np.float32], second: NDArray[np.float32]) -> None:
        """Sets the two arrays, each of shape ``(count, features)``, that observations are written to in turn."""
        self._sides = (first, second)

    def reset(self, side: int) -> NDArray[np.bool_]:
        """Starts all episodes.

        Args:
            side: Which of the two arrays the observations are written to.

        Returns:
            The masks, shape ``(count, max_candidates)``.
        """
        out = self._sides[side]
        for place, env in enumerate(self.envs):
            out[place], _ = env.reset(seed=self._seeds[place])
            self._returns[place], self._lengths[place] = 0.0, 0
        return self._masks()

    def _masks(self) -> NDArray[np.bool_]:
        return np.stack([env.action_masks() for env in self.envs])

    def step(self, actions: Sequence[int], side: int) -> tuple[Any, ...]:
        """One step of all envs; a finished env is reset at once.

        Args:
            actions: One position for each env.
            side: Which of the two arrays the observations are written to.

        Returns:
            Rewards, ends, infos and masks.
        """
        out = self._sides[side]
        results = self.batch.step(actions, out=out)
        count = len(results)
        rewards = np.empty(count, np.float32)
        dones = np.zeros(count, np.bool_)
        infos: list[dict[str, Any]] = []
        for place, (observation, reward, terminated, truncated, info) in enumerate(results):
            rewards[place] = reward
            self._returns[place] += reward
            self._lengths[place] += 1
            kept: dict[str, Any] = {}
            if terminated or truncated:
                dones[place] = True
                env = self.envs[place]
                stop = info["stop"]
                kept = {
                    "TimeLimit.truncated": truncated and not terminated,
                    "is_success": info["is_success"],
                    "episode": {"r": self._returns[place], "l": self._lengths[place], "t": 0.0},
                    "stop": None if stop is None else str(stop.criterion),
                    "native": info.get("native_score") or 0.0,
                    "stage_return": info["rollout_score"],
                    "left_out": info["candidates_left_out"],
                    "turns_left": max(0, env.unwrapped.max_turns - self._lengths[place]),  # type: ignore[attr-defined]
                }
                self._learn(env, bool(info["is_success"]))
                if stop is not None and self._draws.random() < self._control_share:
                    self._keep(env, stop.criterion)
                if kept["TimeLimit.truncated"]:  # The learner reads it only here.
                    kept["terminal_observation"] = observation.copy()
                out[place], _ = env.reset()
                if self._anneal:
                    reward = self._core(env).reward
                    reward.scale = self._scale * (1.0 - self._learned.get(family_of(env), 0.0))
                    reward.reset()  # It reads the scale of an episode here, before anything was paid.
                self._returns[place], self._lengths[place] = 0.0, 0
            infos.append(kept)
        return rewards, dones, infos, self._masks()

    def _keep(self, env: DiscreteActions, criterion: Criterion) -> None:
        base: Any = env.unwrapped
        if base.turn >= base.max_turns:
            self._control.append(ControlEpisode(None, None, str(criterion)))
            return
        kept = env.fork()
        self._core(kept).lift_stop()
        # An intercepted call was not run; without stops it would have been.
        turn = env.last_turn if criterion == Criterion.MINEFIELD else None
        self._control.append(ControlEpisode(kept, turn, str(criterion)))

    def take_control(self) -> list[ControlEpisode]:
        """Hands over the control arm's episodes that were kept since the last time."""
        kept, self._control = self._control, []
        return kept

    @staticmethod
    def _core(env: DiscreteActions) -> DynSTEERWrapper:
        core = env.env
        assert isinstance(core, DynSTEERWrapper)
        return core

    def _learn(self, env: DiscreteActions, success: bool) -> None:
        """Keeps the families' running success rates; families weigh by how far they are from being solved."""
        name = family_of(env)
        known = self._learned.get(name, 0.0)
        self._learned[name] = known + _LEARNED * (success - known)
        self._finished += 1
        if self._curriculum and self._finished % 32 == 0:
            weights = {family: _LEAST + 1.0 - rate for family, rate in self._learned.items()}
            for other in self.envs:
                other.unwrapped.reweight(weights)  # type: ignore[attr-defined]

    def state(self) -> Any:
        """All that a later process needs to go on: the envs in mid-episode and their books."""
        return self.envs, self._returns, self._lengths, self._learned, self._finished, self._draws

    def save(self, path: str) -> None:
        """Writes the state to a file."""
        with open(path, "wb") as file:
            pickle.dump(self.state(), file, protocol=pickle.HIGHEST_PROTOCOL)

    def read(self, path: str) -> None:
        """Goes on from a file."""
        with open(path, "rb") as file:
            self.load(pickle.load(file))

    def load(self, state: Any) -> None:
        """Goes on from a state."""
        self.envs, self._returns, self._lengths, self._learned, self._finished, self._draws = state
        self.batch = EnvBatch(self.envs)


def _sides(shared: Any, num_envs: int) -> NDArray[np.float32]:
    """Shared memory as two arrays, shape ``(2, num_envs, features)``."""
    return np.frombuffer(shared, np.float32).reshape(2, num_envs, -1)


def _serve(
    pipe: Any, settings: dict[str, Any], first: int, seeds: Sequence[int], shared: Any, num_envs: int, arts: dict[str, Any]
) -> None:
    """The loop of a worker process; observations go through shared memory, the rest through the pipe."""
    lane = Lane(settings, seeds, **arts)
    lane.use(*_sides(shared, num_envs)[:, first : first + len(seeds)])
    # Episodes are trees without cycles to speak of; looking for some at Python's usual pace costs a tenth of the time.
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)
    while True:
        try:
            name, arguments = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        if name == "close":
            pipe.close()
            return
        try:
            pipe.send((None, getattr(lane, name)(*arguments)))
        except KeyboardInterrupt:
            return
        except Exception as error:
            pipe.send((error, None))


class BatchedVecEnv(VecEnv):
    """Envs for SB3: one :class:`Lane` in this process, or several in processes of their own.

    Observations are written to two arrays in turn, without copies: what ``step`` returns holds until the step after the
    next one, which is as long as SB3's on-policy algorithms read it. An ended episode's last observation is in its info
    (``terminal_observation``) where it was truncated, the only place where they read it.
    """

    def __init__(
        self,
        settings: dict[str, Any],
        num_envs: int,
        *,
        workers: int = 1,
        seed: int = 0,
        curriculum: bool = False,
        anneal: bool = False,
        control_share: float = 0.0,
    ) -> None:
        """Makes the envs.

        Args:
            settings: Keyword arguments of ``gym.make``; the interface is discrete.
            num_envs: How many envs in all.
            workers: How many processes step them; 1 means this one.
            seed: Env ``i`` starts with seed ``seed + i``.
            curriculum: Draw families that seldom succeed more often.
            anneal: Pay stages less, the more often an episode's family succeeds.
            control_share: Share of stopped episodes that are kept for the control arm (:meth:`take_control`).
        """
        arts = {"curriculum": curriculum, "anneal": anneal, "control_share": control_share}
        self._settings = {**settings, "interface": "discrete", "report": False}
        probe = EnvSettings.read(self._settings).make()
        workers = max(1, min(workers, num_envs))
        counts = [num_envs // workers + (place < num_envs % workers) for place in range(workers)]
        starts = np.cumsum([0, *counts])
        seeds = [[seed + int(starts[w]) + i for i in range(counts[w])] for w in range(workers)]
        self._slices = [slice(int(starts[w]), int(starts[w + 1])) for w in range(workers)]
        self._lane: Lane | None = None
        self._pipes: list[Any] = []
        self._processes: list[Any] = []
        width = int(np.prod(probe.observation_space.shape or (0,)))
        self._side = 0
        if workers == 1:
            self._sides: NDArray[np.float32] = np.zeros((2, num_envs, width), np.float32)
            self._lane = Lane(self._settings, seeds[0], **arts)
            self._lane.use(*self._sides)
        else:
            context = multiprocessing.get_context("forkserver")
            shared = context.RawArray("f", 2 * num_envs * width)
            self._sides = _sides(shared, num_envs)
            for place in range(workers):
                mine, theirs = context.Pipe()
                given = (theirs, self._settings, int(starts[place]), seeds[place], shared, num_envs, arts)
                process = context.Process(target=_serve, args=given, daemon=True)
                process.start()
                theirs.close()
                self._pipes.append(mine)
                self._processes.append(process)
        self._masks: NDArray[np.bool_] = np.zeros((num_envs, int(probe.action_space.n)), np.bool_)  # type: ignore[attr-defined]
        self._given: NDArray[np.int64] | None = None
        super().__init__(num_envs, probe.observation_space, probe.action_space)

    def _all(self, name: str, *arguments: Any) -> list[Any]:
        if self._lane is not None:
            return [getattr(self._lane, name)(*arguments)]
        for pipe in self._pipes:
            pipe.send((name, arguments))
        return self._collect()

    def _collect(self) -> list[Any]:
        results = []
        for pipe in self._pipes:
            error, result = pipe.recv()
            if error is not None:
                raise error
            results.append(result)
        return results

    def reset(self) -> VecEnvObs:
        """Starts all episodes."""
        self._side = 1 - self._side
        self._masks = np.concatenate(self._all("reset", self._side))
        return self._sides[self._side]

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Sends one action to each env."""
        self._given = actions
        self._side = 1 - self._side
        for pipe, part in zip(self._pipes, self._slices, strict=False):
            pipe.send(("step", (actions[part].tolist(), self._side)))

    def step_wait(self) -> VecEnvStepReturn:
        """Collects what the step brought."""
        assert self._given is not None
        parts = self._collect() if self._lane is None else [self._lane.step(self._given.tolist(), self._side)]
        self._masks = np.concatenate([part[3] for part in parts])
        infos = [info for part in parts for info in part[2]]
        rewards, dones = (np.concatenate([part[which] for part in parts]) for which in (0, 1))
        return self._sides[self._side], rewards, dones, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Masks of all envs, shape ``(num_envs, max_candidates)``."""
        return self._masks

    def take_control(self) -> list[ControlEpisode]:
        """The stopped episodes that were kept for the control arm since the last time."""
        return [kept for part in self._all("take_control") for kept in part]

    def begin_save(self, paths: Sequence[str]) -> None:
        """Has each lane write its state to a file; worker processes do so while the learner goes on.

        Args:
            paths: One file for each lane.
        """
        if self._lane is not None:
            self._lane.save(paths[0])
        for pipe, path in zip(self._pipes, paths, strict=False):
            pipe.send(("save", (path,)))

    def end_save(self) -> NDArray[np.bool_]:
        """Waits for the files; returns the masks that belong to them."""
        if self._lane is None:
            self._collect()
        return self._masks

    @property
    def lanes(self) -> int:
        """How many lanes there are."""
        return max(1, len(self._pipes))

    def load(self, paths: Sequence[str], masks: NDArray[np.bool_]) -> None:
        """Goes on from files of as many lanes."""
        self._masks = masks
        if self._lane is not None:
            self._lane.read(paths[0])
        for pipe, path in zip(self._pipes, paths, strict=False):
            pipe.send(("read", (path,)))
        if self._lane is None:
            self._collect()

    def close(self) -> None:
        """Ends the worker processes."""
        for pipe in self._pipes:
            try:
                pipe.send(("close", ()))
            except (BrokenPipeError, OSError):
                pass
        for process in self._processes:
            process.join(timeout=5)
            if process.is_alive():
                process.terminate()
        self._pipes, self._processes = [], []

    def env_method(self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any) -> list[Any]:
        """SB3 asks for ``action_masks`` this way."""
        if method_name == "action_masks":
            return list(self._masks)
        raise AttributeError(f"the training envs offer action_masks, not {method_name}")

    def has_attr(self, attr_name: str) -> bool:
        """Whether all envs have an attribute."""
        return attr_name == "action_masks"

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Reads an attribute of some envs; of those that SB3 asks for."""
        if attr_name == "render_mode":
            return [None for _ in self._get_indices(indices)]
        if attr_name == "action_masks":
            return [self.action_masks for _ in self._get_indices(indices)]
        raise AttributeError(f"the training envs have no attribute {attr_name}")

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Not offered: the envs may live in other processes."""
        raise AttributeError(f"the training envs' attributes cannot be set from here; got {attr_name}")

    def env_is_wrapped(self, wrapper_class: type, indices: VecEnvIndices = None) -> list[bool]:
        """No wrappers of Gymnasium's or SB3's are there."""
        return [False for _ in self._get_indices(indices)]

