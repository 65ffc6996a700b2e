"""Evaluation of agents: without stops, deterministic, on the splits that training never saw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, lgamma, log, log1p
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dynsteer_gym.envs.discrete import DiscreteActions
from dynsteer_gym.settings import EnvSettings
from dynsteer_gym.vector import EnvBatch
from dynsteer_gym.wrapper import DynSTEERWrapper

if TYPE_CHECKING:
    from dynsteer_gym.training.vec_env import ControlEpisode

__all__ = [
    "Agent",
    "Episode",
    "PolicyAgent",
    "RandomAgent",
    "SampledAgent",
    "at_most",
    "play",
    "play_expert",
    "play_on",
    "summarise",
]


class Agent(Protocol):
    """Chooses positions of the discrete interface."""

    def act(self, observations: NDArray[np.float32], masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """One position for each row.

        Args:
            observations: Shape ``(batch, features)``.
            masks: Shape ``(batch, max_candidates)``.
        """
        ...


class RandomAgent:
    """Uniform over the mask."""

    def __init__(self, seed: int = 0) -> None:
        """Seeds its own generator."""
        self._random = np.random.default_rng(seed)

    def act(self, observations: NDArray[np.float32], masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """One taken position for each row."""
        draws = self._random.random(masks.shape)
        return np.where(masks, draws, -1.0).argmax(axis=1)


class PolicyAgent:
    """The most likely action of an SB3 model with masks."""

    def __init__(self, model: Any) -> None:
        """Takes a ``MaskablePPO`` or its policy."""
        self._model = model

    def act(self, observations: NDArray[np.float32], masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """One position for each row."""
        actions, _ = self._model.predict(observations, deterministic=True, action_masks=masks)
        return np.asarray(actions, np.int64)


class SampledAgent:
    """Samples from an SB3 model with masks, by a generator of its own."""

    def __init__(self, model: Any, seed: Sequence[int]) -> None:
        """Takes a ``MaskablePPO`` and the seed of its draws."""
        self._model = model
        self._random = np.random.default_rng(list(seed))

    def act(self, observations: NDArray[np.float32], masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """One position for each row."""
        import torch

        policy = self._model.policy
        with torch.no_grad():
            spread = policy.get_distribution(policy.obs_to_tensor(observations)[0], action_masks=masks).distribution.probs
        edges = np.cumsum(np.where(masks, spread.cpu().numpy().astype(np.float64), 0.0), axis=1)
        points = self._random.random(len(edges)) * edges[:, -1]
        return (edges > points[:, None]).argmax(axis=1)


class Episode(NamedTuple):
    """How an episode went.

    Attributes:
        seed: The seed it was reset with.
        family: Hidden-side name of its scenario's family, for statistics only.
        success: Native score at least ``success_at``.
        native: Native score, 0 where there was no true end.
        stage_return: The rollout score Q in [0, 1].
        steps: Assistant turns taken.
    """

    seed: int
    family: str
    success: bool
    native: float
    stage_return: float
    steps: int


def family_of(env: Any) -> str:
    """The family of the running scenario: hidden side, for statistics only."""
    instance = getattr(env.unwrapped, "instance", None)
    return str(getattr(instance, "family", ""))


def _settings(settings: dict[str, Any], split: str) -> EnvSettings:
    return EnvSettings.read({**settings, "split": split, "stop": "none", "interface": "discrete", "report": False})


def play(
    agent: Agent, settings: dict[str, Any], split: str, seeds: Sequence[int], *, width: int = 64, on_episode: Callable[[], None] | None = None
) -> list[Episode]:
    """Plays one episode for each seed, without stops, several side by side.

    Args:
        agent: Who acts.
        settings: Keyword arguments of ``gym.make``; split, stop rules and interface are set here.
        split: Split to play on.
        seeds: One seed for each episode; they alone decide the scenarios.
        width: Episodes side by side.
        on_episode: Called after each episode.

    Returns:
        The episodes in the order of the seeds.
    """
    made = _settings(settings, split)
    envs: list[DiscreteActions] = [made.make() for _ in range(min(width, len(seeds)))]  # type: ignore[misc]
    batch = EnvBatch(envs)
    waiting = list(enumerate(seeds))[::-1]
    finished: dict[int, Episode] = {}
    running: dict[int, tuple[int, int, int, str, Any]] = {}

    def start(place: int) -> None:
        if waiting:
            number, seed = waiting.pop()
            observation, _ = envs[place].reset(seed=int(seed))
            running[place] = (number, int(seed), 0, family_of(envs[place]), observation)
        else:
            running.pop(place, None)

    for place in range(len(envs)):
        start(place)
    while running:
        places = sorted(running)
        observations = np.stack([running[place][4] for place in places])
        masks = np.stack([envs[place].action_masks() for place in places])
        actions = agent.act(observations, masks)
        for place, result in zip(places, batch.step(list(actions), places), strict=True):
            observation, _, terminated, truncated, info = result
            number, seed, steps, family, _ = running[place]
            if terminated or truncated:
                finished[number] = _episode(seed, family, steps + 1, info)
                start(place)
                if on_episode is not None:
                    on_episode()
            else:
                running[place] = (number, seed, steps + 1, family, observation)
    return [finished[number] for number in range(len(seeds))]


def _episode(seed: int, family: str, steps: int, info: dict[str, Any]) -> Episode:
    native = info.get("native_score")
    return Episode(seed, family, bool(info["is_success"]), float(native or 0.0), float(info["rollout_score"]), steps)


def play_on(agent: Agent, kept: Sequence[ControlEpisode]) -> list[tuple[int, bool]]:
    """Plays episodes of the control arm to their true ends or their budgets.

    Args:
        agent: Who acts.
        kept: Stopped episodes.

    Returns:
        For each, the turns that it took beyond the stop and whether it succeeded.
    """
    found: list[tuple[int, bool]] = [(0, False)] * len(kept)
    running: dict[int, DiscreteActions] = {}
    begun: dict[int, int] = {}

    def turn_of(env: DiscreteActions) -> int:
        return env.unwrapped.turn  # type: ignore[attr-defined]

    def settle(number: int, info: dict[str, Any]) -> None:
        found[number] = (turn_of(running.pop(number)) - begun[number], bool(info["is_success"]))

    for number, episode in enumerate(kept):
        if episode.env is None:
            continue
        running[number] = env = episode.env
        begun[number] = turn_of(env)
        if episode.turn is not None:
            _, _, terminated, truncated, info = env.env.step(episode.turn)  # type: ignore[arg-type]
            env.follow(info)
            if terminated or truncated:
                settle(number, info)
    observations = {number: env.observe() for number, env in running.items()}
    while running:
        numbers = sorted(running)
        envs = [running[number] for number in numbers]
        actions = agent.act(np.stack([observations[n] for n in numbers]), np.stack([env.action_masks() for env in envs]))
        for number, result in zip(numbers, EnvBatch(envs).step(list(actions)), strict=True):
            observations[number], _, terminated, truncated, info = result
            if terminated or truncated:
                settle(number, info)
    return found


def at_most(hits: int, trials: int, level: float = 0.95) -> float:
    """The exact (Clopper-Pearson) one-sided upper bound of a share.

    >>> round(at_most(0, 59), 3)
    0.05
    >>> at_most(3, 3)
    1.0

    Args:
        hits: How often it happened.
        trials: Of how many, >= 1.
        level: Confidence, in (0, 1).
    """
    if hits >= trials:
        return 1.0
    ways = [lgamma(trials + 1) - lgamma(n + 1) - lgamma(trials - n + 1) for n in range(hits + 1)]
    low, high = hits / trials, 1.0
    for _ in range(60):
        share = (low + high) / 2
        below = sum(exp(way + n * log(share) + (trials - n) * log1p(-share)) for n, way in enumerate(ways))
        low, high = (share, high) if below > 1 - level else (low, share)
    return high


def play_expert(settings: dict[str, Any], split: str, seeds: Sequence[int]) -> list[Episode]:
    """Plays the scenarios' own experts (hidden side) through the text interface: the ceiling of the table."""
    from dynsteer_gym.envs.sandbox.agents import Expert

    text = {key: value for key, value in settings.items() if key not in ("observe", "blind", "max_candidates")}
    made = EnvSettings.read({**text, "split": split, "stop": "none", "interface": "text", "report": False})
    env = made.make()
    assert isinstance(env, DynSTEERWrapper)
    episodes = []
    for seed in seeds:
        observation, info = env.reset(seed=int(seed))
        family = family_of(env)
        expert = Expert(env.unwrapped.instance)  # type: ignore[attr-defined]
        steps, done = 0, False
        while not done:
            observation, _, terminated, truncated, info = env.step(expert.act(observation))
            steps, done = steps + 1, terminated or truncated
        episodes.append(_episode(int(seed), family, steps, info))
    return episodes


def summarise(episodes: Sequence[Episode]) -> dict[str, Any]:
    """Means over episodes, and success by family.

    Returns:
        ``success``, ``native``, ``stage_return``, ``steps`` (means), ``episodes`` and ``families`` (success by family).
    """
    families: dict[str, list[bool]] = {}
    for episode in episodes:
        families.setdefault(episode.family, []).append(episode.success)
    return {
        "success": float(np.mean([episode.success for episode in episodes])),
        "native": float(np.mean([episode.native for episode in episodes])),
        "stage_return": float(np.mean([episode.stage_return for episode in episodes])),
        "steps": float(np.mean([episode.steps for episode in episodes])),
        "episodes": len(episodes),
        "families": {name: float(np.mean(families[name])) for name in sorted(families)},
    }
