"""Equations 6 to 9, by hand."""

from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsteer_gym.evaluation.config import EvaluatorConfig
from dynsteer_gym.evaluation.policy import UNIFORM, base_tier, next_tiers, paid_quality, stage_score, update_weights
from dynsteer_gym.judges.base import DIMENSIONS, Dimension, DimensionScore, Tier

CONFIG = EvaluatorConfig()
C, E, S, T = DIMENSIONS


def scores(*values, u=0.0):
    return {d: DimensionScore(v, u) for d, v in zip(DIMENSIONS, values, strict=True)}


def test_equation_6_is_a_weighted_mean():
    assert stage_score(scores(1.0, 0.5, 0.0, 1.0), UNIFORM) == 0.625
    assert stage_score(scores(1.0, 0.5, 0.0, 1.0), {C: 0.7, E: 0.1, S: 0.1, T: 0.1}) == pytest.approx(0.85)


def test_equation_6_renormalises_over_what_applies():
    assert stage_score({C: DimensionScore(1.0), E: DimensionScore(0.5)}, {C: 0.5, E: 0.25, S: 0.25, T: 0.0}) == pytest.approx(2.5 / 3)
    assert stage_score({}, UNIFORM) == 0.0


def test_equation_7_raises_the_weight_of_what_failed_or_was_unsure():
    weights = update_weights(UNIFORM, {C: DimensionScore(0.0, 0.0), E: DimensionScore(1.0, 1.0), S: DimensionScore(1.0)}, 1.0, 0.5)
    total = exp(1) + exp(0.5) + 1 + 1
    assert weights[C] == pytest.approx(exp(1) / total)
    assert weights[E] == pytest.approx(exp(0.5) / total)
    assert weights[S] == weights[T] == pytest.approx(1 / total)


@pytest.mark.parametrize(
    ("score", "u", "fatal", "tier"),
    [(0.85, 0.2, False, Tier.CHEAP), (0.84, 0.2, False, Tier.STANDARD), (0.9, 0.21, False, Tier.STANDARD), (0.9, 0.0, True, Tier.STANDARD)],
)
def test_equation_8(score, u, fatal, tier):
    assert base_tier(score, scores(1, 1, 1, 1, u=u), fatal, CONFIG) is tier


def test_equation_9_takes_the_first_case_that_holds():
    found = {C: DimensionScore(0.29), E: DimensionScore(0.59), S: DimensionScore(0.9, 0.5), T: DimensionScore(0.9)}
    tiers, raised = next_tiers(found, {d: Tier.CHEAP for d in DIMENSIONS}, Tier.CHEAP, CONFIG)
    assert tiers == {C: Tier.EXPENSIVE, E: Tier.STANDARD, S: Tier.STANDARD, T: Tier.CHEAP}
    assert raised
    tiers, _ = next_tiers(found, {d: Tier.EXPENSIVE for d in DIMENSIONS}, Tier.CHEAP, CONFIG)
    assert tiers[E] is Tier.EXPENSIVE
    assert not next_tiers(scores(1, 1, 1, 1), {}, Tier.CHEAP, CONFIG)[1]


def test_quality_is_capped_by_correctness():
    assert paid_quality(0.75, scores(0.0, 1, 1, 1)) == 0.0
    assert paid_quality(0.75, scores(1.0, 0, 1, 1)) == 0.75
    assert paid_quality(0.6, {Dimension.SAFETY: DimensionScore(0.6)}) == 0.6


unit = st.floats(0, 1)


@given(st.lists(st.tuples(unit, unit), min_size=4, max_size=4), st.floats(0, 3), st.floats(0, 3))
def test_weights_stay_a_distribution_and_scores_in_range(values, alpha, beta):
    found = {d: DimensionScore(s, u) for d, (s, u) in zip(DIMENSIONS, values, strict=True)}
    weights = update_weights(UNIFORM, found, alpha, beta)
    assert sum(weights.values()) == pytest.approx(1.0)
    assert min(weights.values()) > 0
    assert -1e-9 <= stage_score(found, weights) <= 1 + 1e-9
