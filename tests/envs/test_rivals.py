"""Agents that err, the paper's two cases, and the labels of the solver."""

from collections import Counter
from random import Random

import pytest

from dynsteer_gym.envs.actions import AssistantTurn, ToolCall
from dynsteer_gym.envs.sandbox import SandboxEnv
from dynsteer_gym.envs.sandbox.agents import Expert, Refuser, Silent
from dynsteer_gym.envs.sandbox.draw import Found
from dynsteer_gym.envs.sandbox.recipes import Recipe, realise
from dynsteer_gym.envs.sandbox.rivals import FAULTS, HARMFUL, Deadlock, Fluke, Rival
from dynsteer_gym.envs.sandbox.solver import Label, solve
from dynsteer_gym.envs.sandbox.suite import closed_suite
from dynsteer_gym.wrapper import DynSTEERWrapper


def play(env, agent):
    observation, done = "", False
    while not done:
        observation, score, terminated, truncated, info = env.step(agent.act(observation))
        done = terminated or truncated
    return (score if terminated else 0.0), info


class Watched:
    def __init__(self, agent):
        self.agent, self.actions = agent, []

    def act(self, observation):
        self.actions.append(self.agent.act(observation))
        return self.actions[-1]


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_logged_first_error_is_real_and_without_it_the_run_is_right(fault):
    env = SandboxEnv()
    played = 0
    for number, instance in enumerate(closed_suite("dynsteer-509")):
        rival = Rival(instance, {fault: 1.0 if fault == "unsafe_act" else 0.5}, number, most=1)
        if rival.first_error is None:
            continue
        played += 1
        env.start(instance)
        watched = Watched(rival)
        score, _ = play(env, watched)
        assert rival.first_error.fault == fault
        assert rival.first_error.harmful == (fault in HARMFUL) == (score < 1.0)
        # Up to the error it does what the expert does; at the error it does not.
        env.start(instance)
        expert, observation = Expert(instance), ""
        for turn, action in enumerate(watched.actions[: rival.first_error.turn], 1):
            right = expert.act(observation)
            if turn < rival.first_error.turn and fault != "unsafe_act":
                assert action == right
                observation = env.step(right)[0]
            elif turn == rival.first_error.turn:
                assert action != right
    assert played >= 40


def test_a_rival_with_several_faults_logs_them_in_order_and_one_without_any_is_the_expert():
    instance = closed_suite("dynsteer-509")[1]
    rival = Rival(instance, dict.fromkeys(("redundant_call", "bad_types", "retry_loop"), 0.3), seed=4)
    assert len(rival.errors) > 1
    assert list(rival.errors) == sorted(rival.errors, key=lambda error: error.turn)
    env = SandboxEnv()
    env.start(instance)
    sound = Rival(instance, dict.fromkeys(FAULTS, 0.0))
    assert sound.first_error is None
    assert play(env, sound)[0] == 1.0


def make(family, **fields):
    return realise(Recipe(5, fields.pop("domain"), (family,), tools=fields.pop("tools", 12), **fields), family, "test")


def test_the_search_deadlock_is_stopped_after_the_first_milestone():
    env = DynSTEERWrapper(SandboxEnv(), stop="paper")
    env.reset(options={"scenario": "delete_from/0"})
    agent = Deadlock(env.unwrapped.instance)
    _, info = play(env, agent)
    stop = info["stop"]
    assert stop.criterion == "frontier_stagnation"
    assert [stage.milestone for stage in info["report"].stages] == ["r0.m0"]
    assert stop.anchor == "r0.m0"


def test_the_fluke_success_has_native_score_one_a_low_stage_score_and_its_first_error_found():
    env = DynSTEERWrapper(SandboxEnv(), stop="none")
    env.reset(options={"scenario": "add_reminder/0"})
    clean = play(env, Expert(env.unwrapped.instance))[1]
    env.reset(options={"scenario": "add_reminder/0"})
    agent = Fluke(env.unwrapped.instance)
    _, info = play(env, agent)
    assert info["native_score"] == 1.0
    assert clean["rollout_score"] == 1.0
    report = info["report"]
    stage = report.stages[0]
    # One defect lowers one dimension only: 4 of 5 calls of the stage are faulty, so it has (1 + 1 + 1 + 0.2) / 4.
    assert stage.dimensions["tool_compliance"].score == pytest.approx(0.2)
    assert stage.fixed_score == pytest.approx(0.8)
    assert info["rollout_score"] == pytest.approx(0.9)
    assert report.first_error.t == agent.first_error.turn == 1
    assert report.first_error.kind == "unknown_tool"


def test_the_solver_says_yes_all_along_the_expert_and_never_no_on_the_way_to_a_success():
    env = SandboxEnv()
    for number, instance in enumerate(closed_suite("dynsteer-509")):
        env.start(instance)
        rival = Expert(instance) if number % 2 else Rival(instance, dict.fromkeys(set(FAULTS) - HARMFUL, 0.1), number)
        labels, observation, done = [], "", False
        while not done:
            if env.turn % 7 == 0:
                labels.append(solve(env).label)
            observation, score, terminated, truncated, _ = env.step(rival.act(observation))
            done = terminated or truncated
        if terminated and score == 1.0:
            assert Label.NO not in labels
        if number % 2:
            assert set(labels) == {Label.YES}


def test_the_solver_knows_what_is_lost():
    env = SandboxEnv()
    found = Counter()
    for number, instance in enumerate(closed_suite("dynsteer-509")):
        for fault in ("wrong_argument", "look_alike", "premature_end", "unsafe_act"):
            rival = Rival(instance, {fault: 1.0}, number, most=1)
            if rival.first_error is None:
                continue
            env.start(instance)
            observation, done = "", False
            while not done and env.turn < rival.first_error.turn:
                observation, _, terminated, truncated, _ = env.step(rival.act(observation))
                done = terminated or truncated
            verdict = solve(env)
            found[fault, verdict.label] += 1
            if fault == "unsafe_act":
                assert verdict.label == Label.NO
    assert found["premature_end", Label.NO] > found["premature_end", Label.YES]
    assert found["look_alike", Label.NO] > 100


def test_a_budget_that_is_too_small_is_a_no_and_one_that_is_enough_a_yes():
    env = SandboxEnv()
    env.start(make("cancel_event", domain="calendar"))
    assert solve(env, budget=3).label == Label.YES
    assert solve(env, budget=3).turns == 3
    assert solve(env, budget=2).label != Label.YES
    assert solve(env, budget=1).label == Label.NO


def actions_of(instance):
    """Some calls and messages: those of the plans, one that nobody asked for and what takes it back, and ends."""
    plans = [plan for request in instance.requests for plan in (request.plan, *request.routes)]
    turns = list({repr(turn): turn for plan in plans for turn in plan}.values())
    turns = [turn for turn in turns if isinstance(turn, str) or not any(isinstance(value, Found) for value in turn[1].values())]
    strays = [("add_event", {"title": "Stray", "start": "2026-12-01 10:00"})]
    strays += [("cancel_event", {"event_id": key}) for key in ("e100", "e101", "e102", instance.state.events[-1].event_id)]
    turns += [turn for turn in strays if any(tool.name == turn[0] for tool in instance.tools)]
    turns += ["Done.", "I cannot do that."]
    return [AssistantTurn(message=turn) if isinstance(turn, str) else AssistantTurn(calls=(ToolCall(*turn),)) for turn in turns]


def reachable(env, actions, left):
    """Exhaustive search: whether some sequence of the actions ends with score 1 within the turns."""
    if env.ended:
        return env.native_score() == 1.0
    if left == 0:
        return False
    for action in actions:
        fork = env.fork()
        fork.max_turns = fork.turn + left
        fork.step(action)
        if reachable(fork, actions, left - 1):
            return True
    return False


@pytest.mark.parametrize(
    ("family", "domain"),
    [("cancel_event", "calendar"), ("add_event", "calendar"), ("event_time", "calendar"), ("either_entry", "calendar"), ("add_contact", "contacts"),
     ("delete_reminder", "calendar"), ("which_event", "calendar"), ("set_limit", "finance")],
)
def test_labels_agree_with_exhaustive_search_on_small_scenarios(family, domain):
    random = Random(7)
    counts = Counter()
    for seed in range(4):
        instance = realise(Recipe(seed, domain, (family,), tools=12), f"{family}/{seed}", "test")
        actions = actions_of(instance)
        for _ in range(6):
            env = SandboxEnv()
            env.start(instance)
            for _ in range(random.randrange(4)):
                if not env.ended:
                    env.step(random.choice(actions))
            left = random.randrange(1, 4)
            verdict = solve(env, budget=left)
            counts[verdict.label] += 1
            truth = reachable(env, actions, left)
            if verdict.label != Label.UNKNOWN:
                assert truth == (verdict.label == Label.YES)
    assert counts[Label.NO] > 0


def test_idlers_are_told_by_the_solver_when_their_talk_is_over():
    for agent in (Refuser(), Silent()):
        env = SandboxEnv()
        env.start(make("pay_firm", domain="finance", tools=15))
        play(env, agent)
        assert solve(env).label == Label.NO
