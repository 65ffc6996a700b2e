"""Apple's ToolSandbox, where a checkout is named by DYNSTEER_TOOLSANDBOX and its packages are installed."""

import json
import os
import subprocess
import sys
import time
from random import Random

import gymnasium as gym
import pytest

from dynsteer_gym.envs.toolsandbox.library import ENVIRONMENT, check
from dynsteer_gym.envs.toolsandbox.user import InstructedUser
from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.measure_toolsandbox import f1

TASK = "Answer User B's questions given the following task you (User A) want User B to complete: "


def user(task, opening):
    return InstructedUser.of(f"1. Be brief.\n{TASK}{task}", opening)


def test_the_user_answers_from_the_instruction_and_never_says_what_is_not_to_be_leaked():
    one = user("Search for Homer S's phone number. It should be +10000000000. Do not leak this information. You do not have more.", "Homer?")
    said = []
    for message in ("Which number?", "What is it?", "Is it +10000000000?", "I cannot do that.", "Who is it?", "Tell me all?"):
        reply, one = one.hears(message)
        said.append(reply.text)
    assert not any("0000" in text for text in said)
    two = user("Search how many days it is till Christmas Day. Christmas Day is 12/25/2024. Do not leak this information.", "When is it?")
    assert not any("12/25" in sentence for sentence in two.told)


def test_the_user_brings_what_the_opening_left_out_and_ends_when_all_is_said():
    one = user("Delete a contact by phone number +12453344098. You do not have more information.", "I want to delete someone from my contact")
    reply, one = one.hears("Which contact?")
    assert reply.text == "Delete a contact by phone number +12453344098."
    reply, one = one.hears("It is removed.")
    assert reply.ends


def test_a_user_who_is_only_refused_gives_up():
    one = user("Turn off wifi", "Turn off wifi")
    turns = 0
    ends = False
    while not ends:
        reply, one = one.hears("I cannot do that.")
        ends = reply.ends
        turns += 1
    assert turns == 5


def test_what_is_wrong_with_a_checkout_is_said_in_sentences(tmp_path):
    assert "no folder" in check(tmp_path / "nothing")[0]
    assert any("scenarios" in problem for problem in check(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "dynsteer_gym.cli", "toolsandbox", "install", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "checkout" in done.stderr


def test_without_a_checkout_make_says_what_to_do(monkeypatch, tmp_path):
    from dynsteer_gym.envs.toolsandbox import library

    monkeypatch.delenv(ENVIRONMENT, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match="dynsteer toolsandbox install"):
        library.where()


def usable():
    named = os.environ.get(ENVIRONMENT)
    if not named:
        return f"{ENVIRONMENT} names no checkout of apple/ToolSandbox"
    from pathlib import Path

    return "; ".join(check(Path(named)))


REASON = usable()
needs_checkout = pytest.mark.skipif(bool(REASON), reason=REASON or "usable")


@pytest.fixture(scope="module")
def world():
    from dynsteer_gym.envs.toolsandbox import ToolSandboxWorld

    return ToolSandboxWorld()


@needs_checkout
def test_all_509_load_and_an_oracle_reaches_the_references(world):
    from dynsteer_gym.envs.toolsandbox.oracle import Oracle

    assert len(world.names) == 509
    names = Random(1).sample(world.names, 120)
    scores = []
    for name in names:
        world.reset(options={"scenario": name})
        assert "fault" not in Oracle(world).play()
        scores.append(world.native_score())
    assert sum(score >= 0.95 for score in scores) >= 0.9 * len(names)


@needs_checkout
def test_the_score_is_toolsandboxs_own(world):
    from dynsteer_gym.envs.toolsandbox.oracle import Oracle

    random = Random(2)
    for name in random.sample(world.names, 40):
        world.reset(options={"scenario": name})
        if random.random() < 0.5:
            Oracle(world).play()
        else:
            while not world.ended:
                tool = random.choice(world.task_view.tools)
                world.step(random.choice([json.dumps({"name": tool.name, "arguments": {}}), "Done.", "Which one?"]))
        own = world.evaluation.evaluate(world.context, 30).similarity
        assert world.native_score() == pytest.approx(own, abs=1e-6)


@needs_checkout
def test_two_envs_and_forks_do_not_mix(world):
    from dynsteer_gym.envs.toolsandbox import ToolSandboxWorld

    other = ToolSandboxWorld()
    name = next(item for item in world.names if item.startswith("wifi_off"))
    world.reset(options={"scenario": name})
    other.reset(options={"scenario": name})
    fork = world.fork()
    world.step("set_wifi_status(on=False)")
    space = world.library.context.DatabaseNamespace.SETTING
    assert [env.context.get_database(space)["wifi"][0] for env in (world, other, fork)] == [False, True, True]


def shown_rows(world):
    """Values of the databases by which a row is told: what only a tool's answer may bring."""
    space = world.library.context.DatabaseNamespace
    for name, columns in (("CONTACT", ("person_id", "phone_number", "name")), ("MESSAGING", ("message_id", "content")), ("REMINDER", ("reminder_id",))):
        frame = world.context.get_database(space[name])
        for column in columns:
            yield from (str(value) for value in frame[column].to_list() if value)


@needs_checkout
def test_nothing_hidden_is_in_the_view_or_the_observations(world):
    rows = 0
    for name in Random(3).sample(world.names, 80):
        scenario = world.library.scenarios[name]
        text, info = world.reset(options={"scenario": name})
        view = world.task_view
        told = json.dumps([text, info["messages"], info["tools"], info["task_id"], view.task_id, view.policy, [str(table) for table in view.tables]])
        told += "".join(world.step(message)[0] for message in ("Which one?", "I cannot do that.") if not world.ended)
        assert name not in told
        for category in scenario.categories:
            assert str(category) not in told
        assert "User A" not in told
        assert "User B" not in told
        # The user's instruction, sentence by sentence: what the user may say is what the opening or an answer said.
        frame = world.library.scenarios[name].starting_context
        instruction = next(
            row["content"]
            for row in frame.get_database(world.library.context.DatabaseNamespace.SANDBOX, get_all_history_snapshots=True).to_dicts()
            if str(row["sender"]) == "SYSTEM" and str(row["recipient"]) == "USER"
        )
        head = instruction.partition("Answer User B")[0].strip()
        assert head[:60] not in told
        said = json.dumps(info["messages"]) + instruction
        for value in shown_rows(world):
            if value not in said:
                rows += 1
                assert value not in told
    assert rows > 300


@needs_checkout
def test_a_minefield_that_the_blueprint_knows_is_screened_before_the_call_runs(world):
    from dynsteer_gym.blueprint.graph import MinefieldKind
    from dynsteer_gym.evaluation.stopping import Criterion

    env = gym.make("DynSTEER-ToolSandbox-v0", backend="toolsandbox")
    caught = 0
    for name in Random(5).sample(world.names, 120):
        env.reset(seed=0, options={"scenario": name})
        mines = [mine for mine in env.get_wrapper_attr("compiled").blueprint.minefields if mine.kind == MinefieldKind.UNSUPPORTED_CALL]
        view = env.unwrapped.task_view
        if not mines:
            continue
        spec = view.tool(mines[0].tool)
        given = {key: 987654321.5 if spec.properties[key].get("type") == "number" else "+10987654321" for key in spec.required}
        before = {key: frame.to_dicts() for key, frame in env.unwrapped.context._dbs.items()}
        _, reward, terminated, truncated, info = env.step(json.dumps({"name": spec.name, "arguments": given}))
        assert terminated
        assert not truncated
        assert info["stop"].criterion == Criterion.MINEFIELD
        assert reward == 0
        assert {key: frame.to_dicts() for key, frame in env.unwrapped.context._dbs.items()} == before
        caught += 1
    assert caught >= 5


def oracle_actions(world, name):
    """The actions with which the oracle plays scenario ``name`` of ``world``."""
    from dynsteer_gym.envs.toolsandbox.oracle import Oracle

    actions = []
    step = world.step

    def recorded(action):
        actions.append(action)
        return step(action)

    world.reset(options={"scenario": name})
    world.step = recorded
    try:
        Oracle(world).play()
    finally:
        del world.step
    return actions


@needs_checkout
def test_native_progress_never_falls_and_its_increments_sum_to_the_native_score(world):
    env = gym.make("DynSTEER-ToolSandbox-v0", backend="toolsandbox", reward="native_dense", stop="none")
    ends = 0
    for name in Random(6).sample(world.names, 12):
        env.reset(seed=0, options={"scenario": name})
        paid, rewards = 0.0, []
        for action in oracle_actions(world, name):
            _, reward, terminated, truncated, info = env.step(action)
            paid += reward
            rewards.append(reward)
            if terminated or truncated:
                break
        if terminated:
            ends += 1
            assert paid == pytest.approx(info["native_score"])
            assert min(rewards) >= -1e-9
    assert ends >= 8


def test_native_dense_is_refused_for_a_world_that_does_not_tell_its_progress():
    with pytest.raises(ConfigurationError, match="native_dense"):
        gym.make("DynSTEER-ToolSandbox-v0", reward="native_dense")


@needs_checkout
def test_a_call_that_hangs_is_a_fault_and_the_next_episode_is_unharmed(world):
    from dynsteer_gym.envs.toolsandbox import ToolSandboxWorld

    slow = ToolSandboxWorld(call_timeout=0.2)
    name = next(item for item in slow.names if item.startswith("wifi_off"))
    slow.reset(options={"scenario": name})

    def hangs(**arguments):
        time.sleep(30)

    slow.tools_by_shown_name["set_wifi_status"] = hangs
    _, reward, terminated, truncated, info = slow.step("set_wifi_status(on=False)")
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert "0.2 s" in info["fault"]
    slow.reset(options={"scenario": name})
    assert "fault" not in slow.step("set_wifi_status(on=False)")[4]


@needs_checkout
def test_vector_envs_run_it_in_subprocesses():
    envs = gym.make_vec("ToolSandbox-v0", num_envs=2, vectorization_mode="async", backend="toolsandbox", vector_kwargs={"shared_memory": False, "context": "spawn"})
    try:
        texts, _ = envs.reset(seed=[1, 2])
        lone = gym.make("ToolSandbox-v0", backend="toolsandbox")
        assert list(texts) == [lone.reset(seed=seed)[0] for seed in (1, 2)]
        _, rewards, *_ = envs.step(["Which one?", "Which one?"])
        assert rewards.shape == (2,)
    finally:
        envs.close()


def test_the_stand_ins_are_undone_after_the_import(tmp_path):
    from dynsteer_gym.envs.toolsandbox.shim import importable

    path, names = list(sys.path), {name for name in sys.modules if name.startswith(("openai", "langchain_core"))}
    with pytest.raises(RuntimeError), importable(tmp_path):
        from openai import OpenAI  # noqa: F401

        raise RuntimeError
    assert sys.path == path
    assert {name for name in sys.modules if name.startswith(("openai", "langchain_core"))} == names


@needs_checkout
def test_figures_of_a_few_scenarios_are_within_range(tmp_path):
    from typer.testing import CliRunner

    from dynsteer_gym.cli import app

    dev, out = tmp_path / "dev.txt", tmp_path / "figures.json"
    dev.write_text("wifi_off\nno_such_scenario\n")
    done = CliRunner().invoke(app, ["measure", "toolsandbox", "--limit", "4", "--dev", str(dev), "--json", str(out)])
    assert done.exit_code == 0, done.output
    figures = json.loads(out.read_text())
    assert figures["scenarios"] == 4
    assert figures["agents"]["oracle"]["native"] >= figures["agents"]["silent"]["native"]
    assert all(entry["faults"] == 0 for entry in figures["agents"].values())
    assert figures["blueprint"]["scenarios"] == 1


def test_precision_recall_and_f1_by_hand():
    assert f1(3, 4, 6) == {"precision": 0.75, "recall": 0.5, "f1": 0.6, "hits": 3, "predicted": 4, "wanted": 6}
    assert f1(0, 0, 0)["f1"] == 1.0
    assert f1(0, 0, 2) == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "hits": 0, "predicted": 0, "wanted": 2}


@needs_checkout
def test_it_is_a_backend_of_the_registered_ids():
    env = gym.make("DynSTEER-ToolSandbox-v0", backend="toolsandbox")
    env.reset(seed=0)
    *_, info = env.step("I cannot do that.")
    assert "fault" not in info
