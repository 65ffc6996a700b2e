"""Suites and splits: which scenarios there are, and how one is drawn from a seed. Hidden side."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from random import Random
from typing import Any

from dynsteer_gym.envs.sandbox.draw import Draw, Family, Taken, references
from dynsteer_gym.envs.sandbox.families import FAMILIES, HELD_OUT
from dynsteer_gym.envs.sandbox.instance import Instance
from dynsteer_gym.envs.sandbox.tools import PHONE, TOOLS
from dynsteer_gym.envs.sandbox.user import Request
from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.task import ToolSpec

__all__ = ["SPLITS", "SUITES", "Instance", "Sampler", "closed_suite", "fixed_instance", "fixed_names", "named_instance", "scenario_names"]

PHONE_SUITES = ("phone", "phone-long", "phone-fixed")
"""The phone alone. ``phone``: one request by seed. ``phone-long``: talks of four to six requests. ``phone-fixed``: a
closed list."""
SUITES = (*PHONE_SUITES, "endless", "dynsteer-509")
"""``endless``: five domains and four variants by seed. ``dynsteer-509``: the fixed benchmark."""
PHONE_SPLITS = ("train", "unseen", "paraphrased", "held_out")
"""``unseen``: other seeds of the trained families. ``paraphrased``: also wordings never trained on. ``held_out``:
families never trained on."""
SPLITS = (*PHONE_SPLITS, "validation", "test", "all")
_SUITE_SPLITS = {
    **dict.fromkeys(PHONE_SUITES, PHONE_SPLITS),
    "endless": ("train", "unseen", "paraphrased", "validation", "test"),
    "dynsteer-509": ("train", "validation", "test", "all"),
}
"""Families of ``train``, ``validation`` and ``test`` have no template in common; ``unseen`` and ``paraphrased`` are other
seeds and other wordings of the families of ``train``."""
TRAINED = tuple(name for name in FAMILIES if name not in HELD_OUT)
_FIXED_EACH = 5
_KEPT_TEMPLATES = 2
_LONG_CALLS = (10, 25)
_LONG_REQUESTS = (4, 6)
_LONG_TRIES = 1_000
_TURNS = {"phone": 16, "phone-fixed": 16, "phone-long": 48}
_ENDLESS_TRIES = 200


@lru_cache(maxsize=1)
def _catalogues() -> tuple[tuple[tuple[ToolSpec, ...], ...], tuple[tuple[ToolSpec, ...], ...]]:
    """Eight fixed orders of the training catalogue, and of the one with the tool that is never trained on."""
    shuffler = Random(20260105)
    known = [TOOLS[name].spec for name in PHONE if name != "move_event"]
    every = [TOOLS[name].spec for name in PHONE]
    return (
        tuple(tuple(shuffler.sample(known, len(known))) for _ in range(8)),
        tuple(tuple(shuffler.sample(every, len(every))) for _ in range(8)),
    )


class Sampler:
    """Draws scenarios of a suite and split.

    Attributes:
        suite: The suite.
        split: The split.
        families: The families drawn from.
        names: Names of the scenarios of ``dynsteer-509``; empty for the other suites.
    """

    def __init__(
        self,
        suite: str = "phone",
        split: str = "train",
        families: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        """Checks what is asked for.

        Args:
            suite: One of :data:`SUITES`.
            split: One of :data:`SPLITS`.
            families: Only these families, or ``None`` for all of the split.
            weights: Sampling weights by family; families left out weigh 1.

        Raises:
            ConfigurationError: A name is unknown, a weight negative or all weights 0.
        """
        if suite not in SUITES:
            raise ConfigurationError(f"suite is one of {', '.join(SUITES)}; got {suite!r}{_near(suite, SUITES)}")
        if split not in SPLITS:
            raise ConfigurationError(f"split is one of {', '.join(SPLITS)}; got {split!r}{_near(split, SPLITS)}")
        if split not in _SUITE_SPLITS[suite]:
            raise ConfigurationError(f"the splits of suite {suite!r} are {', '.join(_SUITE_SPLITS[suite])}; got {split!r}")
        known, own = _families(suite, split)
        chosen = tuple(own if families is None else families)
        for name in (*chosen, *(weights or ())):
            if name not in known:
                raise ConfigurationError(f"no family is called {name!r}{_near(name, known)}")
        if not chosen:
            raise ConfigurationError("families is empty; leave it out to sample all families of the split")
        self.suite, self.split = suite, split
        self.families = tuple(known[name] for name in chosen)
        self.names = fixed_names(split, None if families is None else chosen) if suite == "dynsteer-509" else ()
        if suite == "dynsteer-509" and not self.names:
            raise ConfigurationError(f"no scenario of split {split!r} is of the families {', '.join(chosen)}")
        self.reweight(weights or {})
        self._salt = SPLITS.index(split)
        self._paraphrased = split == "paraphrased"

    def reweight(self, weights: Mapping[str, float]) -> None:
        """Changes the sampling weights of families; those left out weigh 1.

        Raises:
            ConfigurationError: A weight is negative, or all are 0.
        """
        found = [float(weights.get(family.name, 1.0)) for family in self.families]
        if min(found) < 0 or sum(found) <= 0:
            raise ConfigurationError(f"weights are at least 0 and not all 0; got {dict(weights)}")
        self._weights = found
        if self.names:
            recipes = _manifest()["scenarios"]
            self._name_weights = [float(weights.get(_primary(recipes[name]), 1.0)) for name in self.names]

    def draw(self, seed: int) -> Instance:
        """The scenario of a seed.

        Args:
            seed: Any non-negative integer; the scenario is a function of suite, split, families, weights and seed.
        """
        chooser = Random(seed * 8 + self._salt)
        if self.suite == "dynsteer-509":
            return fixed_instance(chooser.choices(self.names, self._name_weights)[0])
        if self.suite == "endless":
            return self._endless(seed, chooser)
        if self.suite == "phone-long":
            return self._talk(chooser.getrandbits(40), f"talk-{self.split}/{seed}")
        family = chooser.choices(self.families, self._weights)[0]
        if self.suite == "phone-fixed":
            return named_instance(f"{family.name}/{chooser.randrange(_FIXED_EACH)}")
        return _single(family, chooser.getrandbits(40), f"{family.name}/{self.split}-{seed}", self.suite, self._paraphrased)

    def named(self, name: str) -> Instance:
        """The scenario of a name.

        Args:
            name: ``family/number`` or ``talk/number`` on the phone; ``endless/split/number``; or name or task id of a
                scenario of ``dynsteer-509``.

        Raises:
            ConfigurationError: There is none of that name; near matches are listed.
        """
        head, _, tail = name.partition("/")
        if head == "talk" and _is_number(tail):
            return Sampler("phone-long", self.split if self.split in PHONE_SPLITS else "train").draw(int(tail))
        split, _, number = tail.partition("/")
        if head == "endless" and split in _SUITE_SPLITS["endless"] and _is_number(number):
            return Sampler("endless", split).draw(int(number))
        if not tail:
            own = name if name in _manifest()["scenarios"] else _by_task_id().get(name)
            if own is not None:
                return fixed_instance(own)
        return named_instance(name)

    def _endless(self, seed: int, chooser: Random) -> Instance:
        from dynsteer_gym.envs.sandbox.playing import solved
        from dynsteer_gym.envs.sandbox.recipes import draw_recipe, draw_variant, possible_topics, realise

        names = [family.name for family in self.families]
        asking = sum(weight for name, weight in zip(names, self._weights, strict=True) if possible_topics(name)) / sum(self._weights)
        partners = [name for name, weight in zip(names, self._weights, strict=True) if weight > 0]
        for attempt in range(_ENDLESS_TRIES):
            if attempt % 40 == 0:
                first = chooser.choices(names, self._weights)[0]
                variant = draw_variant(chooser, first, asking)
            recipe = draw_recipe(chooser.getrandbits(40), variant, first, partners, self._paraphrased)
            try:
                instance = realise(recipe, f"endless/{self.split}/{seed}", "endless")
            except Taken:
                continue
            # Requests of one talk may be at odds with each other.
            if instance.minefields and (len(instance.requests) == 1 or solved(instance)):
                return instance
        raise ConfigurationError(f"no scenario can be drawn from {', '.join(names)}; give more families")

    def _talk(self, seed: int, name: str) -> Instance:
        chooser = Random(seed)
        for _ in range(_LONG_TRIES):
            draw = Draw(chooser.getrandbits(40))
            order = chooser.sample(self.families, len(self.families))
            requests: list[Request] = []
            calls = 0
            for family in order:
                if len(requests) == _LONG_REQUESTS[1] or (calls >= _LONG_CALLS[0] and len(requests) >= _LONG_REQUESTS[0]):
                    break
                try:
                    request = _request(draw, family, self._paraphrased)
                except Taken:
                    continue
                requests.append(request)
                calls += sum(not isinstance(turn, str) for turn in request.plan)
            if _LONG_CALLS[0] <= calls <= _LONG_CALLS[1] and len(requests) >= _LONG_REQUESTS[0]:
                return _instance(draw, tuple(requests), name, f"talk-{len(requests)}", "phone-long")
        raise ConfigurationError(
            f"no talk of {_LONG_REQUESTS[0]} to {_LONG_REQUESTS[1]} requests and {_LONG_CALLS[0]} or more calls can be drawn from "
            f"{', '.join(family.name for family in self.families)}; give more families, or ones with more calls"
        )


def _families(suite: str, split: str) -> tuple[Mapping[str, Family], tuple[str, ...]]:
    """All families of a suite by name, and the names of a split's own."""
    if suite in PHONE_SUITES:
        return FAMILIES, HELD_OUT if split == "held_out" else TRAINED
    from dynsteer_gym.envs.sandbox import scenarios
    from dynsteer_gym.envs.sandbox.recipes import family_split

    every = scenarios.FAMILIES
    part = "train" if split in PHONE_SPLITS else split
    return every, tuple(name for name in every if part in (family_split(name), "all"))


@lru_cache(maxsize=1)
def _manifest() -> dict[str, Any]:
    from pathlib import Path

    return json.loads(Path(__file__).with_name("dynsteer-509.json").read_text())


def _primary(recipe: Mapping[str, Any]) -> str:
    """The family that a scenario counts for."""
    return recipe["families"][-1 if recipe.get("missing") else 0]


@lru_cache(maxsize=1)
def _by_task_id() -> dict[str, str]:
    return {_task_id("dynsteer-509", name): name for name in _manifest()["scenarios"]}


def fixed_names(split: str = "all", families: Sequence[str] | None = None) -> tuple[str, ...]:
    """Names of the scenarios of ``dynsteer-509``.

    Args:
        split: ``train``, ``validation``, ``test`` or ``all``.
        families: Only those that count for one of these families.
    """
    from dynsteer_gym.envs.sandbox.recipes import family_split

    return tuple(
        name
        for name, recipe in _manifest()["scenarios"].items()
        if split in (family_split(_primary(recipe)), "all") and (families is None or _primary(recipe) in families)
    )


@lru_cache(maxsize=509)
def fixed_instance(name: str) -> Instance:
    """A scenario of ``dynsteer-509``, made when it is first asked for.

    Raises:
        KeyError: There is none of that name.
    """
    from dynsteer_gym.envs.sandbox.recipes import realise, recipe_of

    return realise(recipe_of(_manifest()["scenarios"][name]), name, "dynsteer-509")


def closed_suite(suite: str, split: str = "all") -> tuple[Instance, ...]:
    """All scenarios of a closed suite.

    Args:
        suite: ``phone-fixed`` or ``dynsteer-509``.
        split: Split of ``dynsteer-509``.

    Raises:
        ConfigurationError: The suite is not closed, or has no such split.
    """
    if suite == "phone-fixed":
        return tuple(named_instance(name) for name in scenario_names())
    if suite != "dynsteer-509":
        raise ConfigurationError(f"the closed suites are phone-fixed and dynsteer-509; got {suite!r}")
    return tuple(fixed_instance(name) for name in Sampler(suite, split).names)


def _task_id(suite: str, name: str) -> str:
    return blake2b(f"{suite}:{name}".encode(), digest_size=8).hexdigest()


def _is_number(text: str) -> bool:
    """Whether a text is a plain number: "²" is a digit to Python, and no number."""
    return text.isascii() and text.isdigit()


def _near(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, list(known), n=3)
    return f"; near: {', '.join(near)}" if near else ""


def scenario_names() -> tuple[str, ...]:
    """The fixed scenarios by name."""
    return tuple(f"{name}/{number}" for name in FAMILIES for number in range(_FIXED_EACH))


def named_instance(name: str) -> Instance:
    """The scenario called ``family/number``.

    Raises:
        ConfigurationError: There is none; near matches are listed.
    """
    head, _, tail = name.partition("/")
    family = FAMILIES.get(head)
    if family is None or not _is_number(tail):
        near = difflib.get_close_matches(name, scenario_names(), n=3) or [f"{item}/0" for item in list(FAMILIES)[:3]]
        raise ConfigurationError(f"no scenario is called {name!r}; near: {', '.join(near)} (family/number)")
    return _single(family, int(tail) * 8 + 7, name, "phone-fixed", False)


def _single(family: Family, seed: int, name: str, suite: str, paraphrased: bool) -> Instance:
    draw = Draw(seed)
    return _instance(draw, (_request(draw, family, paraphrased),), name, family.name, suite)


def _request(draw: Draw, family: Family, paraphrased: bool) -> Request:
    piece = family.build(draw)
    known = family.templates[:-_KEPT_TEMPLATES]
    template = draw.pick(family.templates[-_KEPT_TEMPLATES:] if paraphrased else known)
    slots = {key: f'"{value}"' if key in ("title", "text") else value for key, value in piece.slots.items()}
    return Request(
        text=template.format(**slots),
        goal=piece.goal,
        facts=piece.facts,
        wants_answer=piece.wants_answer,
        plan=piece.plan,
        routes=piece.routes,
        family=family.name,
        references=references(piece.plan),
    )


def _instance(draw: Draw, requests: tuple[Request, ...], name: str, family: str, suite: str) -> Instance:
    known, every = _catalogues()
    own = every if any(request.family == "move_event" for request in requests) else known
    state = draw.finish()
    return Instance(
        task_id=_task_id(suite, name),
        name=name,
        family=family,
        state=state,
        requests=requests,
        tools=own[draw.below(8)],
        max_turns=_TURNS[suite],
        voice=draw.below(12),
    )


def without_hidden(instance: Instance) -> Instance:
    """The same public scenario with every hidden part replaced, for the test that nothing public depends on one."""
    from dynsteer_gym.envs.sandbox.goals import Goal

    bare = tuple(
        replace(request, goal=Goal(tells=("\0",)), plan=(), routes=(), family="?", references=()) for request in instance.requests
    )
    return replace(instance, name="?", family="?", requests=bare)
