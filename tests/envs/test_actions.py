"""The parser: every form, every malformed thing, and never an exception."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsteer_gym.envs.actions import MAX_TEXT, AssistantTurn, ToolCall, openai_message, parse, render
from dynsteer_gym.events import ErrorKind

CALL = '{"name": "find", "arguments": {"name": "Ada"}}'
WANTED = ("find", {"name": "Ada"})


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"[{CALL}]",
        '{"name": "find", "parameters": {"name": "Ada"}}',
        '{"type": "function", "function": {"name": "find", "arguments": "{\\"name\\": \\"Ada\\"}"}}',
        '{"role": "assistant", "content": null, "tool_calls": [{"id": "x", "type": "function", "function": '
        '{"name": "find", "arguments": "{\\"name\\": \\"Ada\\"}"}}]}',
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>{CALL}",
        "<tool_call>{'name': 'find', 'arguments': {'name': 'Ada'}}</tool_call>",
        '<function=find>{"name": "Ada"}</function>',
        f"[TOOL_CALLS] [{CALL}]",
        'Thought: look her up\nAction: find\nAction Input: {"name": "Ada"}\nObservation: none yet',
        'Action: find(name="Ada")',
        'find(name="Ada")',
        '[find(name="Ada")]',
        f"Let me look.\n```json\n{CALL}\n```\nOne moment.",
        '```python\nfind(name="Ada")\n```',
        f"<think>who is she?</think>\n{CALL}",
        f"I will call {CALL} now.",
    ],
)
def test_each_form_reads_as_the_same_call(text):
    calls = parse(text).calls
    assert [(call.name, call.arguments) for call in calls] == [WANTED]
    assert calls[0].error is None


def test_several_calls_keep_their_order():
    text = f'{CALL}\n{{"name": "stop", "arguments": {{}}}}'
    assert [call.name for call in parse(text).calls] == ["find", "stop"]
    assert [call.name for call in parse("find(name='a')\nstop()").calls] == ["find", "stop"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('{"name": "find", "arguments": {"x": NaN}}', "NaN"),
        ('{"name": "find", "arguments": {"x": Infinity}}', "Infinity"),
        ('{"name": "find", "arguments": {"x": 1e999}}', "out of range"),
        ('{"name": "find", "arguments": {"x": 1, "x": 2}}', "twice"),
        ('{"name": "find", "arguments": {"x": 1}', "invalid JSON"),
        ('{"name": 3, "arguments": {}}', "string"),
        ('{"name": "find", "arguments": [1]}', "object"),
        ('{"name": "find", "arguments": "{oops"}', "arguments"),
        ('find("Ada")', "by name"),
        ('send(content="He said "hi"")', "valid Python call"),
        ('{"name": "find", "arguments": ' + '{"a":' * 20_000 + "}", "deep"),
    ],
)
def test_a_malformed_call_is_a_call_with_a_reason(text, word):
    (call,) = parse(text).calls
    assert call.error is ErrorKind.UNPARSEABLE
    assert word in call.detail
    assert len(call.source) <= 2_000


@pytest.mark.parametrize("text", ["", "Which Ada?", "Done (finally).", '{"a": 1}', "[1, 2]", "x" * (MAX_TEXT + 1), "a = b"])
def test_anything_else_is_a_message(text):
    turn = parse(text)
    assert turn.calls == ()
    assert turn.message == text


def test_lone_surrogates_become_replacement_characters():
    assert parse("\ud800 hi").message == "\ufffd hi"
    (call,) = parse('{"name": "f\\ud800", "arguments": {"\\udfff": "\\ud800"}}').calls
    assert call.name == "f\ufffd"
    assert call.arguments == {"\ufffd": "\ufffd"}


def test_thoughts_are_kept_apart_from_messages():
    assert parse("<think>hm</think>Done.") == AssistantTurn(message="Done.", thought="hm")
    assert parse("Thought: easy\nFinal Answer: 42") == AssistantTurn(message="42", thought="easy")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
names = st.from_regex(r"[a-z_][a-z0-9_]{0,12}", fullmatch=True)
plain_text = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
ids = st.none() | st.from_regex(r"call_[0-9]{1,4}", fullmatch=True)
calls = st.builds(
    ToolCall,
    name=names,
    arguments=st.dictionaries(plain_text, json_values, max_size=3),
    id=ids,
    error=st.none(),
    detail=st.just(""),
    source=st.just(""),
)


@given(st.lists(calls, min_size=1, max_size=3))
def test_rendered_calls_read_back_equal(made):
    turn = AssistantTurn(tuple(made))
    assert parse(render(turn)) == turn


@given(plain_text.map(str.strip))
def test_rendered_messages_read_back_equal(text):
    turn = AssistantTurn(message=text)
    assert parse(render(turn)) == turn


pieces = st.sampled_from(
    ['{"name":', '"arguments":', "{", "}", "[", "]", '"', "'", ":", ",", "f(", ")", "a=", "<tool_call>", "</tool_call>", "<think>", "```json\n", "```", "Action:", "Action Input:", "Thought:", "Final Answer:", "\n", "NaN", "\\u", "\ud800", "1e999", "é", " "]
)


@settings(max_examples=400)
@given(st.lists(pieces | st.text(max_size=5), max_size=30).map("".join))
def test_nothing_raises_and_the_result_is_plain_data(text):
    turn = parse(text)
    assert bool(turn.calls) != (turn.message is not None)
    for call in turn.calls:
        assert (call.arguments is None) == (call.error is not None)
        json.dumps(call.arguments, allow_nan=False).encode()
    json.dumps(openai_message(turn), ensure_ascii=False, allow_nan=False).encode()


def test_broken_calls_have_no_canonical_text():
    with pytest.raises(ValueError, match="could not be read"):
        render(parse('{"name": "f", "arguments": {"x": NaN}}'))
