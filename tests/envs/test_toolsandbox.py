"""Apple's ToolSandbox, where a checkout is named by DYNSTEER_TOOLSANDBOX and its packages are installed."""

import json
import os
import subprocess
import sys
from random import Random

import gymnasium as gym
import pytest

from dynsteer_gym.envs.toolsandbox.library import ENVIRONMENT, check
from dynsteer_gym.envs.toolsandbox.user import InstructedUser
from dynsteer_gym.errors import ConfigurationError

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

    assert len(world._names) == 509
    names = Random(1).sample(world._names, 120)
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
    for name in random.sample(world._names, 40):
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
    name = next(item for item in world._names if item.startswith("wifi_off"))
    world.reset(options={"scenario": name})
    other.reset(options={"scenario": name})
    fork = world.fork()
    world.step("set_wifi_status(on=False)")
    space = world._library.context.DatabaseNamespace.SETTING
    assert [env.context.get_database(space)["wifi"][0] for env in (world, other, fork)] == [False, True, True]


@needs_checkout
def test_nothing_hidden_is_in_the_view_or_the_observations(world):
    for name in Random(3).sample(world._names, 80):
        text, info = world.reset(options={"scenario": name})
        shown = json.dumps([text, info["messages"], info["tools"], info["task_id"]])
        shown += "".join(world.step("Which one?")[0] for _ in range(1) if not world.ended)
        assert name not in shown
        assert "User A" not in shown
        assert "User B" not in shown


@needs_checkout
def test_it_is_a_backend_of_the_registered_ids():
    env = gym.make("DynSTEER-ToolSandbox-v0", backend="toolsandbox")
    env.reset(seed=0)
    *_, info = env.step("I cannot do that.")
    assert "fault" not in info
