"""Short runs: reproducible, resumable, complete on disk."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.training.config import PRESETS, TrainConfig
from dynsteer_gym.training.evaluate import RandomAgent, play, play_expert, summarise
from dynsteer_gym.training.job import run
from dynsteer_gym.training.runner import env_settings, train
from dynsteer_gym.training.vec_env import BatchedVecEnv

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


def test_a_seed_gives_the_same_model_whatever_the_number_of_workers():
    one = train(SMOKE)
    assert same(weights(one.model), weights(train(SMOKE).model))
    assert not same(weights(one.model), weights(train(SMOKE.model_copy(update={"seed": 1})).model))


def test_workers_step_the_same_episodes_as_one_process():
    logs = []
    for workers in (1, 2):
        envs = BatchedVecEnv(env_settings(SMOKE), 4, workers=workers, seed=5)
        log = [envs.reset()]
        for _ in range(15):
            observations, rewards, dones, _ = envs.step(np.zeros(4, np.int64))
            log += [observations, rewards, dones, envs.action_masks()]
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


def test_a_checkpoint_of_another_configuration_is_refused(tmp_path):
    train(SMOKE, tmp_path)
    with pytest.raises(ConfigurationError, match="configuration"):
        train(SMOKE.model_copy(update={"gamma": 0.9}), tmp_path, resume=True)


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
