"""BFCL's multi-turn tasks, where the wheel is installed."""

import json
import subprocess
import sys
from collections import Counter
from random import Random

import gymnasium as gym
import pytest

from dynsteer_gym.envs.actions import AssistantTurn, ToolCall
from dynsteer_gym.events import EventKind
from dynsteer_gym.wrapper import DynSTEERWrapper

pytest.importorskip("bfcl_eval", reason="bfcl-eval is not installed: pip install --no-deps bfcl-eval mpmath")

from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_checker

from dynsteer_gym.envs import bfcl
from dynsteer_gym.envs.bfcl import CATEGORIES, BfclWorld, ground_truth, task_names
from dynsteer_gym.errors import ConfigurationError


def play(world, turns):
    """Plays the calls of each user turn in one step, then ends the turn."""
    score, terminated = 0.0, False
    for calls in turns:
        if calls:
            *_, terminated, truncated, info = world.step(AssistantTurn(calls=tuple(ToolCall(name, arguments) for name, arguments in calls)))
            assert not truncated, info
        _, score, terminated, truncated, _ = world.step("Done.")
    return score if terminated else None


def own_verdict(name, turns, number):
    """What BFCL's own checker says of the same calls."""
    entry, truth = bfcl._tasks()[name]
    decoded = [[[f"{tool}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})" for tool, arguments in turn]] if turn else [] for turn in turns]
    category = name.rsplit("_", 1)[0]
    return multi_turn_checker.multi_turn_checker(decoded, truth, entry, category, f"m{number}")["valid"]


@pytest.fixture(scope="module")
def clock():
    for name in ("TravelAPI", "GorillaFileSystem", "VehicleControlAPI"):
        bfcl._class(name)


def test_there_are_800_tasks_in_four_categories():
    assert len(task_names()) == 800
    assert {category: len(task_names(category)) for category in CATEGORIES} == dict.fromkeys(CATEGORIES, 200)


def test_the_ground_truth_scores_one_wherever_the_own_checker_says_so(clock):
    world = BfclWorld()
    found = Counter()
    for number, name in enumerate(task_names()):
        turns = ground_truth(name)
        world.reset(seed=0, options={"scenario": name})
        offered = [{spec.name for spec in world._offered(at)} for at in range(len(turns))]
        if any(tool not in names for turn, names in zip(turns, offered, strict=True) for tool, _ in turn):
            found["not on offer"] += 1  # Its ground truth calls a function in a turn before the one in which it appears.
            continue
        score = play(world, turns)
        found[score] += 1
        assert score == float(own_verdict(name, turns, number)), name
    assert found == {1.0: 799, "not on offer": 1}


def test_changed_runs_are_scored_as_the_own_checker_scores_them(clock):
    world = BfclWorld()
    random = Random(3)
    found = Counter()
    for number, name in enumerate(random.sample(task_names(), 160)):
        turns = [list(turn) for turn in ground_truth(name)]
        place = random.randrange(len(turns))
        how = random.choice(("drop", "repeat", "swap", "extra"))
        if how == "drop" and turns[place]:
            turns[place].pop(random.randrange(len(turns[place])))
        elif how == "repeat" and turns[place]:
            turns[place].append(random.choice(turns[place]))
        elif how == "swap":
            turns[place].reverse()
        else:
            turns[place].append(random.choice([call for turn in turns for call in turn]))
        # A call of a tool that is not on offer is one for the own checker, and none here.
        world.reset(seed=0, options={"scenario": name})
        offered = [{spec.name for spec in world._offered(at)} for at in range(len(turns))]
        if any(tool not in names for turn, names in zip(turns, offered, strict=True) for tool, _ in turn):
            continue
        score = play(world, turns)
        verdict = own_verdict(name, turns, f"x{number}")
        found[verdict] += 1
        assert score == float(verdict), (name, how)
    assert min(found[True], found[False]) >= 20


def test_a_function_that_was_missing_appears_through_an_event():
    world = BfclWorld(category="miss_func")
    _, info = world.reset(seed=0, options={"scenario": "multi_turn_miss_func_0"})
    assert "sort" not in [tool["function"]["name"] for tool in info["tools"]]
    world.drain_events()
    for _ in range(2):
        world.step("Done.")
    assert "No tool is called 'sort'" in world.step('sort(file_name="final_report.pdf")')[0]
    world.drain_events()
    text = world.step("I cannot sort it.")[0]
    assert text == "I have updated some more functions you can choose from. What about now?"
    change = next(event for event in world.drain_events() if event.kind == EventKind.TASK_CHANGE)
    assert change.value.tool("sort") is not None
    assert world.task_view.tool("sort") is not None
    assert "No tool is called" not in world.step('sort(file_name="final_report.pdf")')[0]


def test_it_is_evaluated_and_its_tasks_stay_hidden():
    env = DynSTEERWrapper(BfclWorld(), stop="none")
    for seed in range(40):
        _, info = env.reset(seed=seed)
        name = env.unwrapped.name
        assert name not in json.dumps([info["messages"], info["tools"], info["task_id"]])
        turns = ground_truth(name)
        done = False
        for calls in turns:
            for tool, arguments in calls:
                *_, info = env.step(AssistantTurn(calls=(ToolCall(tool, arguments),)))
                assert "fault" not in info
            _, reward, done, _, info = env.step("It is done.")
        if done:
            assert info["native_score"] == 1.0
            assert 0.0 <= info["rollout_score"] <= 1.0
            assert reward >= 1.0


def test_malformed_calls_leave_the_simulators_alone_and_errors_inform():
    world = BfclWorld()
    world.reset(seed=0, options={"scenario": "multi_turn_base_0"})
    before = json.dumps({name: vars(item) for name, item in world._instances.items()}, default=str)
    for action in ("mv(source='x')", "mv(a=1)", "_load_scenario(scenario={})", "__init__()", '{"name": "mv"', "rm(file_name=[1])", "kill()"):
        text, _, terminated, truncated, info = world.step(action)
        assert text.startswith("Error: ") or action.startswith("rm")
        assert not terminated and not truncated and "fault" not in info
    assert json.dumps({name: vars(item) for name, item in world._instances.items()}, default=str) == before


def test_forks_share_nothing():
    world = BfclWorld()
    world.reset(seed=0, options={"scenario": "multi_turn_base_0"})
    turns = ground_truth("multi_turn_base_0")
    fork, kept = world.fork(), world.snapshot()
    assert play(world, turns) == 1.0
    assert play(fork, turns) == 1.0
    world.restore(kept)
    assert play(world, [[] for _ in turns]) == 0.0


def test_a_seed_gives_the_same_task_in_another_process():
    code = "from dynsteer_gym.envs.bfcl import BfclWorld; w = BfclWorld(); print([w.reset(seed=s)[1]['task_id'] for s in range(9)])"
    runs = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in range(2)}
    assert len(runs) == 1


def test_it_is_a_backend_of_the_registered_ids():
    env = gym.make("DynSTEER-ToolSandbox-v0", backend="bfcl", suite="miss_param")
    _, info = env.reset(options={"scenario": "multi_turn_miss_param_3"})
    assert env.unwrapped.name == "multi_turn_miss_param_3"
    assert gym.make(env.spec).reset(options={"scenario": "multi_turn_miss_param_3"})[1]["task_id"] == info["task_id"]
    assert isinstance(gym.make("ToolSandbox-v0", backend="bfcl").unwrapped, BfclWorld)
    with pytest.raises(ConfigurationError, match="no split"):
        gym.make("DynSTEER-ToolSandbox-v0", backend="bfcl", split="train")


def test_wrong_settings_get_one_sentence():
    with pytest.raises(ConfigurationError, match="miss_func"):
        BfclWorld(category="missing")
    with pytest.raises(ConfigurationError, match="multi_turn_base_0"):
        BfclWorld().reset(options={"scenario": "nope"})
