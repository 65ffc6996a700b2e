"""Fuzz target for the action parser: mutates seeds for ever, or for so many rounds.

Usage: python benchmarks/fuzz_actions.py [ROUNDS]
"""

import json
import random
import sys

from dynsteer_gym.envs.actions import openai_message, parse

SEEDS = [
    '{"name": "find", "arguments": {"name": "Ada", "n": [1, 2.5, null, true]}}',
    '<think>x</think><tool_call>{"name": "find", "arguments": {}}</tool_call>',
    'Thought: a\nAction: find\nAction Input: {"a": "b"}\nObservation: c',
    '[find(name="Ada"), stop()]',
    '```json\n{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}\n```',
]
BITS = ['"', "'", "{", "}", "[", "]", "\\", "\ud800", "NaN", "1e999", "\x00", "```", "<tool_call>", "Action:", "(", ")", "=", "\n", "é" * 50]


def mutate(text: str, source: random.Random) -> str:
    """One to eight random edits."""
    for _ in range(source.randint(1, 8)):
        place = source.randint(0, len(text))
        kind = source.random()
        if kind < 0.4:
            text = text[:place] + source.choice(BITS) + text[place:]
        elif kind < 0.7:
            text = text[:place] + text[place + source.randint(1, 9) :]
        else:
            other = source.choice(SEEDS)
            text = text[:place] + other[source.randint(0, len(other)) :]
    return text


def main(rounds: int | None) -> None:
    """Runs; an exception or text that cannot be written ends it with the input."""
    source = random.Random(0)
    done = 0
    while rounds is None or done < rounds:
        text = mutate(source.choice(SEEDS), source)
        try:
            json.dumps(openai_message(parse(text)), ensure_ascii=False, allow_nan=False).encode()
        except Exception:
            print(repr(text))
            raise
        done += 1
        if done % 100_000 == 0:
            print(done, flush=True)
    print(f"{done} inputs, no failure")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
