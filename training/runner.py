"""A run: train, evaluate, write ``runs/<name>/``."""

from __future__ import annotations

import ctypes
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.logger import configure

from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.training.buffer import PackedRolloutBuffer
from dynsteer_gym.training.callbacks import Books, RunCallback
from dynsteer_gym.training.checkpoint import HELD_APART, load_checkpoint, restore_generators
from dynsteer_gym.training.config import TrainConfig
from dynsteer_gym.training.evaluate import PolicyAgent, RandomAgent, play, play_expert, summarise
from dynsteer_gym.training.policy import CandidatePolicy
from dynsteer_gym.training.vec_env import BatchedVecEnv

__all__ = ["Trained", "env_settings", "evaluate_agents", "final_seeds", "train"]

Progress = Callable[[int, Books, float], None]


class Trained:
    """What training leaves: the model and the books.

    Attributes:
        model: The trained ``MaskablePPO``.
        books: The run's books.
        interrupted: Whether Ctrl-C ended it early.
    """

    def __init__(self, model: MaskablePPO, books: Books, interrupted: bool) -> None:
        """Holds both."""
        self.model = model
        self.books = books
        self.interrupted = interrupted


def env_settings(config: TrainConfig) -> dict[str, Any]:
    """Keyword arguments of ``gym.make`` for a run's training envs."""
    settings: dict[str, Any] = {
        "suite": config.suite,
        "split": "train",
        "interface": "discrete",
        "max_candidates": config.interface_size,
        "observe": config.observe,
        "blind": config.blind,
        "judge": config.judge,
        "reward": {"preset": config.reward, "scale": config.reward_scale},
        "stop": {"preset": config.stop, "stagnation": config.stagnation} if config.stop == "paper" else config.stop,
    }
    if config.max_turns is not None:
        settings["max_turns"] = config.max_turns
    return settings


def keep_memory() -> None:
    """Asks glibc to keep freed memory: rollout buffers are large, and faulting their pages in anew costs a third of the time."""
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, (1 << 31) - 1)  # M_TRIM_THRESHOLD
    except (OSError, AttributeError):
        pass  # Another C library: nothing to ask for.


def _linear(start: float, end: float) -> Callable[[float], float]:
    return lambda left: end + (start - end) * left


def train(
    config: TrainConfig, folder: Path | None = None, *, resume: bool = False, progress: Progress | None = None, label: str = ""
) -> Trained:
    """Trains MaskablePPO.

    Args:
        config: The run's configuration.
        folder: Where checkpoints and logs go; ``None`` writes nothing.
        resume: Go on from the folder's checkpoint, bit-exactly; only the last partial update is done anew.
        progress: Called after each update.
        label: Subfolder of the TensorBoard log.

    Raises:
        ConfigurationError: The checkpoint was written by another configuration.
    """
    torch.set_num_threads(config.threads)
    keep_memory()
    settings = env_settings(config)
    state = load_checkpoint(folder) if resume and folder is not None else None
    random.seed(config.seed)
    np.random.seed(config.seed)
    torch.manual_seed(config.seed)
    envs = BatchedVecEnv(settings, config.num_envs, workers=config.workers, seed=1_000 * (config.seed + 1), curriculum=config.curriculum, anneal=config.anneal, control_share=config.control_share)
    try:
        if state is None:
            books = Books()
            model = MaskablePPO(
                CandidatePolicy,
                envs,
                learning_rate=_linear(config.learning_rate, config.learning_rate_end),
                n_steps=config.rollout,
                batch_size=config.batch_size,
                n_epochs=config.epochs,
                gamma=config.gamma,
                gae_lambda=config.gae_lambda,
                clip_range=config.clip,
                ent_coef=config.entropy,
                rollout_buffer_class=PackedRolloutBuffer,
                policy_kwargs={"hidden": config.hidden},
                seed=config.seed,
                device="cpu",
            )
        else:
            books = state["books"]
            if state["config"] != config.model_dump_json():
                raise ConfigurationError("the checkpoint was written by another configuration; start a new run")
            model = _load_model(state, envs, config, folder)
        _log(model, folder, label, state is not None)
        callback = RunCallback(config, settings, books, folder, envs, progress)
        interrupted = False
        try:
            left = config.total_steps - model.num_timesteps
            if left > 0:
                if state is not None:
                    restore_generators(state)
                model.learn(left, callback=callback, reset_num_timesteps=state is None, log_interval=1)
                callback.finish()
        except KeyboardInterrupt:
            interrupted = True
        if folder is not None:
            model.save(folder / "model.zip", exclude=HELD_APART)
        return Trained(model, books, interrupted)
    finally:
        envs.close()


def _load_model(state: dict[str, Any], envs: BatchedVecEnv, config: TrainConfig, folder: Path | None) -> MaskablePPO:
    model = MaskablePPO.load(
        io.BytesIO(state["model"]),
        env=envs,
        device="cpu",
        force_reset=False,
        custom_objects={"learning_rate": _linear(config.learning_rate, config.learning_rate_end)},
    )
    model._last_obs = state["last_obs"]
    model._last_episode_starts = state["last_episode_starts"]
    envs.reset()
    assert folder is not None
    envs.load([str(folder / name) for name in state["envs"]], state["masks"])
    return model


def _log(model: MaskablePPO, folder: Path | None, label: str, append: bool) -> None:
    if folder is None:
        model.set_logger(configure(None, []))
        return
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        model.set_logger(configure(None, []))
        return
    place = folder / "tensorboard" / label if label else folder / "tensorboard"
    model.set_logger(configure(str(place), ["tensorboard"]))


def final_seeds(config: TrainConfig) -> list[int]:
    """Seeds of the final table's episodes; the curve's points use others."""
    return list(range(50_000, 50_000 + config.final_episodes))


def evaluate_agents(
    config: TrainConfig, models: dict[str, Any], on_split: Callable[[str, str], None] | None = None
) -> dict[str, dict[str, dict[str, Any]]]:
    """The final table: each agent on each split, without stops.

    Args:
        config: The run's configuration.
        models: Trained models by the agent's name; ``blind`` is played blind.
        on_split: Called with agent and split before each is played.

    Returns:
        ``{agent: {split: summary}}``, random and expert agents included.
    """
    settings = env_settings(config)
    seeds = final_seeds(config)
    table: dict[str, dict[str, dict[str, Any]]] = {}
    for name in ["random", *models, "expert"]:
        table[name] = {}
        for split in config.splits:
            if on_split is not None:
                on_split(name, split)
            if name == "expert":
                episodes = play_expert(settings, split, seeds)
            elif name == "random":
                episodes = play(RandomAgent(config.seed), settings, split, seeds)
            else:
                shown = {**settings, "blind": name == "blind"}
                episodes = play(PolicyAgent(models[name]), shown, split, seeds)
            table[name][split] = summarise(episodes)
    return table


def write_json(path: Path, content: Any) -> None:
    """Writes JSON, keys in order of insertion."""
    path.write_text(json.dumps(content, indent=2) + "\n")
