"""The scripted user: tells facts only when asked, answers confirmations, ends requests and the talk."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dynsteer_gym.envs.sandbox.goals import Goal, Heard
from dynsteer_gym.language import MessageAct, extract_literals, message_act, stem, words

__all__ = ["Fact", "Reply", "Request", "User"]


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that the user tells when asked for it, or knows nothing of.

    Attributes:
        topic: Its name.
        keywords: Stems of words that a question for it holds.
        answer: What the user says, or ``""`` where the user does not know.
        more: What the user adds when asked again: somebody who gives half an answer first.
    """

    topic: str
    keywords: frozenset[str]
    answer: str = ""
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a talk: the hidden side of what the user says.

    Attributes:
        text: The opening words.
        goal: What it asks for.
        facts: What the user can be asked for.
        wants_answer: The request is a question; only a message that carries something answers it.
        plan: The expert's turns, in order: ``(tool, arguments)`` calls, or a message.
        routes: Other legal plans.
        family: Name of its family.
        references: Hidden reference milestones: ``(tool, arguments)``, or ``("say", {"text": ...})``.
        confirms: The user wants to be asked before it is done: a question for confirmation is answered as such, whatever
            else it holds.
        checks: Questions that the user asks back, one after the other, when told that it is done.
    """

    text: str
    goal: Goal
    facts: tuple[Fact, ...] = ()
    wants_answer: bool = False
    plan: tuple[tuple[str, dict[str, object]] | str, ...] = ()
    routes: tuple[tuple[tuple[str, dict[str, object]] | str, ...], ...] = ()
    family: str = ""
    references: tuple[tuple[str, dict[str, object]], ...] = ()
    checks: tuple[str, ...] = ()
    confirms: bool = False


class Reply(NamedTuple):
    """What the user says to a message.

    Attributes:
        text: The words.
        user: The user afterwards.
        ended: The request is over as far as the user is concerned.
        gave_up: The user lost patience: the talk is over.
    """

    text: str
    user: User
    ended: bool = False
    gave_up: bool = False


_CONFIRM = re.compile(
    r"\b(?:go ahead|confirm|are you sure|proceed|shall i|should i|do you want|would you like|may i|is that (?:ok|okay|right|fine))\b",
    re.IGNORECASE,
)
_SWITCH_WORDS = re.compile(r"\b(?:on|off|yes|no|true|false|enabled|disabled)\b", re.IGNORECASE)
_YES = ("Yes, please go ahead.", "Yes, that is right.", "Sure, go ahead.")
_UNKNOWN = ("Sorry, I don't know.", "I have no idea, sorry.", "I don't know that.")
_AGAIN = ("I have said all I know about that.", "I cannot add anything to that.", "Please just do what I asked for.")
_NO_ANSWER = ("That does not answer my question.", "I was asking for something else.", "That is no answer yet.")
_WAITING = ("Fine.", "I am waiting.", "All right.")
_THANKS = ("Thanks!", "Thank you.", "Great, thanks.")
_PITY = ("A pity. Thanks anyway.", "Too bad, but thanks.", "All right then, thanks.")
_ENOUGH = "Never mind, I will do it myself."
PATIENCE = 3
"""Unhelpful messages in one request after which the user gives up."""


@dataclass(frozen=True, slots=True)
class User:
    """The user in the middle of a talk: an immutable value.

    Attributes:
        request: The running request.
        heard: What passed during it.
        unhelpful: Messages so far that brought nothing.
        confirmed: The user was asked for confirmation already.
        voice: Which of the paraphrases this user speaks.
        checked: Questions asked back so far.
        told: Topics told so far, once for each time.
    """

    request: Request
    heard: Heard = field(default_factory=Heard)
    unhelpful: int = 0
    confirmed: bool = False
    voice: int = 0
    checked: int = 0
    told: tuple[str, ...] = ()

    def hears(self, message: str) -> Reply:
        """What the user answers to a message.

        Args:
            message: Any text, the empty one included.
        """
        act = message_act(message)
        if act == MessageAct.QUESTION:
            return self._asked(message)
        heard = replace(self.heard, told=(*self.heard.told, message), refused=act == MessageAct.REFUSAL)
        if act == MessageAct.REFUSAL:
            return Reply(self._say(_PITY), replace(self, heard=heard), ended=True)
        if act == MessageAct.PROGRESS or not message.strip():
            return self._unhelpful(_WAITING)
        if (self.request.wants_answer or self.checked) and not _carries(message):
            return replace(self, heard=heard)._unhelpful(_NO_ANSWER)
        if self.checked < len(self.request.checks):
            return Reply(self.request.checks[self.checked], replace(self, heard=heard, checked=self.checked + 1))
        return Reply(self._say(_THANKS), replace(self, heard=heard), ended=True)

    def _asked(self, message: str) -> Reply:
        if self.request.confirms and not self.confirmed and _CONFIRM.search(message):
            return Reply(self._say(_YES), replace(self, confirmed=True))
        said = {stem(word) for word in words(message)}
        if len(self.request.facts) > 1:
            asked = [fact for fact in self.request.facts if fact.keywords & said]
            if len(asked) > 1 and any(fact.answer for fact in asked):
                return self._tells(asked)
        best = max(self.request.facts, key=lambda fact: len(fact.keywords & said), default=None)
        if best is not None and best.keywords & said:
            if best.answer:
                return self._tells([best])
            heard = replace(self.heard, asked=self.heard.asked | {best.topic})
            after = replace(self, heard=heard)
            if best.topic in self.heard.asked:
                return after._unhelpful(_UNKNOWN)
            return Reply(self._say(_UNKNOWN), after)
        if _CONFIRM.search(message):
            if self.confirmed:
                return self._unhelpful(_YES)
            return Reply(self._say(_YES), replace(self, confirmed=True))
        return self._unhelpful(_AGAIN)

    def _tells(self, facts: list[Fact]) -> Reply:
        """Answers to one or more questions of one message."""
        said, after = [], self
        for fact in facts:
            if not fact.answer:
                after = replace(after, heard=replace(after.heard, asked=after.heard.asked | {fact.topic}))
                said.append(self._say(_UNKNOWN))
                continue
            parts = (fact.answer, *fact.more)
            said.append(parts[after.told.count(fact.topic) % len(parts)])
            if fact.more:
                after = replace(after, told=(*after.told, fact.topic))
        return Reply(" ".join(said), after)

    def _unhelpful(self, phrases: tuple[str, ...]) -> Reply:
        after = replace(self, unhelpful=self.unhelpful + 1)
        if after.unhelpful >= PATIENCE:
            return Reply(_ENOUGH, after, ended=True, gave_up=True)
        return Reply(self._say(phrases), after)

    def _say(self, phrases: tuple[str, ...]) -> str:
        return phrases[self.voice % len(phrases)]


def _carries(message: str) -> bool:
    """Whether a message carries anything that could be an answer: a value, or on/off, yes/no."""
    return bool(extract_literals(message)) or _SWITCH_WORDS.search(message) is not None or len(words(message)) > 3
