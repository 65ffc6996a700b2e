"""Training configurations: frozen models, named presets, saved with every run."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dynsteer_gym.errors import ConfigurationError

__all__ = ["PRESETS", "TrainConfig"]


class TrainConfig(BaseModel):
    """Everything that a run of ``dynsteer train sb3`` depends on.

    A run is a function of this model alone: the same values give the same numbers on the same machine.

    Attributes:
        preset: Name of the preset it started from.
        suite: Suite of the world that is trained on.
        splits: Splits that the trained agent is evaluated on, in the order of the table.
        max_turns: The most assistant turns of an episode, or ``None`` for the suite's own limit.
        interface_size: Size of the action space.
        observe: What of the evaluator the observation holds: ``none``, ``counts``, ``kinds``.
        blind: Hide all words from the agent.
        reward: Preset of the reward.
        reward_scale: ``lambda`` of the stage reward at the start.
        anneal: Multiply ``lambda`` of an episode by one minus its family's running success rate.
        stop: Preset of the stop rules in training; evaluation has none.
        stagnation: ``N_stag`` in training, in closed actions.
        judge: Judge of the stages.
        total_steps: Env steps to train.
        num_envs: Episodes side by side.
        workers: Processes that step them; 1 steps them in the trainer's own.
        rollout: Steps of each env between updates.
        batch_size: Transitions a minibatch.
        epochs: Passes over a rollout.
        learning_rate: Of Adam, at the start.
        learning_rate_end: Of Adam, at the end (linear between).
        gamma: Discount of the learner.
        gae_lambda: Lambda of its advantage estimate.
        entropy: Entropy bonus at the start; it goes to a tenth linearly.
        clip: PPO's clip range.
        hidden: Width of the policy network.
        curve_every: Env steps between points of the learning curve.
        curve_episodes: Episodes of a point.
        final_episodes: Episodes of each split in the final table.
        control_share: Share of stopped episodes that are played on unseen by the learner, to measure what stops save.
        curriculum: Draw families that seldom succeed more often in training.
        seed: Of everything, in [0, 2**32).
        threads: Torch threads.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    preset: str = "quick"
    suite: str = "phone"
    splits: tuple[str, ...] = ("unseen", "paraphrased", "held_out")
    max_turns: int | None = None
    interface_size: int = Field(default=96, ge=16)
    observe: Literal["none", "counts", "kinds"] = "none"
    blind: bool = False
    reward: str = "stage"
    reward_scale: float = Field(default=0.3, ge=0)
    anneal: bool = True
    stop: str = "paper"
    stagnation: int = Field(default=12, ge=1)
    judge: str = "cheap"
    total_steps: int = Field(default=258_048, ge=1)
    num_envs: int = Field(default=256, ge=1)
    workers: int = Field(default=2, ge=1)
    rollout: int = Field(default=16, ge=1)
    batch_size: int = Field(default=512, ge=2)
    epochs: int = Field(default=3, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0)
    learning_rate_end: float = Field(default=1e-4, ge=0)
    gamma: float = Field(default=0.99, gt=0, le=1)
    gae_lambda: float = Field(default=0.95, ge=0, le=1)
    entropy: float = Field(default=0.06, ge=0)
    clip: float = Field(default=0.2, gt=0)
    hidden: int = Field(default=64, ge=4)
    curve_every: int = Field(default=16_384, ge=1)
    curve_episodes: int = Field(default=64, ge=1)
    final_episodes: int = Field(default=520, ge=1)
    control_share: float = Field(default=0.1, ge=0, le=1)
    curriculum: bool = True
    seed: int = Field(default=0, ge=0, lt=2**32)
    threads: int = Field(default=2, ge=1)

    @classmethod
    def from_preset(cls, name: str, **changes: Any) -> TrainConfig:
        """A preset with some values changed.

        Args:
            name: One of :data:`PRESETS`.
            **changes: Fields to change; ``None`` leaves the preset's value.

        Raises:
            ConfigurationError: The preset or a field is unknown, or a value out of range.
        """
        if name not in PRESETS:
            raise ConfigurationError(f"preset is one of {', '.join(sorted(PRESETS))}; got {name!r}")
        values = {**PRESETS[name], **{key: value for key, value in changes.items() if value is not None}}
        try:
            return cls(preset=name, **values)
        except ValueError as error:
            raise ConfigurationError(f"the training configuration does not hold: {error}") from error


PRESETS: dict[str, dict[str, Any]] = {
    "quick": {},
    "long": {"suite": "phone-long", "curriculum": False, "splits": ("unseen", "paraphrased"), "total_steps": 1_400_832, "final_episodes": 200, "curve_every": 65_536},
    "smoke": {
        "total_steps": 2_048,
        "num_envs": 8,
        "workers": 1,
        "rollout": 64,
        "batch_size": 128,
        "epochs": 2,
        "curve_every": 1_024,
        "curve_episodes": 8,
        "final_episodes": 8,
        "hidden": 32,
    },
}
"""``quick``: the main job, minutes. ``long``: several requests in one talk. ``smoke``: seconds, for tests."""
