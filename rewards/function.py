"""The reward of one env: a small state, a pure rule."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from dynsteer_gym.evaluation.evaluator import StageRecord
from dynsteer_gym.evaluation.stopping import Criterion, StopRecord
from dynsteer_gym.rewards.config import RewardConfig

__all__ = ["RewardFunction"]


class RewardFunction:
    """Pays stages once each, the native score at a true end, and nothing at a stop unless penalties are set.

    Weights and tier are fixed, so that a reward is a function of the transition: a stage is paid by its fixed-weight
    quality, never by the moving weights of equation 7 (but for the preset ``paper``).

    Attributes:
        config: The preset.
        scale: ``lambda``, settable during training; read when an episode begins.
    """

    def __init__(self, config: RewardConfig | None = None) -> None:
        """Starts before the first episode.

        Args:
            config: The preset.
        """
        self.config = config if config is not None else RewardConfig()
        self.scale = self.config.scale
        self._scale = self.scale
        self._potential = 0.0
        self._progress = 0.0

    def reset(self) -> None:
        """Begins an episode; ``scale`` is fixed for it."""
        self._scale = self.scale
        self._potential = 0.0
        self._progress = 0.0

    def step(
        self,
        stages: Sequence[StageRecord],
        stop: StopRecord | None,
        native: float | None,
        turn: int,
        max_turns: int,
        done: bool,
        progress: float | None = None,
    ) -> tuple[float, dict[str, float]]:
        """The reward of one step.

        Args:
            stages: Stages settled in it.
            stop: The stop that ended the episode, or ``None``.
            native: The native score at a true end, else ``None``.
            turn: Assistant turns taken.
            max_turns: The budget of turns.
            done: Whether the episode is over (a true end, a stop or a truncation).
            progress: The world's own hidden progress in [0, 1], for ``native_dense``: its increments are paid, and at a
                true end what is missing of the native score, or was too much (a native minefield), so that the
                episode's sum is the native score.

        Returns:
            The reward and its components, which sum to it exactly.
        """
        config = self.config
        components: dict[str, float] = {}
        if config.kind == "stage":
            paid = self._scale * sum(stage.share * stage.quality for stage in stages)
            if paid:
                components["stage"] = paid
        elif config.kind == "paper":
            paid = sum(stage.share * stage.score for stage in stages)
            if paid:
                components["stage"] = paid
        elif config.kind == "potential":
            before = self._potential
            after = before + sum(stage.share * stage.quality for stage in stages)
            self._potential = after
            # Truncation is no end state of the task; true ends and stops are, and have potential 0.
            ended = done and (native is not None or stop is not None)
            shaped = (0.0 if ended else config.gamma * after) - before
            if shaped:
                components["potential"] = shaped
        if config.kind == "native_dense":
            paid, self._progress = (progress or 0.0) - self._progress, progress or 0.0
            if paid:
                components["progress"] = paid
            native = None if native is None else native - self._progress
        if native:
            components["native"] = native * (1.0 - config.eta * min(turn / max(max_turns, 1), 1.0))
        if stop is not None:
            penalty = 0.0
            if stop.criterion == Criterion.MINEFIELD:
                penalty = config.fatal_penalty
            elif stop.criterion == Criterion.STRUCTURAL:
                penalty = config.structural_penalty
            if penalty:
                components["stop"] = penalty
        return sum(components.values()), components

    def fork(self) -> RewardFunction:
        """An independent copy."""
        return copy.copy(self)
