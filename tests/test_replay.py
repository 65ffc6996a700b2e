"""Recorded rollouts: reading, events, virtual stops, figures, resuming, the page."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.events import ErrorKind, EventKind
from dynsteer_gym.replay import read_lines, read_tools, recorded, replay
from dynsteer_gym.replay_job import auroc, evaluate_file, figures
from dynsteer_gym.replay_page import write_page

SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "search_books",
            "description": "Search the books of the library by title.",
            "parameters": SCHEMA,
            "returns": {"type": "array", "items": {"type": "object", "properties": {"book_id": {"type": "string"}}}},
        },
    },
    {
        "type": "function",
        "function": {
            "name": "borrow_book",
            "description": "Borrow a book.",
            "parameters": {"type": "object", "properties": {"book_id": {"type": "string"}}, "required": ["book_id"]},
        },
    },
]


def call(name, ident="a", **arguments):
    return {"id": ident, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def asks(*calls, content=None):
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def tool(content, ident="a"):
    return {"role": "tool", "tool_call_id": ident, "content": content if isinstance(content, str) else json.dumps(content)}


def said(role, content):
    return {"role": role, "content": content}


GOOD = {
    "id": "good",
    "outcome": 1.0,
    "messages": [
        said("system", "Be brief."),
        said("user", 'Borrow the book "Dune".'),
        asks(call("search_books", title="Dune"), content="I look it up."),
        tool([{"book_id": "b17", "title": "Dune"}]),
        asks(call("borrow_book", book_id="b17")),
        tool("true"),
        said("assistant", "It is done."),
        said("user", "Thanks! ###STOP###"),
    ],
}
BAD = {
    "id": "bad",
    "outcome": 0.0,
    "messages": [
        said("user", 'Borrow the book "Dune".'),
        *[message for number in range(12) for message in (asks(call("search_books", title=f"other {number}")), tool([]))],
        said("assistant", "I give up."),
    ],
}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    lines = [json.dumps(GOOD), "{broken", "", json.dumps({"messages": [{"role": "robot"}]}), json.dumps(BAD), "[1]"]
    (tmp_path / "rollouts.jsonl").write_text("\n".join(lines) + "\n")
    with gzip.open(tmp_path / "rollouts.jsonl.gz", "wt") as file:
        file.write("\n".join(lines))
    return tmp_path


def test_a_rollout_becomes_the_events_of_both_clocks(files):
    task = recorded(GOOD, read_tools(files / "tools.json"))
    assert task.turns == 3
    assert task.view.request == 'Borrow the book "Dune".'
    assert task.view.policy == "Be brief."
    kinds = [event.kind for event in task.events]
    assert kinds == [
        EventKind.USER_MESSAGE,
        EventKind.THOUGHT,
        EventKind.TOOL_CALL,
        EventKind.TOOL_RETURN,
        EventKind.TOOL_CALL,
        EventKind.TOOL_RETURN,
        EventKind.ASSISTANT_MESSAGE,
        EventKind.USER_MESSAGE,
    ]
    assert task.events[3].value == [{"book_id": "b17", "title": "Dune"}]
    assert task.events[5].value is True
    assert task.events[-1].ends
    assert task.events[-1].text == "Thanks!"


def test_a_clean_rollout_has_full_score_and_no_stop_and_a_deadlock_is_stopped_where_it_would_have_been(files):
    tools = read_tools(files / "tools.json")
    clean = replay(recorded(GOOD, tools))
    assert clean.evaluator.score == pytest.approx(1.0)
    assert clean.stop is None
    lost = replay(recorded(BAD, tools))
    assert lost.stop.criterion == "frontier_stagnation"
    assert lost.stop.turn == 9  # The first search comes nearer; eight more bring nothing.
    assert lost.turns == 13
    assert lost.evaluator.t == 13


def odd(*messages):
    return {"messages": [said("user", "Borrow it."), *messages]}


@pytest.mark.parametrize(
    ("rollout", "errors"),
    [
        (odd(asks({"id": "a", "function": {"name": "borrow_book", "arguments": "{nope"}}), tool("x")), [ErrorKind.UNPARSEABLE]),
        (odd(asks(call("borrow_book", book_id="b1")), tool("Error: book not found")), [ErrorKind.NOT_FOUND]),
        (odd(asks(call("borrow_book", book_id="b1"))), [ErrorKind.RUNTIME]),
        (odd(asks(call("borrow_book", "a"), call("borrow_book", "b")), tool("1", "b"), tool("2", "a")), [None, None]),
        (odd(asks({"function": {"name": "borrow_book", "arguments": {"book_id": "b1"}}}), {"role": "function", "content": "true"}), [None]),
        (odd(said("assistant", [{"type": "text", "text": "Hm?"}]), said("user", None)), []),
        (odd(tool("1", "ghost"), said("assistant", "")), []),
    ],
)
def test_what_frameworks_log_oddly_is_read_all_the_same(files, rollout, errors):
    tools = read_tools(files / "tools.json")
    task = recorded(rollout, tools)
    assert [event.error for event in task.events if event.kind == EventKind.TOOL_RETURN] == errors
    assert 0.0 <= replay(task).evaluator.score <= 1.0


def test_returns_go_to_their_calls_by_id(files):
    task = recorded(odd(asks(call("borrow_book", "a"), call("borrow_book", "b")), tool("1", "b"), tool("2", "a")), read_tools(files / "tools.json"))
    assert [event.value for event in task.events if event.kind == EventKind.TOOL_RETURN] == [2, 1]


def test_outcome_and_reference_are_not_looked_at_by_the_evaluation(files):
    tools = read_tools(files / "tools.json")
    plain = recorded(GOOD, tools)
    assert recorded({**GOOD, "outcome": 0.0, "reference_actions": [1]}, tools) == plain


@pytest.mark.parametrize("name", ["rollouts.jsonl", "rollouts.jsonl.gz"])
@pytest.mark.parametrize("workers", [1, 2])
def test_bad_lines_are_told_by_number_and_nothing_else_is_lost(files, name, workers):
    records = evaluate_file(files / name, files / "tools.json", workers=workers)
    assert [record["line"] for record in records] == [1, 2, 4, 5, 6]
    assert [record.get("id") for record in records] == ["good", None, None, "bad", None]
    found = figures(records)
    assert found["rollouts"] == 2
    assert [entry["line"] for entry in found["bad_lines"]] == [2, 4, 6]
    assert found["outcomes"]["successes"] == 1
    assert found["outcomes"]["auroc"] == 1.0
    assert found["outcomes"]["false_stops"] == 0.0
    assert found["outcomes"]["saved_failing"] == {"mean": 0.308, "of_sums": 0.308}  # (13 - 9) / 13


def test_a_file_that_is_cut_off_gives_what_can_be_read(files):
    whole = (files / "rollouts.jsonl.gz").read_bytes()
    (files / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    lines = list(read_lines(files / "cut.jsonl.gz"))
    assert lines[-1].rollout is None
    assert lines[-1].problem


def test_auroc_counts_pairs_and_ties_half():
    assert auroc([0.9, 0.5, 0.5, 0.1], [True, True, False, False]) == pytest.approx(3.5 / 4)
    assert auroc([0.5, 0.4], [True, True]) is None


@pytest.mark.parametrize("text", ["", "{}", "3", '[{"function": {}}]', "[[]]"])
def test_what_is_no_tool_list_is_told_in_one_sentence(tmp_path, text):
    (tmp_path / "tools.json").write_text(text)
    if text == "{}":
        assert read_tools(tmp_path / "tools.json") == ()
        return
    with pytest.raises(ConfigurationError, match=r"tools\.json"):
        read_tools(tmp_path / "tools.json")


def test_a_run_that_is_killed_goes_on_where_it_was(files):
    many = files / "many.jsonl"
    many.write_text("\n".join(json.dumps({**(GOOD if number % 2 else BAD), "id": str(number)}) for number in range(1200)))
    out = files / "out.json"
    partial = files / "out.json.partial.jsonl"
    command = [sys.executable, "-m", "dynsteer_gym.cli", "replay", str(many), "--tools", str(files / "tools.json"), "--json", str(out), "--workers", "1"]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (partial.exists() and partial.stat().st_size > 20_000):
        assert running.poll() is None
        time.sleep(0.01)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert not out.exists()
    kept = len(partial.read_text().splitlines())
    with partial.open("a") as file:
        file.write('{"line": 1199, "id"')  # Cut in the middle of a line.
    seen = []
    records = evaluate_file(many, files / "tools.json", workers=1, partial=partial, progress=seen.append)
    assert len(records) == 1200
    assert seen[0] >= kept - 1
    assert [record["id"] for record in records] == [str(number) for number in range(1200)]
    # Other settings make other records: nothing is taken over.
    seen.clear()
    evaluate_file(many, files / "tools.json", workers=1, partial=partial, stop="none", progress=seen.append)
    assert seen[0] == 1


def test_the_page_holds_every_rollout_escaped_and_loads_nothing(files):
    evil = {**GOOD, "id": "<script>alert(1)</script>"}
    (files / "one.jsonl").write_text("\n".join(json.dumps(item) for item in (evil, BAD)))
    records = evaluate_file(files / "one.jsonl", files / "tools.json", workers=1)
    write_page(files / "page.html", "Replay", figures(records), records)
    page = (files / "page.html").read_text()
    assert "<script>alert(1)" not in page
    assert page.count('class="rollout"') == 2
    assert "frontier_stagnation at turn 9" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_the_command_prints_figures_and_writes_files(files):
    command = [sys.executable, "-m", "dynsteer_gym.cli", "replay", str(files / "rollouts.jsonl"), "--tools", str(files / "tools.json")]
    done = subprocess.run([*command, "--json", str(files / "r.json"), "--html", str(files / "r.html")], capture_output=True, text=True, check=True)
    assert "AUROC" in done.stdout
    assert "line 2: " in done.stderr
    assert json.loads((files / "r.json").read_text())["figures"]["rollouts"] == 2
    assert not list(Path(files).glob("*.partial*"))
    failed = subprocess.run([*command[:-1], str(files / "nothing.json")], capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert failed.stderr.count("\n") == 1
