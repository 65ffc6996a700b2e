"""Worlds of one's own: functions, an MCP server; and what happens when a world fails."""

import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

import gymnasium as gym
import pytest

from dynsteer_gym.envs.functions import FunctionWorld, Scenario, ScriptedUser
from dynsteer_gym.envs.mcp_server import McpWorld
from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.events import ErrorKind, EventKind
from dynsteer_gym.judges.cheap import CheapJudge
from dynsteer_gym.vector import DynSTEERVectorEnv
from dynsteer_gym.wrapper import DynSTEERWrapper


@dataclass
class Book:
    book_id: str
    title: str
    lent: bool


def search_books(state: dict, title: str | None = None) -> list[Book]:
    """Search the books of the library by title.

    Args:
        title: Title of the book.
    """
    return [{"book_id": key, **row} for key, row in state["books"].items() if title is None or title == row["title"]]


def borrow_book(state: dict, book_id: str, day: str, kind: Literal["short", "long"] = "short") -> bool:
    """Borrow a book until a day.

    Args:
        book_id: Id of the book.
        day: Day on which it is brought back.
        kind: Kind of loan.
    """
    if state["books"][book_id]["lent"]:
        raise ValueError("the book is lent already")
    state["books"][book_id] = {**state["books"][book_id], "lent": True}
    state["day"] = day
    return True


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def fail(how: str):
    """Fail in some way.

    Args:
        how: In which way.
    """
    if how == "raise":
        raise RuntimeError("the disk is full")
    if how == "hang":
        time.sleep(60)
    return {"garbage": {1, 2}, "nan": float("nan")}.get(how, object())


def library(random: Random) -> Scenario:
    key = f"b{random.randrange(100)}"
    return Scenario(
        'Borrow the book "Dune".',
        {"books": {key: {"title": "Dune", "lent": False}}, "day": ""},
        lambda state, user: float(state["books"][key]["lent"] and state["day"] == "2026-03-12"),
        ScriptedUser({"day when date": "On 2026-03-12."}),
        tables=lambda state: {"books": state["books"]},
    )


def world(**settings):
    return FunctionWorld([search_books, borrow_book, double, fail], library, **settings)


def test_functions_become_a_world_that_is_evaluated_and_paid():
    env = DynSTEERWrapper(world())
    text, info = env.reset(seed=3)
    assert text == 'Borrow the book "Dune".'
    assert [tool["function"]["name"] for tool in info["tools"]] == ["search_books", "borrow_book", "double", "fail"]
    schema = info["tools"][1]["function"]["parameters"]
    assert schema["required"] == ["book_id", "day"]
    assert schema["properties"]["kind"]["enum"] == ["short", "long"]
    assert "state" not in schema["properties"]
    text = env.step('search_books(title="Dune")')[0]
    key = env.unwrapped.scenario.state["books"].copy().popitem()[0]
    assert key in text
    assert env.step("For which day?")[0] == "On 2026-03-12."
    env.step(f'borrow_book(book_id="{key}", day="2026-03-12")')
    writes = env.step_events[-1].writes
    assert [(delta.table, delta.key, delta.after["lent"]) for delta in writes] == [("books", key, True)]
    _, reward, terminated, truncated, info = env.step("It is done.")
    assert (terminated, truncated) == (True, False)
    assert info["native_score"] == 1.0
    assert reward >= 1.0
    assert info["rollout_score"] > 0.7


def test_errors_of_functions_are_shown_and_wrong_arguments_run_nothing():
    env = world()
    env.reset(seed=0)
    key = next(iter(env.scenario.state["books"]))
    cases = [
        ('borrow_book(book_id="nope", day="x")', ErrorKind.NOT_FOUND, "nope"),
        (f'borrow_book(book_id="{key}", day=3)', ErrorKind.SCHEMA, "day"),
        (f'borrow_book(book_id="{key}", day="x", kind="odd")', ErrorKind.SCHEMA, "kind"),
        ("double(number=true)", ErrorKind.SCHEMA, "number"),
        ("triple(number=1)", ErrorKind.UNKNOWN_TOOL, "double"),
        ('{"name": "double", "arguments": {', ErrorKind.UNPARSEABLE, "could not be read"),
    ]
    for action, kind, word in cases:
        env.drain_events()
        text, _, terminated, truncated, info = env.step(action)
        assert text.startswith("Error: ")
        assert word in text
        assert not terminated and not truncated and "fault" not in info
        assert next(event.error for event in env.drain_events() if event.kind == EventKind.TOOL_RETURN) == kind
    assert not env.scenario.state["books"][key]["lent"]
    assert env.step("double(number=4)")[0] == "8"


def test_a_fork_and_a_snapshot_share_nothing_with_the_running_episode():
    env = world()
    env.reset(seed=0)
    key = next(iter(env.scenario.state["books"]))
    kept, fork = env.snapshot(), env.fork()
    env.step(f'borrow_book(book_id="{key}", day="2026-03-12")')
    assert not fork.scenario.state["books"][key]["lent"]
    assert fork.turn == 0
    env.restore(kept)
    assert not env.scenario.state["books"][key]["lent"]
    env.step(f'borrow_book(book_id="{key}", day="2026-03-12")')
    assert env.step("Done.")[1] == 1.0
    env.restore(kept)
    assert env.step("Done.")[1] == 0.0


def test_the_same_seed_gives_the_same_task_and_another_seed_another():
    ids = []
    for seed in (1, 1, 2):
        env = world()
        _, info = env.reset(seed=seed)
        ids.append(info["task_id"])
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    ("tools", "word"),
    [([double, double], "names of their own"), ([lambda x: x], "names of their own"), ([type("T", (), {"__name__": "t", "__call__": 3})()], "t")],
)
def test_what_is_no_tool_is_refused_at_once(tools, word):
    with pytest.raises((ConfigurationError, TypeError), match=word):
        FunctionWorld(tools, library)


@pytest.mark.parametrize("how", ["raise", "hang", "garbage", "nan", "object"])
def test_a_world_that_fails_ends_the_episode_with_a_fault_and_the_next_reset_is_well(how):
    env = DynSTEERWrapper(world(call_timeout=0.3))
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(f'fail(how="{how}")')
    assert info["fault"]
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["reward_components"] == {}
    assert info["is_success"] is False
    assert "native_score" not in info
    with pytest.raises(gym.error.ResetNeeded):
        env.step("Done.")
    env.reset(seed=0)
    assert "fault" not in env.step('search_books(title="Dune")')[4]


class BadUser:
    def __init__(self, answer):
        self.answer = answer

    def hears(self, message):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("user", "score"),
    [
        (BadUser(RuntimeError("no user")), 1.0),
        (BadUser(7), 1.0),
        (BadUser(None), float("nan")),
        (BadUser(None), 2.0),
        (BadUser(None), "good"),
        (BadUser(None), RuntimeError("no score")),
    ],
)
def test_a_user_or_a_score_that_fails_is_a_fault(user, score):
    def scored(state, own):
        if isinstance(score, Exception):
            raise score
        return score

    env = DynSTEERWrapper(FunctionWorld([double], lambda random: Scenario("Double 2.", None, scored, user)))
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step("Done.")
    assert info["fault"]
    assert (reward, terminated, truncated) == (0.0, False, True)


class Raising(gym.Wrapper):
    """A world that breaks Gymnasium's contract now and then."""

    result = None

    def step(self, action):
        outcome = self.env.step(action)
        if self.result is None:
            return outcome
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.mark.parametrize("result", [ValueError("boom"), (b"bytes", 0.0, False, False, {}), (1, 2), ("x", "y", False, False, {})])
def test_a_step_that_raises_or_gives_garbage_is_a_fault_of_the_world(result):
    base = Raising(world())
    env = DynSTEERWrapper(base)
    env.reset(seed=0)
    base.result = result
    _, reward, terminated, truncated, info = env.step("double(number=1)")
    assert info["fault"].startswith("world: ")
    assert (reward, terminated, truncated) == (0.0, False, True)
    base.result = None
    env.reset(seed=0)
    assert env.step("double(number=1)")[0] == "2"


class BrittleJudge(CheapJudge):
    """Fails on requests about a word."""

    def review(self, requests):
        if any("Broken" in request.request for request in requests):
            raise RuntimeError("out of memory")
        return super().review(requests)


def test_a_judge_that_fails_is_a_fault_of_those_envs_only_whose_review_it_was():
    titles = iter(["Dune", "Broken", "Emma"])
    judge = BrittleJudge()

    def make():
        title = next(titles)
        scenario = lambda random: Scenario(  # noqa: E731
            f'Borrow the book "{title}".', {"books": {"b1": {"title": title, "lent": False}}, "day": ""}, lambda state, user: 1.0
        )
        return DynSTEERWrapper(FunctionWorld([search_books, borrow_book], scenario), judge=judge)

    envs = DynSTEERVectorEnv(make, 3)
    envs.reset(seed=0)
    _, rewards, terminated, truncated, infos = envs.step([f'search_books(title="{title}")' for title in ("Dune", "Broken", "Emma")])
    assert truncated.tolist() == [False, True, False]
    assert not terminated.any()
    assert infos["fault"][1].startswith("judge: ")
    assert infos["_fault"].tolist() == [False, True, False]
    assert rewards[1] == 0.0 < min(rewards[0], rewards[2])


NOTES = ["python", str(Path(__file__).with_name("notes_server.py"))]


def notes(random: Random) -> Scenario:
    return Scenario('Add the note "milk".', None, lambda call, user: float(call("list_notes") == ["milk"]))


@pytest.fixture
def mcp_env():
    env = DynSTEERWrapper(McpWorld(NOTES, notes, call_timeout=30), stop="none")
    yield env
    env.close()


def test_the_tools_of_an_mcp_server_are_a_world(mcp_env):
    _, info = mcp_env.reset(seed=0)
    assert [tool["function"]["name"] for tool in info["tools"]][:3] == ["add_note", "list_notes", "delete_note"]
    assert mcp_env.step('add_note(text="milk")')[0] == "1"
    assert mcp_env.step('delete_note(text="tea")')[0].startswith("Error: ")
    assert mcp_env.step("add_note(text=[1])")[0].startswith("Error: ")
    _, _, terminated, _, info = mcp_env.step("Done.")
    assert terminated
    assert info["native_score"] == 1.0
    # A fresh server for the next episode.
    mcp_env.reset(seed=1)
    assert mcp_env.step("list_notes()")[0] == "[]"


def test_a_server_that_dies_or_hangs_is_a_fault_and_the_next_reset_is_well(mcp_env):
    mcp_env.reset(seed=0)
    _, reward, terminated, truncated, info = mcp_env.step("crash()")
    assert info["fault"]
    assert (reward, terminated, truncated) == (0.0, False, True)
    hanging = DynSTEERWrapper(McpWorld(NOTES, notes, call_timeout=8))
    hanging.reset(seed=0)
    hanging.unwrapped._server._timeout = 0.5
    assert "did not answer" in hanging.step("hang()")[4]["fault"]
    hanging.close()
    mcp_env.reset(seed=0)
    assert mcp_env.step('add_note(text="milk")')[0] == "1"


def test_a_server_that_cannot_be_started_is_told_in_one_sentence():
    env = McpWorld(["python", "-c", "raise SystemExit(2)"], notes, call_timeout=20)
    with pytest.raises(Exception, match="could not be started"):
        env.reset(seed=0)
    with pytest.raises(ConfigurationError, match="a list"):
        McpWorld("python server.py", notes)
