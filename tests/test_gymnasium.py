"""What Gymnasium and SB3 ask of an env."""

import json
import pickle
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

from dynsteer_gym.envs.discrete import CONTEXT, FEATURES, DiscreteActions
from dynsteer_gym.vector import DynSTEERVectorEnv

IDS = ("DynSTEER-ToolSandbox-v0", "ToolSandbox-v0")


@pytest.mark.parametrize("name", IDS)
def test_the_text_envs_pass_gymnasiums_check(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*render.*|.*not within the.*|.*Box.*")
        check_env(gym.make(name, disable_env_checker=True).unwrapped if name == IDS[1] else _core(gym.make(name)), skip_render_check=True)


def _core(env):
    while not hasattr(env, "built_in"):
        env = env.env
    return env


def test_the_discrete_env_passes_both_checks():
    from stable_baselines3.common.env_checker import check_env as check_sb3

    check_env(_core(gym.make(IDS[0], interface="discrete")), skip_render_check=True)
    check_sb3(gym.make(IDS[0], interface="discrete"), warn=False)


@pytest.mark.parametrize("settings", [{}, {"interface": "discrete"}, {"suite": "phone-long", "reward": {"preset": "stage", "scale": 0.2}}])
def test_specs_survive_json_and_pickle_and_rebuild_the_env(settings):
    env = gym.make(IDS[0], **settings)
    first, _ = env.reset(seed=7)
    for spec in (pickle.loads(pickle.dumps(env.spec)), gym.envs.registration.EnvSpec.from_json(env.spec.to_json())):
        again, _ = gym.make(spec).reset(seed=7)
        assert np.array_equal(first, again) if isinstance(first, np.ndarray) else first == again


def test_models_as_keywords_become_plain_json_in_the_spec():
    from dynsteer_gym.rewards import RewardConfig

    env = gym.make(IDS[0], reward=RewardConfig(scale=0.1))
    env.reset(seed=0)
    assert json.loads(env.spec.to_json())["kwargs"]["reward"]["scale"] == 0.1
    assert gym.make(env.spec).get_wrapper_attr("reward").config.scale == 0.1


def test_gymnasiums_wrappers_work_over_it():
    env = RecordEpisodeStatistics(TimeLimit(gym.make(IDS[0], stop="none"), 2))
    env.reset(seed=0)
    env.step("get_settings()")
    *_, truncated, info = env.step("get_settings()")
    assert truncated
    assert info["episode"]["l"] == 2


def test_sync_async_and_own_vectors_give_the_same_episodes():
    kinds = {
        "own": gym.make_vec(IDS[0], num_envs=3),
        "sync": gym.make_vec(IDS[0], num_envs=3, vectorization_mode="sync"),
        "async": gym.make_vec(IDS[0], num_envs=3, vectorization_mode="async", vector_kwargs={"shared_memory": False}),
    }
    assert isinstance(kinds["own"], DynSTEERVectorEnv)
    logs = {}
    for name, envs in kinds.items():
        observations, _ = envs.reset(seed=11)
        log = [tuple(observations)]
        for turn in ("get_settings()", "Done.", "get_current_time()"):
            observations, rewards, terminations, truncations, _ = envs.step((turn,) * 3)
            log.append((tuple(observations), rewards.tolist(), terminations.tolist(), truncations.tolist()))
        logs[name] = log
        envs.close()
    assert logs["own"] == logs["sync"] == logs["async"]


def test_same_step_autoreset_hands_over_the_last_observation():
    envs = gym.make_vec(IDS[0], num_envs=2, autoreset_mode=AutoresetMode.SAME_STEP)
    envs.reset(seed=0, options={"scenario": "add_contact/0"})
    _, _, terminations, _, infos = envs.step(("Done.", "Done."))
    assert terminations.all()
    assert list(infos["final_obs"]) == ["Great, thanks."] * 2 or all(isinstance(text, str) for text in infos["final_obs"])
    assert infos["final_info"]["is_success"].tolist() == [False, False]


def test_statistics_wrapper_over_the_own_vector():
    envs = gym.wrappers.vector.RecordEpisodeStatistics(gym.make_vec(IDS[0], num_envs=2))
    envs.reset(seed=0, options={"scenario": "add_contact/0"})
    *_, infos = envs.step(("Done.", "Done."))
    assert infos["episode"]["l"].tolist() == [1, 1]


def test_importing_and_stepping_loads_no_heavy_package():
    code = (
        "import sys, gymnasium as gym, dynsteer_gym; env = gym.make('DynSTEER-ToolSandbox-v0'); env.reset(seed=0); "
        "env.step('get_settings()'); print([m for m in ('torch', 'transformers', 'stable_baselines3', 'matplotlib') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def discrete(**settings):
    env = gym.make(IDS[0], interface="discrete", **settings)
    while not isinstance(env, DiscreteActions):
        env = env.env
    return env


def test_the_same_seed_gives_the_same_observations_and_masks():
    one, other = discrete(), discrete()
    for env in (one, other):
        env.reset(seed=3)
    for _ in range(30):
        assert np.array_equal(one.action_masks(), other.action_masks())
        results = [env.step(0) for env in (one, other)]
        assert np.array_equal(results[0][0], results[1][0])
        assert results[0][1:4] == results[1][1:4]
        if results[0][2] or results[0][3]:
            for env in (one, other):
                env.reset()


def test_every_plan_of_an_expert_is_among_the_candidates():
    env = discrete(stop="none")
    for seed in range(80):
        env.reset(seed=seed)
        for request in env.unwrapped.instance.requests:
            for turn in request.plan:
                offered = env.candidates()
                if isinstance(turn, str):
                    places = [i for i, entry in enumerate(offered) if entry.turn.message == turn]
                else:
                    wanted = (turn[0], {k: str(v).replace(" ", "") for k, v in turn[1].items()})
                    places = [
                        i
                        for i, entry in enumerate(offered)
                        if entry.turn.calls
                        and (entry.turn.calls[0].name, {k: _plain(k, v) for k, v in entry.turn.calls[0].arguments.items()}) == wanted
                    ]
                assert places, (request.text, turn)
                env.step(places[0])


def _plain(name, value):
    text = str(value).replace(" ", "")
    return text.replace("-", "") if "phone" in name else text


def test_permuting_positions_permutes_the_policys_scores():
    torch = pytest.importorskip("torch")
    from dynsteer_gym.training.policy import CandidateScorer

    torch.manual_seed(0)
    env = discrete()
    observation, _ = env.reset(seed=1)
    scorer = CandidateScorer(96, 32)
    order = np.random.default_rng(0).permutation(96)
    moved = observation.copy()
    moved[CONTEXT:] = observation[CONTEXT:].reshape(96, FEATURES)[order].reshape(-1)
    with torch.no_grad():
        scores, value = scorer(torch.from_numpy(observation)[None])
        permuted, same = scorer(torch.from_numpy(moved)[None])
    assert torch.allclose(permuted[0], scores[0][order], atol=1e-5)
    assert torch.allclose(value, same, atol=1e-5)


def test_the_blind_observation_does_not_depend_on_words():
    env = discrete(blind=True, families=("cancel_event", "delete_reminder"))
    seen = set()
    for seed in range(30):
        observation, _ = env.reset(seed=seed)
        rows = observation[CONTEXT:].reshape(96, FEATURES)
        seen.add((observation[:CONTEXT].tobytes(), rows[np.lexsort(rows.T)].tobytes()))
    assert len(seen) == 1


def test_the_observation_holds_nothing_of_the_evaluator_by_default():
    plain, privileged = discrete(), discrete(observe="kinds")
    for env in (plain, privileged):
        env.reset(seed=2)
    frozen = plain.observe().copy()
    plain._shuffler = np.random.default_rng(0)
    first = plain.observe()
    plain.env.frontier_summary = lambda: (_ for _ in ()).throw(AssertionError("looked at the evaluator"))
    plain._shuffler = np.random.default_rng(0)
    assert np.array_equal(first, plain.observe())
    assert frozen.shape == privileged.observe().shape
    assert not np.array_equal(np.sort(frozen), np.sort(privileged.observe()))
