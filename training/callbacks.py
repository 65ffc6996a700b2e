"""SB3 callbacks of a run: books, annealing, curve, checkpoints, progress."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from dynsteer_gym.training.checkpoint import Checkpoint
from dynsteer_gym.training.config import TrainConfig
from dynsteer_gym.training.evaluate import PolicyAgent, SampledAgent, at_most, play, play_on, summarise

if TYPE_CHECKING:
    from dynsteer_gym.training.vec_env import BatchedVecEnv, ControlEpisode

__all__ = ["Books", "RunCallback"]

_SMOOTH = 0.99
"""Decay of the running success rate, per finished episode."""


class Books:
    """What a run keeps besides its model; saved with every checkpoint.

    Attributes:
        success: Running success rate of training episodes.
        episodes: Finished training episodes.
        stopped: Of these, how many were stopped, by criterion.
        seconds: Time spent training, earlier parts of a resumed run included.
        curve: Points of the learning curve.
        rows: Rows of ``metrics.csv``.
        turns_left: Budgeted turns that stopped episodes had left: no more can have been saved.
        left_out: Episodes in which candidates were left out for lack of room.
        recent: Success, stage return, return and length of the last 500 episodes.
        control: One entry for each episode of the control arm: what had stopped it, further turns, whether it succeeded.
    """

    def __init__(self) -> None:
        """Starts empty books."""
        self.success = 0.0
        self.episodes = 0
        self.stopped: dict[str, int] = {}
        self.turns_left = 0
        self.seconds = 0.0
        self.curve: list[dict[str, float]] = []
        self.rows: list[dict[str, float]] = []
        self.left_out = 0
        self.recent: list[tuple[float, float, float, float]] = []
        self.control: list[tuple[str, int, bool]] = []

    def saved(self, steps: int) -> dict[str, Any]:
        """What stops saved in training, live, as the control arm tells it.

        Args:
            steps: Env steps that were run.

        Returns:
            ``episodes``, ``stopped_episodes``, ``stopped_share`` and ``by_criterion``; of the control arm ``episodes``,
            ``further_turns`` (mean), ``false_stops`` (would have succeeded), ``false_stop_share`` and its exact 95 % upper
            bound; ``steps`` and ``share``, the estimated steps saved and their share of all steps without stops
            (``None`` without a control arm); ``at_most_share``, if every stopped episode had run out its budget.
        """
        stopped = sum(self.stopped.values())
        tried = len(self.control)
        further = sum(turns for _, turns, _ in self.control) / tried if tried else None
        false = sum(success for _, _, success in self.control)
        by: dict[str, dict[str, Any]] = {}
        for criterion, count in sorted(self.stopped.items()):
            own = [success for name, _, success in self.control if name == criterion]
            by[criterion] = {"stopped": count, "control": len(own), "false_stops": sum(own)}
        estimate = None if further is None else further * stopped
        return {
            "episodes": self.episodes,
            "stopped_episodes": stopped,
            "stopped_share": stopped / max(self.episodes, 1),
            "by_criterion": by,
            "control": {
                "episodes": tried,
                "further_turns": further,
                "false_stops": false,
                "false_stop_share": false / tried if tried else None,
                "false_stop_at_most": at_most(false, tried) if tried else None,
            },
            "steps": estimate,
            "share": None if estimate is None else estimate / max(estimate + steps, 1.0),
            "at_most_share": self.turns_left / max(self.turns_left + steps, 1),
        }

    def note(self, info: dict[str, Any]) -> None:
        """Takes in a finished episode."""
        self.episodes += 1
        self.success += (1 - _SMOOTH) * (float(info["is_success"]) - self.success)
        self.left_out += info["left_out"] > 0
        if info["stop"] is not None:
            self.stopped[info["stop"]] = self.stopped.get(info["stop"], 0) + 1
            self.turns_left += info["turns_left"]
        episode = info["episode"]
        self.recent.append((float(info["is_success"]), info["stage_return"], episode["r"], episode["l"]))
        del self.recent[:-500]


class RunCallback(BaseCallback):
    """Keeps the books, anneals, draws the curve's points, writes checkpoints and reports progress."""

    def __init__(
        self,
        config: TrainConfig,
        settings: dict[str, Any],
        books: Books,
        folder: Path | None,
        envs: BatchedVecEnv,
        progress: Callable[[int, Books, float], None] | None = None,
    ) -> None:
        """Makes the callback.

        Args:
            config: The run's configuration.
            settings: Keyword arguments of ``gym.make`` for the curve's evaluations.
            books: The run's books.
            folder: Where checkpoints and ``metrics.csv`` go, or ``None`` to write nothing.
            envs: The training envs.
            progress: Called after each rollout with steps, books and steps a second.
        """
        super().__init__()
        self._config = config
        self._settings = settings
        self._books = books
        self._folder = folder
        self._envs = envs
        self._progress = progress
        self._checkpoint = None if folder is None else Checkpoint(folder, envs)
        self._kept: list[ControlEpisode] = []
        self._updates = 0
        self._clock = time.perf_counter()
        self._steps_then = 0

    def _on_training_start(self) -> None:
        self._clock = time.perf_counter()
        self._steps_then = self.num_timesteps
        if not self._books.curve:
            self._point()

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if info:
                self._books.note(info)
        return True

    def _on_rollout_start(self) -> None:
        """The model was just updated (or starts): a clean boundary."""
        config, books = self._config, self._books
        progress_left = 1.0 - self.num_timesteps / config.total_steps
        self.model.ent_coef = config.entropy * (0.1 + 0.9 * max(progress_left, 0.0))  # type: ignore[attr-defined]
        if self._updates and self.num_timesteps >= (len(books.curve)) * config.curve_every:
            self._point()
        if self._updates:
            self._play_on()
            self._book()
            if self._checkpoint is not None:
                self._checkpoint.finish(self.model, books, config.model_dump_json())
        self._updates += 1

    def _on_rollout_end(self) -> None:
        if self._config.control_share:  # Before the envs' processes begin to write.
            self._kept = self._envs.take_control()
        if self._checkpoint is not None:
            self._checkpoint.begin()

    def finish(self) -> None:
        """The last boundary: after the last update."""
        self._play_on()
        self._book()
        if self.num_timesteps > self._books.curve[-1]["steps"]:
            self._point()
        if self._checkpoint is not None:
            self._checkpoint.finish(self.model, self._books, self._config.model_dump_json())

    def _book(self) -> None:
        books = self._books
        now = time.perf_counter()
        books.seconds += now - self._clock
        rate = (self.num_timesteps - self._steps_then) / max(now - self._clock, 1e-9)
        self._clock, self._steps_then = now, self.num_timesteps
        success, stage, paid, length = np.mean(books.recent, axis=0) if books.recent else (0.0,) * 4
        books.rows.append(
            {
                "steps": self.num_timesteps,
                "seconds": round(books.seconds, 3),
                "steps_a_second": round(rate, 1),
                "success": float(success),
                "stage_return": float(stage),
                "return": float(paid),
                "turns": float(length),
                "stopped_share": sum(books.stopped.values()) / max(books.episodes, 1),
            }
        )
        self.logger.record("rollout/success", float(success))
        self.logger.record("rollout/stage_return", float(stage))
        self.logger.record("rollout/stopped_share", books.rows[-1]["stopped_share"])
        self.logger.record("time/steps_a_second", rate)
        if self._folder is not None:
            write_csv(self._folder / "metrics.csv", books.rows)
        if self._progress is not None:
            self._progress(self.num_timesteps, books, rate)

    def _play_on(self) -> None:
        """The control arm: what would the stopped episodes have come to, played on by the policy as it is now?"""
        kept, self._kept = self._kept, []
        if kept:
            agent = SampledAgent(self.model, (self._config.seed, self.num_timesteps))
            for episode, (turns, success) in zip(kept, play_on(agent, kept), strict=True):
                self._books.control.append((episode.criterion, turns, success))

    def _point(self) -> None:
        config = self._config
        seeds = range(10_000, 10_000 + config.curve_episodes)
        done = summarise(play(PolicyAgent(self.model), self._settings, config.splits[0], list(seeds)))
        self._books.curve.append(
            {
                "steps": self.num_timesteps,
                "success": done["success"],
                "native": done["native"],
                "stage_return": done["stage_return"],
            }
        )
        self.logger.record("curve/success", done["success"])
        self.logger.record("curve/stage_return", done["stage_return"])


def write_csv(path: Path, rows: list[dict[str, float]]) -> None:
    """Writes rows of equal keys; a resumed run's file holds what its checkpoint knew."""
    if not rows:
        return
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
