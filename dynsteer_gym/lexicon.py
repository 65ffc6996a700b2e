"""A small lexicon of everyday English: words that mean the same share a concept.

General language about everyday actions and things, in the manner of a thesaurus; it names no tool, no scenario and no
task family of any world. A word of several meanings has several concepts.
"""

from __future__ import annotations

from functools import lru_cache
from math import sqrt

from dynsteer_gym.language import stem, words

__all__ = ["FUNCTION_WORDS", "IMPERATIVES", "VERBS", "concepts", "concepts_of", "weighted"]

_SYNONYMS: dict[str, str] = {
    # Actions.
    "create": "add create make new insert save store record register enter put plan note jot set set-up compose schedule prepare book reserve purchase buy order",
    "delete": "delete remove erase drop discard clear scrap wipe rid cancel trash strike",
    "cancel": "cancel call-off abort scrap delete drop remove",
    "update": "update change edit modify correct fix replace alter adjust revise switch-to new set upgrade downgrade",
    "move": "move reschedule postpone shift push delay bring-forward defer change",
    "send": "send write tell notify inform forward ping drop-line let-know pay transfer reply",
    "search": "search find look lookup retrieve query fetch locate list show",
    "get": "get read check show tell give current what",
    "complete": "complete finish done tick check-off mark accomplish confirm",
    "enable": "on enable activate start unfreeze unblock",
    "disable": "off disable deactivate stop kill freeze block",
    "convert": "convert exchange translate",
    # Things.
    "contact": "contact person people entry friend colleague address-book phonebook card someone",
    "phone": "phone telephone number mobile-number cell-number digit dial call reach ring",
    "email": "email e-mail mail-address",
    "message": "message text sms note-to conversation chat wrote write said say line word",
    "content": "content text body say said wrote write word message",
    "reminder": "reminder remind todo task chore to-do nudge alert",
    "event": "event appointment meeting calendar agenda diary schedule session",
    "wifi": "wifi wireless wlan wi-fi internet",
    "cellular": "cellular mobile-data cell-service data",
    "location": "location gps position where place whereabouts address located spot city town",
    "battery": "battery power saver saving power-saving energy",
    "time": "time clock hour when o'clock begin date day start due late moment",
    "due": "due when deadline time remind date",
    "start": "start begin when time date",
    "setting": "setting status state configuration switch whether device enabled currently",
    "money": "money pay payment amount sum bill cash euro eur usd gbp transfer",
    "payee": "payee beneficiary creditor",
    "account": "account balance bank",
    "group": "group member membership belong",
    "population": "population inhabitant live large people",
    "elevation": "elevation height high altitude",
    "distance": "distance far",
    "temperature": "temperature warm cold weather celsius fahrenheit",
    "rain": "rain rainfall precipitation",
    "latitude": "latitude coordinate",
    "longitude": "longitude coordinate",
    "unknown": "know unknown unsure idea sorry",
    "last": "last latest recent newest",
}
IMPERATIVES = {"text": "send", "message": "send", "mail": "send", "email": "send", "book": "create", "list": "search", "note": "create"}
"""Nouns that are actions where a command begins with them ("Text Ada ...")."""
VERBS = frozenset(("create", "delete", "cancel", "update", "move", "send", "search", "get", "complete", "enable", "disable"))
"""The concepts that are actions."""
FUNCTION_WORDS = frozenset(
    stem(word)
    for word in """a an the to of for in at is are was be am and or with from by as it its this that these those my me i
    you your he she his her their them we our us do does did please could would can will shall should have has had not
    there here if then than so no one any some all each how i'd i'll i'm want need like thanks right""".split()
)


def _index() -> tuple[dict[str, tuple[str, ...]], dict[tuple[str, str], tuple[str, ...]]]:
    single: dict[str, list[str]] = {}
    double: dict[tuple[str, str], list[str]] = {}
    for concept, members in _SYNONYMS.items():
        for member in members.split():
            parts = [stem(part) for part in member.split("-")]
            if len(parts) == 1:
                single.setdefault(parts[0], []).append(concept)
            else:
                double.setdefault((parts[0], parts[1]), []).append(concept)
                single.setdefault("".join(parts), []).append(concept)
    return {key: tuple(value) for key, value in single.items()}, {key: tuple(value) for key, value in double.items()}


_SINGLE, _DOUBLE = _index()


@lru_cache(maxsize=16384)
def concepts_of(word: str) -> tuple[str, ...]:
    """The concepts of one stem: those of the lexicon, or the stem itself where it has none."""
    return _SINGLE.get(word, (word,))


@lru_cache(maxsize=8192)
def weighted(text: str) -> tuple[tuple[str, float], ...]:
    """The concepts of a text in order of first occurrence, with weights in (0, 1].

    A word's own concept, or its only one, weighs 1; other meanings share ``1 / sqrt(n)`` each. Words that belong
    together ("address book") are read as one; a particle belongs to its verb across at most two words ("call it off").
    Function words and numbers have no concept.
    """
    found: dict[str, float] = {}
    stems = [stem(word) for word in words(text)]
    taken: set[int] = set()
    for place, item in enumerate(stems):
        for gap, later in enumerate(stems[place + 1 : place + 4]):
            pair = _DOUBLE.get((item, later))
            if pair:
                found.update(dict.fromkeys(pair, 1.0))
                taken.add(place)
                if gap == 0:
                    taken.add(place + 1)
    for place, item in enumerate(stems):
        if place in taken or item in FUNCTION_WORDS or item.isdigit():
            continue
        meanings = concepts_of(item)
        for concept in meanings:
            weight = 1.0 if len(meanings) == 1 or stem(concept) == item else 1 / sqrt(len(meanings))
            found[concept] = max(found.get(concept, 0.0), weight)
    return tuple(found.items())


def concepts(text: str) -> tuple[str, ...]:
    """The concepts of a text or identifier in order of first occurrence."""
    return tuple(concept for concept, _ in weighted(text))
