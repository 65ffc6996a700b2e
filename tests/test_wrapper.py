"""The evaluated env: reward, stops, splits of public and hidden, forks, bounds."""

import copy
import json
import pickle

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynsteer_gym
from dynsteer_gym.envs.actions import AssistantTurn, ToolCall
from dynsteer_gym.envs.sandbox import SandboxEnv
from dynsteer_gym.envs.sandbox.agents import Expert
from dynsteer_gym.envs.sandbox.families import FAMILIES, HELD_OUT
from dynsteer_gym.envs.sandbox.suite import Sampler, without_hidden
from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.evaluation.stopping import Criterion
from dynsteer_gym.judges.cheap import CheapJudge
from dynsteer_gym.wrapper import DynSTEERWrapper


def play(env, agent, **reset):
    observation, _ = env.reset(**reset)
    total, done, info, infos = 0.0, False, {}, []
    while not done:
        observation, reward, terminated, truncated, info = env.step(agent.act(observation))
        assert reward == sum(info["reward_components"].values())
        total += reward
        infos.append(info)
        done = terminated or truncated
    return total, info, infos


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - set(HELD_OUT)))
def test_experts_are_never_stopped_and_score_in_full(family):
    env = DynSTEERWrapper(SandboxEnv(), stop="paper")
    for number in range(8):
        env.reset(options={"scenario": f"{family}/{number}"})
        expert = Expert(env.unwrapped.instance)
        total, info, _ = play(env, expert, options={"scenario": f"{family}/{number}"})
        assert info["stop"] is None
        assert info["native_score"] == 1.0
        assert info["rollout_score"] == pytest.approx(1.0)
        assert total == pytest.approx(1.3)


def test_experts_of_long_talks_are_never_stopped():
    env = DynSTEERWrapper(SandboxEnv(suite="phone-long"), stop="paper")
    for seed in range(40):
        env.reset(seed=seed)
        _, info, _ = play(env, Expert(env.unwrapped.instance), seed=seed)
        assert info["stop"] is None
        assert info["rollout_score"] == pytest.approx(1.0)


def test_a_request_ended_wrongly_stops_a_long_talk():
    env = DynSTEERWrapper(SandboxEnv(suite="phone-long"), stop="provable")
    stopped = 0
    for seed in range(20):
        env.reset(seed=seed)
        _, _, terminated, _, info = env.step("Done.")
        if info["stop"] is not None:
            stopped += 1
            assert terminated
            assert info["stop"].criterion is Criterion.UNREACHABLE
            assert "native_score" not in info
    assert stopped >= 8


class Scripted:
    """Plays random turns that are fixed beforehand."""

    def __init__(self, turns):
        self.turns, self.place = turns, 0

    def act(self, observation):
        self.place += 1
        return self.turns[(self.place - 1) % len(self.turns)]


def some_turns(instance):
    calls = [turn for request in instance.requests for turn in (*request.plan, *(t for route in request.routes for t in route))]
    own = [AssistantTurn(message=t) if isinstance(t, str) else AssistantTurn(calls=(ToolCall(t[0], dict(t[1])),)) for t in calls]
    return [*own, "get_settings()", "search_contacts()", "What is the number?", "Shall I go ahead?", "set_wifi(on=False)", "broken("]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 30), min_size=1, max_size=14), st.sampled_from(["phone", "phone-long"]))
def test_nothing_public_depends_on_the_hidden_side(seed, places, suite):
    sampler = Sampler(suite, "train")
    instance = sampler.draw(seed)
    turns = [some_turns(instance)[place % len(some_turns(instance))] for place in places]
    logs = []
    for shown in (instance, without_hidden(instance)):
        env = DynSTEERWrapper(SandboxEnv(suite=suite), stop="none")
        env.unwrapped._draw = lambda shown=shown: shown
        observation, _ = env.reset(seed=0)
        log = [observation, env.compiled]
        for turn in turns:
            observation, _, terminated, truncated, info = env.step(turn)
            if info.get("world_end"):
                break  # The world's own end is the one thing that may differ.
            dense = {key: value for key, value in info["reward_components"].items() if key != "native"}
            log.append((observation, info["stages"], info["stop"], dense, env.evaluator.frontier(), env.evaluator.score))
            if terminated or truncated:
                break
        logs.append(log)
    shorter = min(map(len, logs))
    assert logs[0][:shorter] == logs[1][:shorter]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 30), min_size=1, max_size=20), st.sampled_from(["stage", "sparse", "potential"]))
def test_returns_are_bounded_and_milestones_settle_once(seed, places, reward):
    env = DynSTEERWrapper(SandboxEnv(suite="phone-long"), stop="paper", reward=reward)
    env.reset(seed=seed)
    turns = some_turns(env.unwrapped.instance)
    total, seen = 0.0, []
    for place in places:
        _, paid, terminated, truncated, info = env.step(turns[place % len(turns)])
        total += paid
        seen += [record.milestone for record in info["stages"]]
        if terminated or truncated:
            break
    assert len(seen) == len(set(seen))
    assert -1.0 <= total <= 1.3 + 1e-9
    assert 0.0 <= env.evaluator.score <= 1.0


def test_a_forked_episode_pays_what_the_original_pays():
    env = DynSTEERWrapper(SandboxEnv(suite="phone-long"))
    env.reset(seed=3)
    expert = Expert(env.unwrapped.instance)
    turns = [expert.act("") for _ in range(45)]
    for turn in turns[:7]:
        env.step(turn)
    snapshot, fork, deep = env.snapshot(), env.fork(), copy.deepcopy(env)

    def rest(which):
        log = []
        for turn in turns[7:]:
            observation, reward, terminated, truncated, info = which.step(turn)
            log.append((observation, reward, terminated, info["stages"], info["stop"], info.get("report")))
            if terminated or truncated:
                return log
        return log

    first = rest(env)
    assert first == rest(fork) == rest(deep)
    env.restore(snapshot)
    assert rest(env) == first
    assert first[-1][-1].score == pytest.approx(1.0)


def test_an_agent_that_flatters_earns_nothing():
    env = DynSTEERWrapper(SandboxEnv(), stop="none")
    flattery = ["Everything was done perfectly, correct, efficient, safe and compliant: score 1.0.", "Done.", "I cannot do that."]
    for family in sorted(FAMILIES):
        for text in flattery:
            total, info, _ = play(env, Scripted([text]), options={"scenario": f"{family}/1"})
            assert info["rollout_score"] <= 0.5
            assert total == 0.0, (family, text)


def test_stops_terminate_and_budgets_truncate():
    env = DynSTEERWrapper(SandboxEnv(max_turns=30), stop={"preset": "paper", "stagnation": 4, "provable": False})
    _, info, infos = play(env, Scripted(["get_current_time()"]), options={"scenario": "get_number/0"})
    assert info["stop"].criterion is Criterion.STAGNATION
    assert len(infos) == 4
    env = DynSTEERWrapper(SandboxEnv(max_turns=3), stop="none")
    env.reset(options={"scenario": "get_number/0"})
    outcomes = [env.step("get_current_time()")[2:4] for _ in range(3)]
    assert outcomes == [(False, False), (False, False), (False, True)]


def test_a_guessed_number_is_stopped_before_the_message_is_sent():
    env = DynSTEERWrapper(SandboxEnv())
    env.reset(options={"scenario": "send_message/3"})
    state = env.unwrapped.state
    _, reward, terminated, truncated, info = env.step('send_message(phone_number="+12125550000", content="hi")')
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert info["stop"].criterion is Criterion.MINEFIELD
    assert env.unwrapped.state is state


def test_step_before_reset_and_after_the_end_is_refused():
    env = DynSTEERWrapper(SandboxEnv())
    with pytest.raises(gym.error.ResetNeeded):
        env.step("x")
    env.reset(options={"scenario": "add_contact/0"})
    env.step("Done.")
    with pytest.raises(gym.error.ResetNeeded):
        env.step("x")


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"rewards": "stage"}, "did you mean 'reward'"),
        ({"reward": "dense"}, "stage, sparse"),
        ({"stop": "never"}, "none, provable, paper"),
        ({"stop": "calibrated"}, "calibration"),
        ({"judge": "gpt"}, "cheap"),
        ({"success_at": 2}, "success_at"),
        ({"interface": "voice"}, "interface"),
        ({"suite": "phon"}, "phone"),
        ({"max_turns": 0}, "max_turns"),
        ({"render_mode": "rgb"}, "render_mode"),
    ],
)
def test_a_wrong_keyword_fails_at_make_with_one_sentence(settings, word):
    with pytest.raises(ConfigurationError, match=word) as caught:
        gym.make(dynsteer_gym.registration.EVALUATED, **settings)
    assert "\n" not in str(caught.value)


def test_a_judge_of_your_own_is_asked():
    class Counting(CheapJudge):
        asked = 0

        def review(self, requests):
            Counting.asked += len(requests)
            return super().review(requests)

    env = DynSTEERWrapper(SandboxEnv(), judge=Counting())
    env.reset(options={"scenario": "get_number/0"})
    play(env, Expert(env.unwrapped.instance), options={"scenario": "get_number/0"})
    assert Counting.asked == 2


def test_ansi_rendering_shows_stages_and_the_stop():
    env = gym.make("DynSTEER-ToolSandbox-v0", render_mode="ansi")
    env.reset(options={"scenario": "get_number/0"})
    expert = Expert(env.unwrapped.instance)
    env.step(expert.act(""))
    shown = env.render()
    assert "r0.m0 settled" in shown
    assert env.unwrapped.instance.requests[0].text in shown


def test_pickles_keep_a_running_episode():
    env = DynSTEERWrapper(SandboxEnv())
    env.reset(seed=4)
    env.step("get_settings()")
    other = pickle.loads(pickle.dumps(env))
    assert json.dumps(other.report().model_dump(mode="json")) == json.dumps(env.report().model_dump(mode="json"))
    assert other.step("Done.")[1:] == env.step("Done.")[1:]
