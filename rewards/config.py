"""Reward presets."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dynsteer_gym.errors import ConfigurationError

__all__ = ["REWARD_PRESETS", "RewardConfig"]


class RewardConfig(BaseModel):
    """What is paid, and when.

    Attributes:
        preset: Name of the preset it started from.
        kind: ``stage`` pays ``scale * share * quality`` at a settlement; ``sparse`` nothing; ``potential`` the
            difference of potentials; ``paper`` the stage score with moving weights, for reproduction only;
            ``native_dense`` the increments of the world's own hidden progress, for comparison experiments only.
        scale: ``lambda`` of the stage reward, >= 0.
        gamma: Discount of the potential form, in (0, 1].
        eta: How much of the native score a full budget costs, in [0, 1]: ``R * (1 - eta * t / T)``.
        fatal_penalty: Paid at a minefield stop, <= 0.
        structural_penalty: Paid at a structural stop, <= 0.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    preset: str = "stage"
    kind: Literal["stage", "sparse", "potential", "paper", "native_dense"] = "stage"
    scale: float = Field(default=0.3, ge=0)
    gamma: float = Field(default=1.0, gt=0, le=1)
    eta: float = Field(default=0.0, ge=0, le=1)
    fatal_penalty: float = Field(default=0.0, le=0)
    structural_penalty: float = Field(default=0.0, le=0)

    @classmethod
    def preset_named(cls, name: str, **changes: Any) -> RewardConfig:
        """A preset with some values changed.

        Raises:
            ConfigurationError: There is no such preset, or a value is out of range.
        """
        if name not in REWARD_PRESETS:
            raise ConfigurationError(f"reward is one of {', '.join(REWARD_PRESETS)}; got {name!r}")
        try:
            return cls(preset=name, **{**REWARD_PRESETS[name], **changes})
        except ValueError as error:
            raise ConfigurationError(f"the reward does not hold: {error}") from error


REWARD_PRESETS: dict[str, dict[str, Any]] = {
    "stage": {},
    "sparse": {"kind": "sparse"},
    "potential": {"kind": "potential"},
    "paper": {"kind": "paper"},
    "native_dense": {"kind": "native_dense"},
}
