"""Plain-text helpers shared by worlds, compiler and evaluator: typed literals, message acts, word stems.

Everything here is deterministic, public and knows nothing of any particular world.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

__all__ = ["Literal", "MessageAct", "canonical", "delexicalise", "extract_literals", "message_act", "stem", "switch_said", "words"]


class Literal(NamedTuple):
    """A value written in a text.

    Attributes:
        type: ``quoted``, ``email``, ``phone``, ``datetime``, ``date``, ``time``, ``code`` (an IBAN), ``number`` or ``name``.
        value: The value as written, without quotation marks.
        start: Offset of its first character, quotation marks included.
        end: Offset after its last character.
    """

    type: str
    value: str
    start: int
    end: int


_CAPITALISED = r"[^\W\d_a-z][^\W\d_]*(?:['’-][^\W\d_]{2,})*"
_LITERALS = re.compile(
    r"""
    (?P<quoted>"[^"\n]+"|“[^”\n]+”|«[^»\n]+»|(?<!\w)'[^'\n]+'(?!\w)|(?<!\w)‘[^’\n]+’(?!\w))
  | (?P<email>[\w.+-]+@[\w-]+\.[\w.-]*\w)
  | (?P<datetime>\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:?\d{2})?)
  | (?P<date>\d{4}-\d{2}-\d{2})
  | (?P<time>(?<!\d)\d{1,2}:\d{2}(?!\d))
  | (?P<code>(?<!\w)[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?(?!\w))
  | (?P<phone>\+\d[\d ()./-]{5,}\d|\(\d{3}\)\s*\d{3}[ .-]?\d{4}|(?<!\d)\d{3}[ .-]\d{3}[ .-]\d{4}(?!\d)|(?<!\d)\d{3}[ .-]\d{4}(?!\d))
  | (?P<number>(?<![\w.])[-−]?\d+(?:\.\d+)?(?![\w]))
  | (?P<name>(?<![\w@'’-])"""
    + _CAPITALISED
    + r"""(?:\s+(?:(?:de|van|von|da|del|al|bin)\s+)?"""
    + _CAPITALISED
    + r""")*)
    """,
    re.VERBOSE,
)

_SENTENCE_START = re.compile(r"(?:^|[.!?:;…]\s*|\n\s*)[\"“'‘(]?$")
_NOT_NAMES = frozenset(
    """i i'm i'd i'll i've ok okay please thanks thank hi hello hey dear yes no monday tuesday wednesday thursday friday
    saturday sunday january february march april may june july august september october november december am pm mr mrs
    ms dr a an the and but or so if then also what when where who why how it its it's what's let's here's there's
    that's who's how's where's she's he's they they're we we're you you're my our your his her their this that these
    those english""".split()
)


@lru_cache(maxsize=4096)
def extract_literals(text: str, vocabulary: frozenset[str] = frozenset()) -> tuple[Literal, ...]:
    """The typed literals of a text, in order, never overlapping.

    A capitalised word counts as a name unless it opens a sentence (a possessive does count there), is an everyday
    word that English capitalises, or belongs to ``vocabulary``.

    Args:
        text: Any text.
        vocabulary: Lower-case words that are no names here, such as the words of a tool catalogue.
    """
    found: list[Literal] = []
    for match in _LITERALS.finditer(text):
        kind = match.lastgroup or ""
        start, end = match.span()
        value = match.group()
        if kind == "quoted":
            value = value[1:-1]
        elif kind == "number":
            value = value.replace("−", "-")
        elif kind == "name":
            span = _name_span(text, start, value, vocabulary)
            if span is None:
                continue
            start, end = span
            value = text[start:end]
        found.append(Literal(kind, value, start, end))
    return tuple(found)


def _name_span(text: str, start: int, value: str, vocabulary: frozenset[str]) -> tuple[int, int] | None:
    """Trims words that are no names off both ends of a run of capitalised words."""
    parts = [(m.start() + start, m.end() + start) for m in re.finditer(r"\S+", value)]

    def is_name(index: int) -> bool:
        first, last = parts[index]
        word = text[first:last].replace("’", "'").lower()
        if text[first:last].isupper() and 1 < last - first <= 4:
            return False  # An abbreviation.
        if word in _NOT_NAMES or word in vocabulary or stem(word) in vocabulary or word.replace("-", "") in vocabulary:
            return False
        if index == 0 and _SENTENCE_START.search(text[max(0, first - 4) : first]):
            return text[last : last + 2] in ("'s", "’s")
        return True

    low, high = 0, len(parts)
    while low < high and not is_name(low):
        low += 1
    while high > low and not is_name(high - 1):
        high -= 1
    if low == high:
        return None
    first, last = parts[low][0], parts[high - 1][1]
    if text[last - 2 : last] in ("'s", "’s"):
        last -= 2
    return (first, last) if last > first else None


@lru_cache(maxsize=4096)
def delexicalise(text: str, vocabulary: frozenset[str] = frozenset()) -> tuple[str, tuple[Literal, ...]]:
    """A text with each literal replaced by ``<type:index>``, and the literals.

    Two requests that differ only in their values have the same template; equal values of one type share an index, so
    that ``index`` names an entity and not an occurrence.
    """
    literals = extract_literals(text, vocabulary)
    pieces: list[str] = []
    known: dict[tuple[str, str], int] = {}
    counts: dict[str, int] = {}
    position = 0
    for literal in literals:
        key = (literal.type, canonical(literal.value))
        if key not in known:
            known[key] = counts.get(literal.type, 0)
            counts[literal.type] = known[key] + 1
        pieces.append(text[position : literal.start])
        pieces.append(f"<{literal.type}:{known[key]}>")
        position = literal.end
    pieces.append(text[position:])
    return "".join(pieces), literals


_CODE = re.compile(r"[a-z]{2}\d{2}(?: ?[a-z0-9]{4}){2,7}(?: ?[a-z0-9]{1,3})?")
_PHONE = re.compile(r"\+?[\d ()./-]{7,}")


def canonical(value: Any) -> Any:
    """One form for values that mean the same: for comparing arguments, returns and what was said.

    Text is case-folded with white space collapsed; phone numbers lose their punctuation; date-times their ``T`` and
    seconds of zero; integral floats become integers. Booleans and ``None`` stay as they are.
    """
    if isinstance(value, str):
        return _canonical_text(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


@lru_cache(maxsize=16384)
def _canonical_text(value: str) -> str:
    text = " ".join(value.split()).casefold()
    if _PHONE.fullmatch(text) and not re.fullmatch(r"\d{4}-\d{2}-\d{2}.*", text):
        return re.sub(r"[ ()./-]", "", text)
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}t\d{2}:\d{2}.*", text):
        text = text.replace("t", " ", 1)
    if re.fullmatch(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:00.*", text):
        text = text[:16] + text[19:]
    if _CODE.fullmatch(text):
        text = text.replace(" ", "")
    return text


class MessageAct(StrEnum):
    """What a message to the user does."""

    QUESTION = "question"
    """Asks for something, a confirmation included."""
    REFUSAL = "refusal"
    """Says that something cannot be done."""
    PROGRESS = "progress"
    """Announces what the agent is about to do; nothing is over."""
    REPORT = "report"
    """Anything else: an answer, or a word that it is done."""


_OFFER = re.compile(
    r"[^.!?\n]*\b(?:anything else|something else|any other|further (?:help|assist)|else (?:i can|can i))\b[^.!?\n]*\?",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"^(?:please|kindly|could you|can you|would you|may i)\b.*\b(?:tell|provide|give|confirm|specify|share|let me know)\b"
    r"|\blet me know (?:what|which|who|when|where|how|if|whether|the)\b|\bplease (?:provide|confirm|specify|tell me)\b",
    re.IGNORECASE,
)
_REFUSES = re.compile(
    r"\b(?:cannot|can not|can['’]?t|could not|couldn['’]t|unable|not able|not possible|impossible|no way to|won['’]t be able"
    r"|not available|(?:do not|don['’]t) have (?:a|an|any|the|access)|lack(?:s|ing)?)\b",
    re.IGNORECASE,
)
_PROGRESS = re.compile(
    r"^(?:(?:sure|ok|okay|alright|of course|certainly)\W+)*(?:let me|i['’]ll|i will|i['’]m going to|i am going to|one moment"
    r"|just a moment|hold on|working on|give me a)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def message_act(text: str) -> MessageAct:
    """What a message to the user does, from its wording alone.

    Closing offers ("Is there anything else?") are not questions.
    """
    body = _OFFER.sub(" ", text).strip()
    if "?" in body or _ASKS.search(body):
        return MessageAct.QUESTION
    if _REFUSES.search(body):
        return MessageAct.REFUSAL
    if _PROGRESS.match(body):
        return MessageAct.PROGRESS
    return MessageAct.REPORT


_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=8192)
def words(text: str) -> tuple[str, ...]:
    """The lower-case words of a text or of an identifier (snake_case and camelCase are taken apart), unstemmed."""
    return tuple(_WORD.findall(_CAMEL.sub(" ", text.replace("-", "")).lower()))


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """A light English stem: plural, possessive and verb endings taken off."""
    word = word.lower().replace("’", "'")
    if word.endswith("'s"):
        word = word[:-2]
    for suffix, keep in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x")):
        if word.endswith(suffix) and len(word) > len(suffix) + 1:
            return word[: -len(suffix)] + keep
    if word.endswith("ing") and len(word) > 5:
        word = word[:-3]
    elif word.endswith("ed") and len(word) > 4:
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        word = word[:-1]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    if word.endswith("e") and len(word) > 4:
        word = word[:-1]
    return word


_ON, _OFF = frozenset(("on", "true", "yes", "enabled")), frozenset(("off", "false", "no", "not", "disabled"))


def switch_said(text: str) -> bool | None:
    """Whether a text says on (yes, true) or off (no, false); ``None`` where it says neither or both."""
    said = set(words(text))
    on, off = bool(said & _ON), bool(said & _OFF)
    return on if on != off else None
