"""Stage score, weight update and tier selection (equations 6 to 9)."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from typing import TYPE_CHECKING

from dynsteer_gym.judges.base import DIMENSIONS, TIERS, Dimension, DimensionScore, Tier

if TYPE_CHECKING:
    from dynsteer_gym.evaluation.config import EvaluatorConfig

__all__ = ["UNIFORM", "base_tier", "next_tiers", "paid_quality", "stage_score", "update_weights"]

Scores = Mapping[Dimension, DimensionScore]
UNIFORM: Mapping[Dimension, float] = dict.fromkeys(DIMENSIONS, 1 / len(DIMENSIONS))
"""The weights that a rollout starts with, and that rewards use throughout."""


def stage_score(scores: Scores, weights: Mapping[Dimension, float]) -> float:
    """``S_t = sum_d w_d s_d`` over the dimensions that apply, weights renormalised (equation 6), in [0, 1]."""
    total = weighted = 0.0
    for dimension, found in scores.items():
        total += weights[dimension]
        weighted += weights[dimension] * found.score
    return weighted / total if total > 0 else 0.0


def update_weights(weights: Mapping[Dimension, float], scores: Scores, alpha: float, beta: float) -> dict[Dimension, float]:
    """``w_d <- w_d * exp(alpha (1 - s_d) + beta u_d)``, then normalised (equation 7).

    The weight of a dimension that did not apply is not updated.
    """
    raw = dict(weights)
    for dimension, found in scores.items():
        raw[dimension] *= exp(alpha * (1.0 - found.score) + beta * found.uncertainty)
    total = sum(raw.values())
    return {dimension: weight / total for dimension, weight in raw.items()}


def base_tier(score: float, scores: Scores, fatal: bool, config: EvaluatorConfig) -> Tier:
    """The base tier of the next stage: cheap after a clear pass, else standard (equation 8)."""
    surest = max((found.uncertainty for found in scores.values()), default=0.0) <= config.theta_low_u
    clear = score >= config.theta_pass + config.delta_margin - 1e-9
    return Tier.CHEAP if clear and surest and not fatal else Tier.STANDARD


def next_tiers(
    scores: Scores, current: Mapping[Dimension, Tier], base: Tier, config: EvaluatorConfig
) -> tuple[dict[Dimension, Tier], bool]:
    """The tier of each dimension at the next review (equation 9, first match).

    Returns:
        The tiers, and whether any dimension met one of the first two cases.
    """
    tiers: dict[Dimension, Tier] = {}
    raised = False
    for dimension in DIMENSIONS:
        found = scores.get(dimension)
        if found is None:
            tiers[dimension] = base
        elif found.score < config.theta_fail:
            tiers[dimension], raised = Tier.EXPENSIVE, True
        elif found.score < config.theta_warn or found.uncertainty >= config.theta_high_u:
            own = TIERS.index(current.get(dimension, Tier.CHEAP))
            tiers[dimension], raised = TIERS[min(own + 1, len(TIERS) - 1)], True
        else:
            tiers[dimension] = base
    return tiers, raised


def paid_quality(fixed: float, scores: Scores) -> float:
    """``q(m) = min(S0(m), s_correctness(m))``: politeness or speed in a wrong stage earns nothing."""
    found = scores.get(Dimension.CORRECTNESS)
    return fixed if found is None else min(fixed, found.score)
