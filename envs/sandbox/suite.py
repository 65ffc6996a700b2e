"""Suites and splits: which scenarios there are, and how one is drawn from a seed. Hidden side."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from random import Random

from dynsteer_gym.envs.sandbox.draw import Draw, Family, Plan, Taken
from dynsteer_gym.envs.sandbox.families import FAMILIES, HELD_OUT
from dynsteer_gym.envs.sandbox.state import State
from dynsteer_gym.envs.sandbox.tools import PHONE, TOOLS
from dynsteer_gym.envs.sandbox.user import Request
from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.task import ToolSpec

__all__ = ["SPLITS", "SUITES", "Instance", "Sampler", "scenario_names"]

SUITES = ("endless", "endless-long", "fixed")
"""``endless``: one request by seed. ``endless-long``: talks of four to six requests. ``fixed``: a closed list."""
SPLITS = ("train", "unseen", "paraphrased", "held_out")
"""``unseen``: other seeds of the trained families. ``paraphrased``: also wordings never trained on. ``held_out``:
families never trained on."""
TRAINED = tuple(name for name in FAMILIES if name not in HELD_OUT)
_FIXED_EACH = 5
_KEPT_TEMPLATES = 2
_LONG_CALLS = (10, 25)
_LONG_REQUESTS = (4, 6)
_LONG_TRIES = 1_000
_TURNS = {"endless": 16, "fixed": 16, "endless-long": 48}


@dataclass(frozen=True, slots=True)
class Instance:
    """A scenario, hidden side included.

    Attributes:
        task_id: Opaque identifier, the only name on the public side.
        name: ``family/number``, for operators.
        family: Family, or ``talk-<requests>`` for talks with several.
        state: Initial state.
        requests: The requests of the talk in order.
        tools: Public specs of the tools on offer, in the order shown.
        max_turns: The suite's limit of assistant turns.
        voice: Which paraphrases the user speaks.
    """

    task_id: str
    name: str
    family: str
    state: State
    requests: tuple[Request, ...]
    tools: tuple[ToolSpec, ...]
    max_turns: int
    voice: int


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
    """Draws scenarios of a suite and split."""

    def __init__(
        self,
        suite: str = "endless",
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
        own = HELD_OUT if split == "held_out" else TRAINED
        chosen = own if families is None else tuple(families)
        for name in (*chosen, *(weights or ())):
            if name not in FAMILIES:
                raise ConfigurationError(f"no family is called {name!r}{_near(name, FAMILIES)}")
        if not chosen:
            raise ConfigurationError("families is empty; leave it out to sample all families of the split")
        self.suite, self.split = suite, split
        self.families = tuple(FAMILIES[name] for name in chosen)
        self._weights = [float((weights or {}).get(name, 1.0)) for name in chosen]
        if min(self._weights) < 0 or sum(self._weights) <= 0:
            raise ConfigurationError(f"weights are at least 0 and not all 0; got {dict(weights or {})}")
        self._salt = SPLITS.index(split)
        self._paraphrased = split == "paraphrased"

    def reweight(self, weights: Mapping[str, float]) -> None:
        """Changes the sampling weights of families; those left out weigh 1."""
        self._weights = [float(weights.get(family.name, 1.0)) for family in self.families]

    def draw(self, seed: int) -> Instance:
        """The scenario of a seed.

        Args:
            seed: Any non-negative integer; the scenario is a function of suite, split, families, weights and seed.
        """
        chooser = Random(seed * 8 + self._salt)
        if self.suite == "endless-long":
            return self._talk(chooser.getrandbits(40), f"talk-{self.split}/{seed}")
        family = chooser.choices(self.families, self._weights)[0]
        if self.suite == "fixed":
            return named_instance(f"{family.name}/{chooser.randrange(_FIXED_EACH)}")
        return _single(family, chooser.getrandbits(40), f"{family.name}/{self.split}-{seed}", self.suite, self._paraphrased)

    def named(self, name: str) -> Instance:
        """The scenario of a name: ``family/number``, or ``talk/number`` for a talk with several requests.

        Raises:
            ConfigurationError: There is none of that name; near matches are listed.
        """
        head, _, tail = name.partition("/")
        if head == "talk" and _is_number(tail):
            return Sampler("endless-long", self.split).draw(int(tail))
        return named_instance(name)

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
                return _instance(draw, tuple(requests), name, f"talk-{len(requests)}", "endless-long")
        raise ConfigurationError(
            f"no talk of {_LONG_REQUESTS[0]} to {_LONG_REQUESTS[1]} requests and {_LONG_CALLS[0]} or more calls can be drawn from "
            f"{', '.join(family.name for family in self.families)}; give more families, or ones with more calls"
        )


def _is_number(text: str) -> bool:
    """Whether a text is a plain number: "²" is a digit to Python, and no number."""
    return text.isascii() and text.isdigit()


def _near(name: str, known: object) -> str:
    near = difflib.get_close_matches(name, list(known), n=3)  # type: ignore[call-overload]
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
    return _single(family, int(tail) * 8 + 7, name, "fixed", False)


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
        references=_references(piece.plan),
    )


def _references(plan: Plan) -> tuple[tuple[str, dict[str, object]], ...]:
    """Hidden reference milestones: each needed call once, and what is said."""
    found: list[tuple[str, dict[str, object]]] = []
    for turn in plan:
        entry: tuple[str, dict[str, object]] = ("say", {"text": turn}) if isinstance(turn, str) else turn
        if entry in found:
            found.remove(entry)  # The first try failed on a precondition; the last one counts.
        found.append(entry)
    return tuple(found)


def _instance(draw: Draw, requests: tuple[Request, ...], name: str, family: str, suite: str) -> Instance:
    known, every = _catalogues()
    own = every if any(request.family == "move_event" for request in requests) else known
    state = draw.finish()
    return Instance(
        task_id=blake2b(f"{suite}:{name}".encode(), digest_size=8).hexdigest(),
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
