"""The evaluator's configuration; every value stands in the report."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from dynsteer_gym.evaluation.stopping import StopConfig

__all__ = ["EvaluatorConfig"]


class EvaluatorConfig(BaseModel):
    """Settings of the streaming evaluator.

    Attributes:
        alpha: Weight of failure in eq. 7.
        beta: Weight of uncertainty in eq. 7.
        theta_pass: Stage score from which the next stage may start cheap (eq. 8), with ``delta_margin`` on top.
        delta_margin: Margin of eq. 8.
        theta_fail: Dimension score below which it goes to the expensive tier (eq. 9); also the low-quality stop's.
        theta_warn: Dimension score below which it goes one tier up (eq. 9).
        theta_low_u: Largest uncertainty for a cheap start (eq. 8).
        theta_high_u: Uncertainty from which a dimension goes one tier up (eq. 9).
        escalate: ``same`` reviews a failing stage again at once, ``next`` only the next one (the paper's way).
        latch: A lookup made before its predecessor settled may settle later (off in the paper's mode).
        branches: Leave steps of parallel branches out of windows (off in the paper's mode).
        stop: The stop rules.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    alpha: float = Field(default=1.0, ge=0)
    beta: float = Field(default=0.5, ge=0)
    theta_pass: float = Field(default=0.8, ge=0, le=1)
    delta_margin: float = Field(default=0.05, ge=0, le=1)
    theta_fail: float = Field(default=0.3, ge=0, le=1)
    theta_warn: float = Field(default=0.6, ge=0, le=1)
    theta_low_u: float = Field(default=0.2, ge=0, le=1)
    theta_high_u: float = Field(default=0.5, ge=0, le=1)
    escalate: Literal["same", "next"] = "same"
    latch: bool = True
    branches: bool = True
    stop: StopConfig = StopConfig()

    @classmethod
    def paper(cls) -> EvaluatorConfig:
        """The paper's mode: everything that this project added is off."""
        return cls(escalate="next", latch=False, branches=False)
