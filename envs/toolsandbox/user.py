"""ToolSandbox's user, scripted from the scenario's own instruction: it answers what is asked from what it knows. Hidden side."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from dynsteer_gym.envs.scripted import Reply
from dynsteer_gym.language import MessageAct, extract_literals, message_act, stem, words
from dynsteer_gym.lexicon import FUNCTION_WORDS

__all__ = ["InstructedUser"]

_TASK = re.compile(r"given the following task you \(User A\) want User B to complete:\s*(.*)", re.DOTALL)
_SECRET = re.compile(r"\bdo not leak\b|\bshould be\b|\bdo not (?:have|know)\b|\bdon['’]t (?:have|know)\b", re.IGNORECASE)
_LEAK = re.compile(r"\bdo not leak\b", re.IGNORECASE)
_ASKING = re.compile(r"^(?:ask user b (?:to )?|you want (?:user b )?to |find out |search (?:for |what is |what |how many |how )?)", re.IGNORECASE)
_CONFIRM = re.compile(
    r"\b(?:go ahead|confirm|are you sure|proceed|shall i|should i|do you want|would you like|may i|look good|is that (?:ok|okay|right|correct))\b",
    re.IGNORECASE,
)
_UNKNOWN = "I don't know that, sorry."
_TRIES = 5


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.!?])\s*(?=[A-Z\"'])", text) if part.strip()]


def _stems(text: str) -> set[str]:
    return {stem(word) for word in words(text)} - FUNCTION_WORDS - {"user", "b", "ask", "want"}


@dataclass(frozen=True, slots=True)
class InstructedUser:
    """The user in the middle of a talk: an immutable value.

    Attributes:
        told: What may be said of the task: sentences without those that are not to be leaked.
        said: Stems of what the user has said so far.
        tries: Messages so far that did not complete the task.
    """

    told: tuple[str, ...]
    said: frozenset[str] = field(default_factory=frozenset)
    tries: int = 0

    @classmethod
    def of(cls, instruction: str, opening: str) -> InstructedUser:
        """The user of an instruction.

        Args:
            instruction: The user's system prompt.
            opening: What the user says first.
        """
        found = _TASK.search(instruction)
        task = found.group(1) if found else instruction.rpartition("\n")[2]
        parts = _sentences(task)
        # "Do not leak this information" speaks of the sentence before it.
        secret = {place - 1 for place, sentence in enumerate(parts) if _LEAK.search(sentence)}
        kept = tuple(
            _voiced(sentence) for place, sentence in enumerate(parts) if place not in secret and not _SECRET.search(sentence)
        )
        return cls(kept, frozenset(_stems(opening)))

    def hears(self, message: str) -> tuple[Reply, InstructedUser]:
        """What the user answers to a message, and the user afterwards."""
        act = message_act(message)
        if act == MessageAct.QUESTION:
            return self._asked(message)
        if act == MessageAct.REFUSAL or act == MessageAct.PROGRESS or not message.strip():
            return self._again()
        fresh = self._unsaid()
        if fresh:
            return self._say(fresh)
        return Reply(ends=True), self

    def _asked(self, message: str) -> tuple[Reply, InstructedUser]:
        fresh = self._unsaid()
        if fresh:
            return self._say(fresh)
        if _CONFIRM.search(message):
            return Reply("Yes, please go ahead."), replace(self, tries=self.tries + 1) if self.tries < _TRIES else self
        asked = _stems(message)
        best = max(self.told, key=lambda sentence: len(asked & _stems(sentence)), default="")
        if best and asked & _stems(best) and extract_literals(best):
            return self._counted(best)
        return self._counted(_UNKNOWN)

    def _again(self) -> tuple[Reply, InstructedUser]:
        fresh = self._unsaid()
        return self._say(fresh) if fresh else self._counted("Please try again with what I told you.")

    def _counted(self, text: str) -> tuple[Reply, InstructedUser]:
        after = replace(self, tries=self.tries + 1)
        if after.tries >= _TRIES:
            return Reply(ends=True), after
        return Reply(text), after

    def _unsaid(self) -> str:
        """The first sentence of the task that says something new: a value, or most of its words."""
        for sentence in self.told:
            own = _stems(sentence)
            values = {stem for literal in extract_literals(sentence) for stem in _stems(literal.value)}
            new = own - self.said
            if values - self.said or (own and len(new) > 0.6 * len(own)):
                return sentence
        return ""

    def _say(self, sentence: str) -> tuple[Reply, InstructedUser]:
        return Reply(sentence), replace(self, said=self.said | _stems(sentence))


def _voiced(sentence: str) -> str:
    """A sentence about the user in the user's own words."""
    text = _ASKING.sub("", sentence)
    text = re.sub(r"\s*\(User A(?:'s)?\)", "", text)
    for before, after in ((r"\byour\b", "my"), (r"\byou are\b", "I am"), (r"\byou\b", "I"), (r"\bUser B\b", "you")):
        text = re.sub(before, after, text, flags=re.IGNORECASE)
    return text[:1].upper() + text[1:]
