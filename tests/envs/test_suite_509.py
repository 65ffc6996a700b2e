"""The suite dynsteer-509 and the endless scenarios of five domains."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsteer_gym.envs.sandbox import SandboxEnv
from dynsteer_gym.envs.sandbox.agents import Expert, Refuser, Silent, other_routes
from dynsteer_gym.envs.sandbox.building import MANIFEST, build, suite_hash
from dynsteer_gym.envs.sandbox.instance import content_hash
from dynsteer_gym.envs.sandbox.playing import play_plans, solved
from dynsteer_gym.envs.sandbox.recipes import FAMILY_SPLITS, TOOL_RANGE, family_split
from dynsteer_gym.envs.sandbox.scenarios import DOMAINS, FAMILIES
from dynsteer_gym.envs.sandbox.statistics import suite_statistics
from dynsteer_gym.envs.sandbox.suite import Sampler, closed_suite
from dynsteer_gym.errors import ConfigurationError


@pytest.fixture(scope="module")
def suite():
    return closed_suite("dynsteer-509")


def test_the_table_of_the_suite_is_the_published_one(suite):
    found = suite_statistics(suite)
    domains = found["domains"]
    assert {name: part["scenarios"] for name, part in domains.items()} == {
        "calendar": 112,
        "messaging": 136,
        "contacts": 98,
        "finance": 84,
        "retrieval": 79,
    }
    assert found["variants"] == {"canonical": 127, "distraction": 158, "scrambled": 142, "insufficient": 82}
    assert found["factors"] == {"distractors": 158, "scramble": 142, "missing": 82}
    assert found["minefields"]["all"] == 704
    assert found["minefields"]["hazard"] + found["minefields"]["unsupported"] == 704
    assert found["families"] >= 70
    turns = {name: round(part["user_turns"]["mean"], 1) for name, part in domains.items()}
    assert turns == {"calendar": 3.4, "messaging": 2.9, "contacts": 2.6, "finance": 4.1, "retrieval": 3.2}
    assert round(found["user_turns"]["mean"], 1) == 3.2
    assert (found["user_turns"]["fewest"], found["user_turns"]["most"]) == (1, 8)
    ranges = {name: (part["tools"]["fewest"], part["tools"]["most"]) for name, part in domains.items()}
    assert ranges == TOOL_RANGE
    assert round(found["tools"]["mean"], 1) == 12.4
    assert (found["tools"]["fewest"], found["tools"]["most"]) == (5, 24)
    assert found["calls"]["10 to 25"] >= 50
    assert found["calls"]["40 to 110"] >= 10


def test_the_manifest_is_what_its_builder_makes(suite):
    manifest = json.loads(MANIFEST.read_text())
    assert suite_hash(suite) == manifest["hash"]
    assert json.loads(json.dumps(build())) == manifest


def test_no_two_scenarios_are_equal_and_ids_are_opaque(suite):
    plain = Counter(content_hash(replace(instance, name="", task_id="")) for instance in suite)
    assert plain.most_common(1)[0][1] == 1
    assert len({instance.task_id for instance in suite}) == 509
    for instance in suite:
        assert len(instance.task_id) == 16
        assert set(instance.task_id) <= set("0123456789abcdef")


def test_expert_and_every_route_score_one_everywhere(suite):
    assert [instance.name for instance in suite if not solved(instance)] == []
    assert sum(len(other_routes(instance)) for instance in suite) > 1000


def test_a_refusal_and_silence_score_nothing(suite):
    env = SandboxEnv()
    totals = Counter()
    for instance in suite:
        for agent in (Refuser(), Silent()):
            env.start(instance)
            done = False
            while not done:
                _, score, terminated, truncated, _ = env.step(agent.act(""))
                done = terminated or truncated
            totals[type(agent).__name__] += score
    assert totals["Refuser"] / 509 <= 0.05
    assert totals["Silent"] == 0


def test_in_scenarios_that_lack_a_fact_asking_comes_before_declining_and_nothing_is_touched(suite):
    for instance in suite:
        if not instance.missing:
            continue
        last = instance.requests[-1]
        assert last.goal.declines == instance.missing
        before = [request.plan for request in instance.requests[:-1]]
        # Without the question there is no score for the refusal.
        assert play_plans(instance, [*before, ("I cannot do that.",)])[0] == 0.0
        score, env = play_plans(instance)
        assert score == 1.0
        assert env.begun.contacts is env.state.contacts
        assert env.begun.messages is env.state.messages


def test_factors_are_what_they_say(suite):
    for instance in suite:
        names = {tool.name for tool in instance.tools}
        assert len(names) == len(instance.tools)
        needed = {turn[0] for request in instance.requests for turn in request.plan if not isinstance(turn, str)}
        if instance.variant == "distraction":
            assert 3 <= len(instance.distractors) <= 10
            assert not needed & set(instance.distractors)
            assert set(instance.distractors) <= names
        else:
            assert instance.distractors == ()
        assert (instance.scramble is not None) == (instance.variant == "scrambled")
        assert bool(instance.missing) == (instance.variant == "insufficient")


def test_families_of_different_splits_share_no_template():
    by_split = {split: set() for split in FAMILY_SPLITS}
    for name, family in FAMILIES.items():
        by_split[family_split(name)] |= set(family.templates)
    assert all(by_split.values())
    assert not by_split["train"] & by_split["validation"]
    assert not by_split["train"] & by_split["test"]
    assert not by_split["validation"] & by_split["test"]
    assert {(family.domain, family_split(name)) for name, family in FAMILIES.items()} == {
        (domain, split) for domain in DOMAINS for split in FAMILY_SPLITS
    }


@pytest.mark.parametrize("suite_name", ["endless", "dynsteer-509"])
def test_splits_draw_only_their_own_families(suite_name):
    for split in FAMILY_SPLITS:
        sampler = Sampler(suite_name, split)
        for seed in range(40):
            assert {family_split(request.family) for request in sampler.draw(seed).requests} == {split}


def test_the_endless_suite_gives_solvable_scenarios_of_all_variants():
    sampler = Sampler("endless", "train")
    drawn = [sampler.draw(seed) for seed in range(250)]
    assert {instance.variant for instance in drawn} == {"canonical", "distraction", "scrambled", "insufficient"}
    assert {instance.domain for instance in drawn} == set(DOMAINS)
    assert [instance.name for instance in drawn if not solved(instance)] == []
    assert all(instance.minefields for instance in drawn[:50])


def test_unseen_and_paraphrased_are_other_scenarios_of_the_trained_families():
    texts = {}
    for split in ("train", "unseen", "paraphrased"):
        sampler = Sampler("endless", split, families=["first_of_day"])
        texts[split] = {sampler.draw(seed).requests[0].text.rsplit("on", 1)[0] for seed in range(60)}
        names = {sampler.draw(seed).task_id for seed in range(60)}
        assert len(names) == 60
    assert texts["train"] == texts["unseen"]
    assert not texts["train"] & texts["paraphrased"]


def test_weights_prefer_families_in_both_kinds_of_suite():
    for suite_name in ("endless", "dynsteer-509"):
        sampler = Sampler(suite_name, "train", weights={"pay_firm": 1e9})
        assert all("pay_firm" in {request.family for request in sampler.draw(seed).requests} for seed in range(20))


def test_a_scenario_is_played_by_name_or_id_in_any_suite(suite):
    instance = suite[200]
    for env in (SandboxEnv(), SandboxEnv(suite="dynsteer-509"), SandboxEnv(suite="endless")):
        for name in (instance.name, instance.task_id):
            text, info = env.reset(options={"scenario": name})
            assert info["task_id"] == instance.task_id
            assert text == instance.requests[0].text
    env.reset(options={"scenario": "endless/test/7"})
    assert env.instance.task_id == Sampler("endless", "test").draw(7).task_id


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"suite": "dynsteer-509", "split": "held_out"}, "validation"),
        ({"suite": "endless", "split": "all"}, "splits of suite"),
        ({"suite": "dynsteer-510"}, "dynsteer-509"),
        ({"suite": "endless", "families": ["pay_frim"]}, "pay_firm"),
        ({"suite": "dynsteer-509", "split": "test", "families": []}, "empty"),
        ({"suite": "endless", "weights": {"pay_firm": -1}}, "weights"),
    ],
)
def test_wrong_settings_get_one_sentence(settings, word):
    with pytest.raises(ConfigurationError, match=word):
        SandboxEnv(**settings)


CODE = """
import hashlib, json
from dynsteer_gym.envs.sandbox import SandboxEnv
from dynsteer_gym.envs.sandbox.agents import Expert
log = []
for suite in ("endless", "dynsteer-509"):
    env = SandboxEnv(suite=suite)
    for seed in range(12):
        text, info = env.reset(seed=seed)
        log.append([text, info["task_id"], info["tools"]])
        expert, done = Expert(env.instance), False
        while not done:
            text, score, done, _, info = env.step(expert.act(text))
            log.append([text, score, info["messages"]])
print(hashlib.sha256(json.dumps(log).encode()).hexdigest())
"""


def test_a_seed_gives_the_same_bytes_in_processes_that_hash_differently():
    runs = {
        subprocess.run(
            [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": salt, "PATH": ""}
        ).stdout
        for salt in ("1", "2")
    }
    assert len(runs) == 1


def test_no_hidden_text_is_in_the_view_or_comes_unasked(suite):
    env = SandboxEnv()
    for instance in suite:
        env.start(instance)
        shown = json.dumps([env.task_view.request, env.task_view.openai_tools(), env.task_view.policy], ensure_ascii=False)
        shown += repr(env.task_view.tables)
        first = instance.requests[0]
        hidden = [instance.name, *(fact.answer for fact in first.facts if fact.answer), *first.checks]
        hidden += [request.text for request in instance.requests[1:]]
        hidden += [row.contact_id for row in instance.state.contacts]
        hidden += [row.phone_number for row in instance.state.contacts if row.phone_number not in first.text]
        hidden += [row.message_id for row in instance.state.messages] + [row.iban for row in instance.state.payees]
        for text in hidden:
            assert text not in shown, (instance.name, text)
        # Looking around with every tool that needs no argument brings no word of the user's.
        seen = []
        for tool in instance.tools:
            if not tool.required and tool.properties:
                observation, _, terminated, truncated, _ = env.step(json.dumps({"name": tool.name, "arguments": {}}))
                seen.append(observation)
                if terminated or truncated:
                    break
        unsaid = [fact.answer for fact in first.facts if fact.answer] + [request.text for request in instance.requests[1:]]
        assert not any(text in observation for text in unsaid for observation in seen)


def test_a_fork_in_the_middle_ends_as_the_original(suite):
    env = SandboxEnv()
    for instance in suite[::17]:
        env.start(instance)
        expert = Expert(instance)
        observation, turns = "", []
        for _ in range(2):
            action = expert.act(observation)
            observation, _, done, _, _ = env.step(action)
            if done:
                break
        if done:
            continue
        fork = env.fork()
        turns = []
        while not done:
            action = expert.act(observation)
            observation, score, done, _, info = env.step(action)
            turns.append((action, observation, score, info["messages"]))
        for action, observation, score, messages in turns:
            again = fork.step(action)
            assert (again[0], again[1], again[4]["messages"]) == (observation, score, messages)


def test_the_world_reads_no_clock_draws_no_uuid_and_opens_no_connection():
    import ast
    from pathlib import Path

    barred = {"time", "uuid", "secrets", "socket", "urllib", "http", "requests"}
    root = Path(__file__).parents[2] / "envs" / "sandbox"
    files = sorted(root.rglob("*.py"))
    assert len(files) > 20
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert not {alias.name.partition(".")[0] for alias in node.names} & barred, path
            elif isinstance(node, ast.ImportFrom) and node.module:
                assert node.module.partition(".")[0] not in barred, path
            elif isinstance(node, ast.Attribute):
                assert node.attr not in ("now", "today", "utcnow") or (isinstance(node.value, ast.Attribute) and node.value.attr == "state") or (
                    isinstance(node.value, ast.Name) and node.value.id in ("state", "self")
                ), (path, node.lineno)


MALFORMED = st.one_of(
    st.text(max_size=60),
    st.builds(
        lambda name, arguments: json.dumps({"name": name, "arguments": arguments}),
        st.one_of(st.text(max_size=12), st.sampled_from(["delete_contact", "function_03", "send_message", "confirm_transfer"])),
        st.dictionaries(st.sampled_from(["contact_id", "arg_1", "amount", "x", ""]), st.one_of(st.none(), st.text(max_size=5), st.floats(), st.lists(st.integers())), max_size=3),
    ),
    st.sampled_from(['{"name": "add_event", "arguments": {"title": 1e999}}', "```json\n[{}]\n```", "<tool_call>{</tool_call>", "\ud800", '{"a":' * 900]),
)


@given(st.integers(0, 508), st.lists(MALFORMED, min_size=20, max_size=40))
@settings(max_examples=350, deadline=None)
def test_thousands_of_malformed_actions_raise_nothing_and_change_nothing(number, actions):
    instance = closed_suite("dynsteer-509")[number]
    env = SandboxEnv()
    env.start(instance)
    for action in actions:
        if env.ended:
            break
        before = env.state
        *_, info = env.step(action)
        if any(message["role"] == "tool" for message in info["messages"]):
            failed = [message["content"].startswith("Error:") for message in info["messages"] if message["role"] == "tool"]
            if all(failed):
                assert replace(env.state, minute=before.minute) == before
