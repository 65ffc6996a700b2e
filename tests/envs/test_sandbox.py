"""The built-in world: tools, user, goals, scenarios."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsteer_gym.envs.actions import AssistantTurn
from dynsteer_gym.envs.sandbox import SandboxEnv
from dynsteer_gym.envs.sandbox.agents import Expert, Refuser, Silent, other_routes
from dynsteer_gym.envs.sandbox.families import FAMILIES, HELD_OUT
from dynsteer_gym.envs.sandbox.goals import Goal, Heard, mentions
from dynsteer_gym.envs.sandbox.state import Contact, Device, State
from dynsteer_gym.envs.sandbox.suite import Sampler, scenario_names
from dynsteer_gym.envs.sandbox.tooling import ToolError, canonical_phone
from dynsteer_gym.envs.sandbox.tools import TOOLS
from dynsteer_gym.envs.sandbox.user import PATIENCE, Fact, Request, User
from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.events import ErrorKind, EventKind
from dynsteer_gym.language import stem


def play(env, agent):
    observation, done, score, log = "", False, 0.0, []
    while not done:
        observation, score, terminated, truncated, _ = env.step(agent.act(observation))
        log.append(observation)
        done = terminated or truncated
    return score, log


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_expert_and_every_route_score_one_and_idlers_nothing(family):
    env = SandboxEnv()
    for number in range(6):
        env.reset(options={"scenario": f"{family}/{number}"})
        instance = env.instance
        for plans in [[request.plan for request in instance.requests], *other_routes(instance)]:
            env.start(instance)
            assert play(env, Expert(instance, plans))[0] == 1.0
        for idler in (Refuser(), Silent()):
            env.start(instance)
            assert play(env, idler)[0] == 0.0


def test_talks_hold_four_to_six_requests_and_ten_calls_or_more():
    env = SandboxEnv(suite="phone-long")
    for seed in range(60):
        env.reset(seed=seed)
        instance = env.instance
        assert 4 <= len(instance.requests) <= 6
        assert 10 <= sum(not isinstance(turn, str) for request in instance.requests for turn in request.plan) <= 25
        assert play(env, Expert(instance))[0] == 1.0


def test_a_request_ended_wrongly_cannot_be_made_good():
    env = SandboxEnv(suite="phone-long")
    env.reset(seed=1)
    plans = [request.plan for request in env.instance.requests]
    assert play(env, Expert(env.instance, [("I cannot do that.",), *plans[1:]]))[0] == 0.0


def test_there_are_at_least_120_fixed_scenarios_with_opaque_ids():
    names = scenario_names()
    assert len(names) == len(set(names)) >= 120
    env = SandboxEnv()
    ids = set()
    for name in names:
        _, info = env.reset(options={"scenario": name})
        ids.add(info["task_id"])
        shown = json.dumps([info["task_id"], info["messages"]])
        assert name not in shown
    assert len(ids) == len(names)


def test_held_out_families_and_their_tool_are_never_drawn_in_training():
    sampler = Sampler("phone", "train")
    drawn = [sampler.draw(seed) for seed in range(300)]
    assert not {instance.family for instance in drawn} & set(HELD_OUT)
    assert all("move_event" not in {tool.name for tool in instance.tools} for instance in drawn)


def test_paraphrased_requests_use_templates_that_training_never_shows():
    def shapes(split):
        sampler = Sampler("phone", split, families=["cancel_event"])
        return {sampler.draw(seed).requests[0].text.split('"')[0] for seed in range(60)}

    assert not shapes("train") & shapes("paraphrased")


CODE = """
import hashlib, json
from dynsteer_gym.envs.sandbox import SandboxEnv
from dynsteer_gym.envs.sandbox.agents import Expert
log = []
for suite in ("phone", "phone-long"):
    env = SandboxEnv(suite=suite)
    for seed in range(8):
        text, info = env.reset(seed=seed)
        log.append([text, info["task_id"], [tool["function"]["name"] for tool in info["tools"]]])
        expert, done = Expert(env.instance), False
        while not done:
            text, score, done, _, info = env.step(expert.act(text))
            log.append([text, score, info["messages"]])
print(hashlib.sha256(json.dumps(log).encode()).hexdigest())
"""


def test_a_seed_gives_the_same_bytes_in_another_process():
    runs = [subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout for _ in range(2)]
    scope = {}
    exec(CODE.replace("print(", "found = ("), scope)
    assert runs[0] == runs[1]
    assert runs[0].strip() == scope["found"]


def test_tool_schemas_are_closed_and_described():
    for name, tool in TOOLS.items():
        schema = tool.spec.parameters
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert set(schema.get("required", ())) <= set(schema["properties"])
        assert all(entry["description"] for entry in schema["properties"].values()), name
        assert tool.spec.description
        assert tool.spec.returns


def test_errors_tell_what_was_wrong_and_leave_the_device_alone():
    device = Device(State(low_battery_mode=True, cellular=False))
    before = device.state
    cases = [
        ("set_wifi", {"on": "yes"}, ErrorKind.SCHEMA, "on"),
        ("set_wifi", {}, ErrorKind.SCHEMA, "missing"),
        ("set_wifi", {"on": True, "x": 1}, ErrorKind.SCHEMA, "no such argument"),
        ("set_cellular_service", {"on": True}, ErrorKind.PRECONDITION, "low battery"),
        ("send_message", {"phone_number": "+14155550142", "content": "hi"}, ErrorKind.PRECONDITION, "Cellular"),
        ("delete_contact", {"contact_id": "c1"}, ErrorKind.NOT_FOUND, "c1"),
        ("add_reminder", {"title": "x", "due": "2026-02-30 10:00"}, ErrorKind.SCHEMA, "no such day"),
        ("add_contact", {"name": " ", "phone_number": "+14155550142"}, ErrorKind.SCHEMA, "empty"),
        ("add_contact", {"name": "Ada", "phone_number": "12"}, ErrorKind.SCHEMA, "phone number"),
    ]
    for name, arguments, kind, word in cases:
        with pytest.raises(ToolError) as caught:
            TOOLS[name].call(device, arguments)
        assert caught.value.kind is kind
        assert word in str(caught.value)
    assert device.state is before
    assert device.writes == []


def test_phone_numbers_and_times_are_canonical():
    assert canonical_phone("(415) 555-0142") == canonical_phone("+1 415 555 0142") == "+14155550142"
    device = Device(State(time_zone="Europe/Berlin"))
    row = TOOLS["add_reminder"].call(device, {"title": "x", "due": "2026-03-01T10:00:00Z"})
    assert row["due"] == "2026-03-01 11:00"


def test_low_battery_mode_turns_services_off_and_says_what_it_changed():
    device = Device(State())
    TOOLS["set_low_battery_mode"].call(device, {"on": True})
    assert (device.state.cellular, device.state.wifi, device.state.location_service) == (False, False, False)
    (delta,) = device.writes
    assert delta.before["wifi"] is True
    assert delta.after["wifi"] is False


ADA = Contact("c1", "Ada Berg", "+14155550142")
START = State(contacts=(ADA, Contact("c2", "Bo Li", "+14155550143")))


def test_a_goal_holds_only_where_nothing_else_changed():
    goal = Goal(changes=(("contacts", "c1", {"phone_number": "+14155550199"}),))
    right = replace(START, contacts=(replace(ADA, phone_number="+14155550199"), START.contacts[1]))
    assert goal.score(START, right, Heard()) == 1.0
    assert goal.score(START, START, Heard()) == 0.0
    assert goal.score(START, replace(right, wifi=False), Heard()) == 0.0
    assert goal.score(START, replace(right, contacts=right.contacts[:1]), Heard()) == 0.0
    renamed = replace(START, contacts=(replace(ADA, phone_number="+14155550199", name="X"), START.contacts[1]))
    assert goal.score(START, renamed, Heard()) == 0.0


def test_a_goal_of_two_parts_is_half_met_by_one():
    goal = Goal(settings={"wifi": False}, tells=("+14155550142",))
    assert goal.score(START, replace(START, wifi=False), Heard()) == 0.5
    assert goal.score(START, replace(START, wifi=False), Heard(told=("It is 415 555 0142.",))) == 0.5
    assert goal.score(START, replace(START, wifi=False), Heard(told=("It is +1 415-555-0142.",))) == 1.0


def test_declining_is_right_only_after_asking():
    goal = Goal(declines="due")
    assert goal.score(START, START, Heard(refused=True)) == 0.0
    assert goal.score(START, START, Heard(asked=frozenset({"due"}), refused=True)) == 1.0
    assert goal.score(START, replace(START, wifi=False), Heard(asked=frozenset({"due"}), refused=True)) == 0.0


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [("The wifi is on.", True, True), ("It is off.", True, False), ("on or off?", True, False), ("At 2026-03-01T10:00.", "2026-03-01 10:00", True)],
)
def test_what_was_told_counts_by_value(text, value, holds):
    assert mentions(text, value) is holds


def test_a_lasting_write_that_nobody_asked_for_ends_the_episode():
    env = SandboxEnv()
    env.reset(options={"scenario": "get_number/0"})
    victim = env.state.contacts[0].contact_id
    _, reward, terminated, truncated, info = env.step(f'delete_contact(contact_id="{victim}")')
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert info["world_end"] == "minefield"
    assert info["native_score"] == 0.0


def user(**changes):
    facts = (
        Fact("phone_number", frozenset({stem("phone"), stem("number")}), "It's +14155550142."),
        Fact("due", frozenset({stem("time"), stem("when")})),
    )
    return User(Request("Send it.", Goal(), facts, **changes))


def test_facts_are_told_only_when_asked_for():
    assert user().hears("What is the phone number?").text == "It's +14155550142."
    asked = user().hears("When shall it be?")
    assert "know" in asked.text or "idea" in asked.text
    assert asked.user.heard.asked == {"due"}
    for message in ("Done.", "I cannot do that.", "Let me look.", "", "What is the colour?"):
        assert "0142" not in user().hears(message).text


def test_the_user_gives_up_after_too_many_unhelpful_turns():
    own = user()
    for _ in range(PATIENCE - 1):
        reply = own.hears("")
        assert not reply.ended
        own = reply.user
    reply = own.hears("Let me see.")
    assert reply.ended
    assert reply.gave_up


def test_a_question_is_answered_only_by_something_that_could_be_an_answer():
    assert not user(wants_answer=True).hears("Done.").ended
    assert user(wants_answer=True).hears("It is +14155550142.").ended
    assert user().hears("Done.").ended


def test_confirmation_is_given_once():
    first = user().hears("Shall I go ahead?")
    assert not first.ended
    assert first.user.confirmed
    assert first.user.hears("Shall I go ahead?").user.unhelpful == 1


def test_a_forked_episode_continued_alike_equals_the_original():
    env = SandboxEnv(suite="phone-long")
    env.reset(seed=5)
    expert = Expert(env.instance)
    turns = [expert.act("") for _ in range(40)]
    for turn in turns[:6]:
        env.step(turn)
    snapshot, fork = env.snapshot(), env.fork()
    env.drain_events(), fork.drain_events()

    def rest(which):
        log = []
        for turn in turns[6:]:
            step = which.step(turn)
            log.append((step, which.drain_events(), which.state))
            if step[2] or step[3]:
                return log, which.reset()
        return log, None

    first = rest(env)
    assert first == rest(fork)
    env.restore(snapshot)
    env.drain_events()
    assert rest(env) == first


def test_events_come_in_order_and_calls_before_they_run():
    env = SandboxEnv()
    env.reset(options={"scenario": "switch_wifi/0"})
    seen = []

    def observer(event):
        seen.append((event.kind, env.state.wifi))
        return False

    env.observer = observer
    wifi = env.state.wifi
    env.step(f"<think>hm</think>set_wifi(on={not wifi})")
    assert seen == [(EventKind.THOUGHT, wifi), (EventKind.TOOL_CALL, wifi), (EventKind.TOOL_RETURN, not wifi)]


def test_an_observer_can_halt_a_turn_before_its_call_runs():
    env = SandboxEnv()
    env.reset(options={"scenario": "switch_wifi/0"})
    env.observer = lambda event: event.kind == EventKind.TOOL_CALL and event.tool == "set_wifi"
    before = env.state
    env.step('[get_settings(), set_wifi(on=True), set_wifi(on=False)]')
    assert env.state is before


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(max_size=30) | st.sampled_from(["delete_contact(contact_id=1)", '{"name": "set_wifi", "arguments": {"on": 1}}']), max_size=6))
def test_malformed_actions_leave_the_world_untouched(texts):
    env = SandboxEnv(max_turns=50)
    env.reset(options={"scenario": "send_message/0"})
    before = env.state
    for text in texts:
        _, _, terminated, truncated, _ = env.step(text)
        assert env.state is before
        if terminated or truncated:
            break


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: SandboxEnv(suite="phon"), "phone"),
        (lambda: SandboxEnv(split="tran"), "train"),
        (lambda: SandboxEnv(families=["send_mesage"]), "send_message"),
        (lambda: SandboxEnv(families=[]), "empty"),
        (lambda: SandboxEnv(weights={"where": -1}), "weights"),
        (lambda: SandboxEnv().reset(options={"scenario": "send_mesage/0"}), "send_message"),
        (lambda: SandboxEnv().reset(options={"scenario": "send_message/²"}), "send_message"),
        (lambda: SandboxEnv().reset(options={"scenario": "talk/٣"}), "no scenario"),
        (lambda: SandboxEnv(suite="phone-long", families=["where"]).reset(seed=0), "more families"),
        (
            lambda: SandboxEnv(suite="phone-long", families=["where", "what_time", "add_event", "add_contact"]).reset(seed=0),
            "more families",
        ),
        (lambda: SandboxEnv().reset(options={"scenario": 3}), "int"),
        (lambda: SandboxEnv().reset(options={"scene": "x"}), "scene"),
        (lambda: SandboxEnv().reset(options="x"), "mapping"),
    ],
)
def test_a_misuse_gets_one_clear_sentence(make, word):
    with pytest.raises(ConfigurationError, match=word) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_turn_can_be_given_parsed():
    env = SandboxEnv()
    env.reset(options={"scenario": "add_contact/0"})
    _, _, terminated, _, _ = env.step(AssistantTurn(message="Done."))
    assert terminated


def test_messages_are_a_whole_openai_conversation():
    env = SandboxEnv()
    env.reset(options={"scenario": "get_number/0"})
    env.step("[get_settings(), get_current_time()]")
    env.step("broken(")
    roles = [message["role"] for message in env.messages]
    assert roles[:5] == ["system", "user", "assistant", "tool", "tool"]
    calls = env.messages[2]["tool_calls"]
    assert [call["id"] for call in calls] == [message["tool_call_id"] for message in env.messages[3:5]]
