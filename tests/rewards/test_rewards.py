"""The laws of the reward."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.evaluation.evaluator import StageRecord
from dynsteer_gym.evaluation.policy import UNIFORM
from dynsteer_gym.evaluation.stopping import Criterion, StopRecord
from dynsteer_gym.rewards import REWARD_PRESETS, RewardConfig, RewardFunction


def stage(share, quality, score=None):
    return StageRecord("m", 1, 1, None, (), share, {}, quality if score is None else score, quality, quality, UNIFORM, {}, 0, "call", None, 1)


def stop(criterion=Criterion.STAGNATION):
    return StopRecord(criterion, 1, 1, 1, None, None, "")


def test_stage_pays_lambda_times_share_times_quality():
    reward, components = RewardFunction().step([stage(0.5, 0.8)], None, None, 1, 10, False)
    assert reward == pytest.approx(0.3 * 0.5 * 0.8)
    assert components == {"stage": reward}


def test_native_is_paid_at_a_true_end_and_eta_makes_it_dearer_with_time():
    function = RewardFunction(RewardConfig(eta=0.2))
    assert function.step([], None, 0.5, 5, 10, True)[0] == pytest.approx(0.5 * 0.9)
    assert RewardFunction().step([], None, 0.5, 5, 10, True)[0] == 0.5


@pytest.mark.parametrize("preset", ["stage", "sparse", "paper"])
def test_a_stop_pays_nothing_by_default(preset):
    assert RewardFunction(RewardConfig.preset_named(preset)).step([], stop(), None, 1, 10, True) == (0, {})


def test_penalties_are_paid_on_request():
    function = RewardFunction(RewardConfig(fatal_penalty=-0.5, structural_penalty=-0.1))
    assert function.step([], stop(Criterion.MINEFIELD), None, 1, 10, True)[0] == -0.5
    assert function.step([], stop(Criterion.STRUCTURAL), None, 1, 10, True)[0] == -0.1
    assert function.step([], stop(Criterion.STAGNATION), None, 1, 10, True)[0] == 0


unit = st.floats(0, 1)


@given(st.lists(unit, min_size=1, max_size=8), unit, st.sampled_from(sorted(REWARD_PRESETS)), st.booleans())
def test_dense_return_is_bounded_and_components_sum_exactly(qualities, native, preset, stopped):
    function = RewardFunction(RewardConfig.preset_named(preset))
    function.reset()
    total, count = 0.0, len(qualities)
    for turn, quality in enumerate(qualities, 1):
        reward, components = function.step([stage(1 / count, quality)], None, None, turn, 20, False)
        assert reward == sum(components.values())
        total += reward
    assert -1e-9 <= total <= 1 + 1e-9
    last, components = function.step([], stop() if stopped else None, None if stopped else native, count + 1, 20, True)
    assert last == sum(components.values())
    if preset == "potential":
        assert total + last == pytest.approx(0.0 if stopped else native)


def test_native_progress_is_paid_as_it_grows_and_the_sum_is_the_native_score():
    function = RewardFunction(RewardConfig.preset_named("native_dense"))
    function.reset()
    assert function.step([stage(1.0, 1.0)], None, None, 1, 10, False, 0.25) == (0.25, {"progress": 0.25})
    assert function.step([], None, None, 2, 10, False, 0.25) == (0, {})
    assert function.step([], None, 0.75, 3, 10, True, 0.75) == (0.5, {"progress": 0.5})
    function.reset()
    function.step([], None, None, 1, 10, False, 0.5)
    assert function.step([], None, 0.0, 2, 10, True, 0.5) == (-0.5, {"native": -0.5})  # A native minefield takes all back.
    function.reset()
    assert function.step([], None, 1.0, 1, 10, True, 0.0) == (1.0, {"native": 1.0})  # No milestones: all at the end.
    function.reset()
    function.step([], None, None, 1, 10, False, 0.5)
    assert function.step([], stop(), None, 2, 10, True, 0.5) == (0, {})


def test_lambda_changes_from_the_next_episode_on():
    function = RewardFunction()
    function.scale = 0.1
    assert function.step([stage(1.0, 1.0)], None, None, 1, 10, False)[0] == pytest.approx(0.3)
    function.reset()
    assert function.step([stage(1.0, 1.0)], None, None, 1, 10, False)[0] == pytest.approx(0.1)


def test_misuse_gets_one_sentence():
    with pytest.raises(ConfigurationError, match="stage"):
        RewardConfig.preset_named("dense")
    with pytest.raises(ConfigurationError):
        RewardConfig.preset_named("stage", scale=-1)


@pytest.mark.parametrize("seed", range(20))
def test_a_rule_that_stops_a_share_of_successes_costs_at_most_that_share(seed):
    """The safe-stop lemma on random MDPs, by exhaustive search over policies."""
    random = np.random.default_rng(seed)
    states, actions, horizon = 3, 2, 3
    moves = random.dirichlet(np.ones(states), (horizon, states, actions))
    wins = random.random(states)
    # Histories of states; a stop rule kills some of them at pay 0.
    killed = {path: random.random() < 0.2 for length in range(1, horizon + 2) for path in itertools.product(range(states), repeat=length)}

    def value(policy, rule):
        total = would = lost = 0.0
        for path in itertools.product(range(states), repeat=horizon):
            full = (0, *path)
            chance = np.prod([moves[t, full[t], policy[t][full[t]], full[t + 1]] for t in range(horizon)])
            stops = rule and any(killed[full[: t + 1]] for t in range(1, horizon + 1))
            would += chance * wins[full[-1]]
            lost += chance * wins[full[-1]] * stops
            total += chance * wins[full[-1]] * (not stops)
        return total, would, lost

    policies = list(itertools.product(itertools.product(range(actions), repeat=states), repeat=horizon))[:: max(1, 512 // 128)]
    results = [(value(p, False)[0], *value(p, True)) for p in policies]
    best = max(results, key=lambda r: r[0])
    share = best[3] / best[2]
    optimum_with_stops = max(r[1] for r in results)
    assert optimum_with_stops >= best[0] - share * best[0] - 1e-9
