"""Scrambled catalogues, distraction tools, missing facts."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsteer_gym.envs.sandbox import SandboxEnv
from dynsteer_gym.envs.sandbox.draw import Piece, Taken
from dynsteer_gym.envs.sandbox.goals import Goal
from dynsteer_gym.envs.sandbox.suite import closed_suite
from dynsteer_gym.envs.sandbox.tools import TOOLS
from dynsteer_gym.envs.sandbox.user import Fact
from dynsteer_gym.envs.sandbox.variants import SCRAMBLES, likeness, scramble, without_fact

SPECS = [TOOLS[name].spec for name in ("set_wifi", "send_message", "list_transfers", "find_nearest_place", "prepare_transfer", "get_settings")]
VALUES = {"boolean": st.booleans(), "integer": st.integers(-(10**9), 10**9), "number": st.floats(-1e6, 1e6), "string": st.text(max_size=20)}


def kind(entry):
    return entry.get("type") or next(option["type"] for option in entry["anyOf"] if option["type"] != "null")


@given(st.lists(st.sampled_from(SCRAMBLES), min_size=1, max_size=4, unique=True), st.integers(0, 10**6), st.data())
@settings(max_examples=150, deadline=None)
def test_scrambling_is_invertible(parts, seed, data):
    scrambled = scramble(SPECS, parts, seed)
    assert len({spec.name for spec in scrambled.specs.values()}) == len(SPECS)
    for spec in SPECS:
        arguments = {
            key: data.draw(VALUES[kind(entry)]) for key, entry in spec.properties.items() if key in spec.required or data.draw(st.booleans())
        }
        shown, given_ = scrambled.show(spec.name, arguments)
        assert scrambled.names[shown] == spec.name
        assert set(given_) <= set(scrambled.specs[spec.name].properties)
        assert scrambled.read(spec.name, given_) == arguments


def test_each_part_changes_what_it_says_and_nothing_else():
    spec = TOOLS["find_nearest_place"].spec
    for part in SCRAMBLES:
        shown = scramble([spec, TOOLS["set_wifi"].spec], [part], 3).specs[spec.name]
        assert (shown.name != spec.name) == (part == "tool_names")
        assert (set(shown.properties) != set(spec.properties)) == (part == "argument_names")
        told = [entry["description"] for entry in shown.properties.values()]
        own = [entry["description"] for entry in spec.properties.values()]
        if part == "descriptions":
            assert told == own[::-1]
        elif part != "argument_order":
            assert told == own
        kinds = {entry["type"] for entry in shown.properties.values()}
        assert kinds == ({"string"} if part == "types" else {"number"})
        assert len(shown.required) == 2
    orders = {tuple(scramble([spec], ["argument_order"], seed).specs[spec.name].properties) for seed in range(20)}
    assert orders == {("latitude", "longitude"), ("longitude", "latitude")}


def test_a_renamed_argument_is_not_taken_by_its_own_name_and_errors_speak_of_what_is_shown():
    instance = next(item for item in closed_suite("dynsteer-509") if item.scramble and {"tool_names", "argument_names"} <= set(item.scramble.parts))
    env = SandboxEnv()
    env.start(instance)
    own, spec = next((name, spec) for name, spec in instance.scramble.specs.items() if spec.required and "string" in str(spec.parameters))
    key = TOOLS[own].spec.required[0]
    before = env.state
    text = env.step(json.dumps({"name": spec.name, "arguments": {key: "x"}}))[0]
    assert text.startswith("Error:")
    assert spec.name in text
    assert all(shown in text for shown in spec.properties)
    assert f" {own}:" not in text
    text = env.step(json.dumps({"name": own, "arguments": {}}))[0]
    assert "No tool is called" in text
    assert env.state.contacts is before.contacts


def test_distraction_tools_are_the_most_alike_of_those_left():
    for instance in closed_suite("dynsteer-509"):
        if not instance.distractors:
            continue
        plans = [plan for request in instance.requests for plan in (request.plan, *request.routes)]
        needed = [TOOLS[name].spec for name in sorted({turn[0] for plan in plans for turn in plan if not isinstance(turn, str)})]
        chosen = [likeness(TOOLS[name].spec, needed) for name in instance.distractors]
        names = {tool.name for tool in instance.tools}
        rest = [likeness(TOOLS[name].spec, needed) for name in TOOLS if name not in names]
        barred = [request for request in instance.requests if request.family == "no_address_book"]
        if not barred:
            assert min(chosen) >= max(rest)


FACT = Fact("due", frozenset({"due"}), "At noon.")
CALL = ("add_reminder", {"title": "x", "due": "noon"})


def test_without_a_fact_the_plan_ends_in_asking_and_declining():
    piece = Piece({}, Goal(adds=(("reminders", {}),)), ("What is the due?", CALL, "Done."), facts=(FACT,), checks=("When?",))
    left, guess = without_fact(piece, "due")
    assert left.plan == ("What is the due?", "I cannot do that.")
    assert left.goal == Goal(declines="due")
    assert left.facts[0].answer == ""
    assert left.checks == ()
    assert guess == CALL


@pytest.mark.parametrize("plan", [(CALL, "Done."), ("What is the due?", "Done."), (CALL, "What is the due?", CALL, "Done.")])
def test_a_fact_that_is_not_needed_cannot_be_missing(plan):
    with pytest.raises(Taken):
        without_fact(Piece({}, Goal(), plan, facts=(FACT,)), "due")
