"""The stop criteria and their presets."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from dynsteer_gym.errors import ConfigurationError

__all__ = ["STOP_PRESETS", "Criterion", "StopConfig", "StopRecord"]


class Criterion(StrEnum):
    """Why an episode is stopped."""

    MINEFIELD = "fatal_minefield"
    """A compiled fatal operation was attempted (raw clock, at once)."""
    STRUCTURAL = "structural_failure"
    """Calls that cannot be read or fail their schema, again and again."""
    LOW_QUALITY = "persistent_low_quality"
    """Settled stages below ``theta_fail``."""
    STAGNATION = "frontier_stagnation"
    """Closed actions without progress at the frontier."""
    BUDGET = "budget"
    """Fewer turns left than the shortest way to the end needs."""
    UNREACHABLE = "unreachable"
    """A request was ended although an operation that it certainly needs was never done."""


class StopRecord(NamedTuple):
    """The auditable record of a stop.

    Attributes:
        criterion: Why.
        event: Raw event clock.
        t: Closed action clock.
        turn: The agent's turn (batch).
        anchor: The stage's anchor: the milestone settled last, or ``None`` for the start.
        dimension: The causal dimension, or ``None``.
        evidence: One sentence.
    """

    criterion: Criterion
    event: int
    t: int
    turn: int
    anchor: str | None
    dimension: str | None
    evidence: str


class StopConfig(BaseModel):
    """Which criteria are on, and their thresholds.

    Attributes:
        preset: Name of the preset it started from.
        minefield: Stop at compiled minefields, before the call runs.
        provable: Stop where success is provably out of reach (budget, unreachable milestones of certain graphs).
        structural: ``N_struct``: malformed calls in a row, or the same schema error so often; 0 is off.
        low_quality: ``N_low``: settled stages in a row under ``theta_fail``; 0 is off.
        stagnation: ``N_stag``: closed actions without progress; 0 is off.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    preset: str = "paper"
    minefield: bool = True
    provable: bool = True
    structural: int = Field(default=3, ge=0)
    low_quality: int = Field(default=2, ge=0)
    stagnation: int = Field(default=8, ge=0)

    @classmethod
    def preset_named(cls, name: str, **changes: Any) -> StopConfig:
        """A preset with some values changed.

        Raises:
            ConfigurationError: There is no such preset; ``calibrated`` says what it waits for.
        """
        if name == "calibrated":
            raise ConfigurationError("stop='calibrated' needs a calibration for the suite, and none is shipped yet; use 'paper'")
        if name not in STOP_PRESETS:
            raise ConfigurationError(f"stop is one of {', '.join(STOP_PRESETS)}; got {name!r}")
        values = {**STOP_PRESETS[name], **changes} if name != "none" else dict(STOP_PRESETS[name])
        try:
            return cls(preset=name, **values)
        except ValueError as error:
            raise ConfigurationError(f"the stop rules do not hold: {error}") from error


STOP_PRESETS: dict[str, dict[str, Any]] = {
    "none": {"minefield": False, "provable": False, "structural": 0, "low_quality": 0, "stagnation": 0},
    "provable": {"minefield": False, "provable": True, "structural": 0, "low_quality": 0, "stagnation": 0},
    "paper": {},
}
"""``none``; ``provable`` (T0); ``paper`` (T2: all criteria, fixed thresholds). Each holds the criteria of the one before."""
