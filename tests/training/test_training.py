"""Short runs: reproducible, resumable, complete on disk."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from gymnasium.error import ResetNeeded

from dynsteer_gym.envs.actions import AssistantTurn, ToolCall
from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.settings import EnvSettings
from dynsteer_gym.training.buffer import PackedRolloutBuffer, pack
from dynsteer_gym.training.callbacks import Books
from dynsteer_gym.training.config import PRESETS, TrainConfig
from dynsteer_gym.training.evaluate import RandomAgent, at_most, family_of, play, play_expert, play_on, summarise
from dynsteer_gym.training.job import run
from dynsteer_gym.training.runner import env_settings, train
from dynsteer_gym.training.vec_env import BatchedVecEnv, ControlEpisode, Lane

SMOKE = TrainConfig.from_preset("smoke")


def weights(model):
    return {name: value.numpy().copy() for name, value in model.policy.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def test_every_preset_is_a_valid_configuration():
    for name in PRESETS:
        assert TrainConfig.from_preset(name).preset == name
    with pytest.raises(ConfigurationError, match="quick"):
        TrainConfig.from_preset("fast")
    with pytest.raises(ConfigurationError):
        TrainConfig.from_preset("quick", gamma=2.0)


def test_a_seed_gives_the_same_model():
    one = train(SMOKE)
    assert same(weights(one.model), weights(train(SMOKE).model))
    assert not same(weights(one.model), weights(train(SMOKE.model_copy(update={"seed": 1})).model))


def test_workers_step_the_same_episodes_as_one_process():
    logs = []
    for workers in (1, 2):
        envs = BatchedVecEnv(env_settings(SMOKE), 4, workers=workers, seed=5)
        log = [envs.reset().copy()]
        for _ in range(15):
            observations, rewards, dones, _ = envs.step(np.zeros(4, np.int64))
            log += [observations.copy(), rewards, dones, envs.action_masks()]
        envs.close()
        logs.append(log)
    assert all(np.array_equal(a, b) for a, b in zip(*logs, strict=True))


SCRIPT = """
import sys
from pathlib import Path
from dynsteer_gym.training.config import TrainConfig
from dynsteer_gym.training.runner import train
train(TrainConfig.from_preset("smoke"), Path(sys.argv[1]), resume=True, progress=lambda *a: print("update", flush=True))
"""


def test_a_killed_run_resumes_to_the_same_model(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir(), killed.mkdir()
    expected = train(SMOKE, whole)
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(killed)], stdout=subprocess.PIPE, text=True)
    for _ in range(2):
        process.stdout.readline()
    deadline = time.monotonic() + 60
    while not (killed / "checkpoint.pkl").exists() and time.monotonic() < deadline:
        pass
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    resumed = train(SMOKE, killed, resume=True)
    assert resumed.model.num_timesteps == expected.model.num_timesteps
    assert same(weights(resumed.model), weights(expected.model))
    assert [row["steps"] for row in resumed.books.rows] == [row["steps"] for row in expected.books.rows]
    assert resumed.books.curve == expected.books.curve


def stepped_lane(steps=60, **arts):
    lane = Lane({**env_settings(SMOKE), "interface": "discrete", "report": False, "stop": {"preset": "paper", "stagnation": 3}}, range(6), **arts)
    lane.use(*np.zeros((2, 6, lane.envs[0].observation_space.shape[0]), np.float32))
    masks = lane.reset(0)
    draws = np.random.default_rng(3)
    infos = []
    for _ in range(steps):
        *_, found, masks = lane.step([int(draws.integers(mask.sum())) for mask in masks], 0)
        infos += [info for info in found if info]
    return lane, infos


def test_the_control_arm_plays_stopped_episodes_on_to_their_ends():
    lane, infos = stepped_lane(control_share=1.0)
    stopped = [info["stop"] for info in infos if info["stop"] is not None]
    kept = lane.take_control()
    assert stopped and [episode.criterion for episode in kept] == stopped
    assert lane.take_control() == []
    went = play_on(RandomAgent(1), kept)
    assert len(went) == len(kept)
    for episode, (turns, _) in zip(kept, went, strict=True):
        base = episode.env.unwrapped
        assert 1 <= turns <= base.max_turns
        with pytest.raises(ResetNeeded):
            episode.env.step(0)
    assert stepped_lane(control_share=0.0)[0].take_control() == []


def test_an_intercepted_call_is_run_when_its_episode_plays_on():
    env = EnvSettings.read({**env_settings(SMOKE), "interface": "discrete", "stop": "paper"}).make()
    env.reset(options={"scenario": "is_on/0"})
    call = AssistantTurn(calls=(ToolCall("send_message", {"phone_number": "+14155550199", "content": "Hello"}),))
    *_, info = env.env.step(call)
    assert info["stop"].criterion == "fatal_minefield"
    kept = env.fork()
    kept.env.lift_stop()
    assert play_on(RandomAgent(0), [ControlEpisode(kept, call, "fatal_minefield")]) == [(1, False)]
    with pytest.raises(ResetNeeded):
        env.env.step(call)


def test_only_a_stopped_episode_can_be_played_on():
    env = EnvSettings.read({"interface": "discrete"}).make()
    env.reset(seed=0)
    with pytest.raises(ResetNeeded, match="stopped"):
        env.env.lift_stop()


def test_what_stops_saved_is_counted_from_the_control_arm():
    books = Books()
    books.episodes, books.stopped, books.turns_left = 40, {"frontier_stagnation": 10, "budget": 2}, 300
    assert books.saved(100)["share"] is None
    books.control = [("frontier_stagnation", 6, False), ("frontier_stagnation", 2, True), ("budget", 1, False)]
    saved = books.saved(100)
    assert saved["control"]["further_turns"] == 3.0
    assert saved["steps"] == 36.0
    assert saved["share"] == pytest.approx(36 / 136)
    assert saved["control"]["false_stop_share"] == pytest.approx(1 / 3)
    # P[Bin(3, p) <= 1] = (1 - p)^2 (1 + 2 p) = 0.05
    bound = saved["control"]["false_stop_at_most"]
    assert (1 - bound) ** 2 * (1 + 2 * bound) == pytest.approx(0.05)
    assert saved["by_criterion"]["frontier_stagnation"] == {"stopped": 10, "control": 2, "false_stops": 1}
    assert saved["at_most_share"] == 0.75


def test_stage_pay_falls_with_the_familys_success():
    lane, _ = stepped_lane(steps=20, anneal=True)
    lane._learned = dict.fromkeys(lane._learned, 0.75)
    families = {}
    for _ in range(80):
        lane.step([0] * 6, 0)
        for env in lane.envs:
            families[family_of(env)] = env.env.reward.scale
    assert {round(scale, 3) for scale in families.values()} & {0.3}
    assert min(families.values()) < 0.3 * 0.3


def test_packed_observations_give_what_flat_ones_give():
    lane, _ = stepped_lane(steps=5)
    model = train(SMOKE.model_copy(update={"total_steps": 512})).model
    flat = torch.from_numpy(np.stack([env.observe() for env in lane.envs]))
    masks = np.stack([env.action_masks() for env in lane.envs])
    actions = torch.tensor([int(mask.sum()) - 1 for mask in masks])
    dense = model.policy.evaluate_actions(flat, actions, action_masks=torch.from_numpy(masks))
    packed = model.policy.evaluate_actions(pack(flat), actions)
    for one, other in zip(dense, packed, strict=True):
        assert torch.allclose(one.flatten(), other.flatten(), atol=1e-5)


def test_the_packed_buffer_hands_out_each_transition_once_with_its_own_candidates():
    lane, _ = stepped_lane(steps=3)
    space, actions = lane.envs[0].observation_space, lane.envs[0].action_space
    buffer = PackedRolloutBuffer(4, space, actions, "cpu", n_envs=6)
    masks = np.stack([env.action_masks() for env in lane.envs])
    expected = {}
    for step in range(4):
        flat = np.stack([env.observe() for env in lane.envs])
        numbers = np.arange(6) + 6 * step
        for number, row in zip(numbers, flat, strict=True):
            expected[int(number)] = row
        zeros = torch.zeros(6)
        buffer.add(flat, numbers.reshape(-1, 1), np.zeros(6), np.zeros(6), zeros, zeros, action_masks=masks)
    buffer.compute_returns_and_advantage(torch.zeros(6), np.zeros(6))
    seen = set()
    for batch in buffer.get(5):
        first = 0
        for number, context, count in zip(batch.actions.flatten().int().tolist(), batch.observations.context, batch.observations.counts.tolist(), strict=True):
            flat = np.concatenate([context.numpy(), batch.observations.rows[first : first + count].numpy().ravel()])
            assert np.array_equal(flat, expected[number][: len(flat)]) and not expected[number][len(flat) :].any()
            first += count
            seen.add(number)
        assert first == len(batch.observations.rows)
    assert seen == expected.keys()


def test_worker_processes_write_their_states_while_the_control_arm_is_played(tmp_path):
    config = SMOKE.model_copy(update={"workers": 2, "control_share": 1.0, "total_steps": 1_536})
    done = train(config, tmp_path)
    assert len(done.books.control) == sum(done.books.stopped.values()) > 0
    assert train(config, tmp_path, resume=True).books.control == done.books.control


def test_a_checkpoint_of_another_configuration_is_refused(tmp_path):
    train(SMOKE, tmp_path)
    with pytest.raises(ConfigurationError, match="configuration"):
        train(SMOKE.model_copy(update={"gamma": 0.9}), tmp_path, resume=True)


@pytest.mark.parametrize("content", [b"", b"junk", pickle.dumps(["a list"]), pickle.dumps({"envs": ["envs-1-0.pkl"]})])
def test_what_is_no_whole_checkpoint_gets_one_sentence(tmp_path, content):
    (tmp_path / "checkpoint.pkl").write_bytes(content)
    with pytest.raises(ConfigurationError, match="start a new run"):
        train(SMOKE, tmp_path, resume=True)


@pytest.mark.parametrize("seed", [-1, 2**32, "one"])
def test_a_seed_that_no_generator_takes_is_refused(seed):
    with pytest.raises(ConfigurationError, match="seed"):
        TrainConfig.from_preset("smoke", seed=seed)


@pytest.mark.parametrize("trials", [1, 59, 1_700, 50_000])
def test_the_bound_of_a_share_holds_for_any_number_of_trials(trials):
    assert at_most(0, trials) == pytest.approx(1 - 0.05 ** (1 / trials))
    assert at_most(trials - 1, trials) == pytest.approx(0.95 ** (1 / trials))
    share = (2 * trials // 5) / trials
    assert share < at_most(2 * trials // 5, trials) < share + 2 / trials**0.5


def test_a_run_writes_everything_it_promises(tmp_path):
    summary = run(SMOKE, tmp_path / "run")
    for name in ("summary.json", "config.json", "metrics.csv", "model.zip", "curve.png", "report.html"):
        assert (tmp_path / "run" / name).stat().st_size > 0
    assert (tmp_path / "run" / "tensorboard").is_dir()
    assert json.loads((tmp_path / "run" / "summary.json").read_text()) == json.loads(json.dumps(summary))
    for agent in ("random", "trained", "expert"):
        for split in SMOKE.splits:
            assert {"success", "native", "stage_return", "steps"} <= summary["agents"][agent][split].keys()
    assert {"seconds", "env_steps", "steps_saved"} <= summary.keys()
    assert summary["agents"]["expert"]["unseen"]["success"] == 1.0
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.count("<svg") == 3
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "src=\"http" not in page


def test_evaluation_depends_on_seeds_alone():
    settings = env_settings(SMOKE)
    narrow = play(RandomAgent(0), settings, "unseen", [1, 2, 3], width=1)
    assert [episode.seed for episode in narrow] == [1, 2, 3]
    assert play(RandomAgent(0), settings, "unseen", [1, 2, 3], width=1) == narrow
    experts = play_expert(settings, "paraphrased", list(range(10)))
    assert summarise(experts)["success"] == 1.0
