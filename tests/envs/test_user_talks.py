"""The user who talks: several questions, half answers, corrections, questions asked back, changes of mind."""

from hypothesis import given, settings
from hypothesis import strategies as st

from dynsteer_gym.envs.sandbox import SandboxEnv
from dynsteer_gym.envs.sandbox.goals import Goal
from dynsteer_gym.envs.sandbox.playing import play_plans
from dynsteer_gym.envs.sandbox.suite import closed_suite
from dynsteer_gym.envs.sandbox.user import Fact, Request, User
from dynsteer_gym.language import MessageAct, message_act, stem, words

NAME = Fact("name", frozenset({"who"}), "It is for Ada.")
TEXT = Fact("text", frozenset({"say"}), 'The text is "hi".')
DAY = Fact("day", frozenset({"when"}), "On Friday.", ("At 15:00.",))
LOST = Fact("iban", frozenset({"iban"}))


def test_two_questions_in_one_turn_get_two_answers():
    user = User(Request("Send a message.", Goal(), facts=(NAME, TEXT)))
    assert user.hears("Who is it for, and what shall it say?").text == 'It is for Ada. The text is "hi".'
    assert user.hears("Who is it for?").text == "It is for Ada."


def test_a_question_that_the_user_cannot_answer_is_told_apart_from_one_that_it_can():
    user = User(Request("Pay somebody.", Goal(), facts=(NAME, LOST)))
    reply = user.hears("Who is it, and what is the IBAN?")
    assert reply.text == "It is for Ada. Sorry, I don't know."
    assert reply.user.heard.asked == {"iban"}


def test_half_an_answer_is_completed_when_asked_again():
    user = User(Request("Plan it.", Goal(), facts=(DAY,)))
    first = user.hears("When?")
    second = first.user.hears("When exactly?")
    third = second.user.hears("When?")
    assert [first.text, second.text, third.text] == ["On Friday.", "At 15:00.", "On Friday."]


def test_the_user_asks_back_before_it_is_content():
    user = User(Request("Move it.", Goal(tells=("15:00",)), checks=("When is it now?",)))
    back = user.hears("Done.")
    assert (back.text, back.ended) == ("When is it now?", False)
    vague = back.user.hears("Hm.")
    assert not vague.ended
    assert vague.user.unhelpful == 1
    content = vague.user.hears("It is at 15:00.")
    assert content.ended
    assert content.user.heard.told == ("Done.", "Hm.", "It is at 15:00.")


def test_a_user_who_wants_to_be_asked_takes_a_question_for_confirmation_as_one():
    user = User(Request("Pay.", Goal(), facts=(NAME,), confirms=True))
    reply = user.hears("Who gets it is clear; shall I go ahead?")
    assert reply.user.confirmed
    assert "go ahead" in reply.text.lower() or reply.text.startswith("Yes")


WORDS = st.sampled_from("who say when iban is the it please tell me for what now done cannot transfer go ahead ? . !".split())


@given(st.lists(st.lists(WORDS, min_size=1, max_size=8).map(" ".join), min_size=1, max_size=6), st.booleans())
@settings(max_examples=400, deadline=None)
def test_no_fact_is_told_unasked(messages, confirms):
    facts = (NAME, TEXT, DAY)
    user = User(Request("Do it.", Goal(), facts=facts, checks=("Which?",), confirms=confirms))
    for message in messages:
        reply = user.hears(message)
        asked = {stem(word) for word in words(message)}
        for fact in facts:
            for part in (fact.answer, *fact.more):
                if part in reply.text:
                    assert message_act(message) == MessageAct.QUESTION
                    assert fact.keywords & asked
        if reply.ended:
            break
        user = reply.user


def test_a_talk_can_take_back_what_it_asked_for():
    instance = next(item for item in closed_suite("dynsteer-509") if any(request.family == "second_thoughts" for request in item.requests))
    place = next(at for at, request in enumerate(instance.requests) if request.family == "second_thoughts")
    first, second = instance.requests[place : place + 2]
    assert second.text.startswith("I have changed my mind")
    assert first.goal.adds[0][1]["start"] in str(second.goal.changes)
    plans = [request.plan for request in instance.requests]
    plans[place + 1] = ("Done.",)
    assert play_plans(instance)[0] == 1.0
    assert play_plans(instance, plans)[0] == 0.0


def test_what_happens_by_itself_is_not_held_against_the_agent_and_a_failing_tool_fails_once():
    suite = closed_suite("dynsteer-509")
    instance = next(item for item in suite if item.requests[0].family == "ask_and_report" and item.scramble is None)
    score, env = play_plans(instance)
    assert score == 1.0
    assert len(env.state.messages) == len(instance.state.messages) + 2
    assert env.state.pending == ()
    instance = next(item for item in suite if item.state.failing and item.scramble is None)
    score, env = play_plans(instance)
    assert score == 1.0
    errors = [message["content"] for message in env.messages if message["role"] == "tool" and "did not answer" in message["content"]]
    assert len(errors) == 1
    assert env.state.failing == ()


def test_the_clock_moves_with_each_call():
    instance = next(item for item in closed_suite("dynsteer-509") if any(tool.name == "get_current_time" for tool in item.tools))
    env = SandboxEnv()
    env.start(instance)
    one, two = (env.step('{"name": "get_current_time", "arguments": {}}')[0] for _ in range(2))
    assert one != two
    assert env.state.minute == instance.state.minute + 2
