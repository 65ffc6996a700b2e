"""Scripted agents that err, each logging its true first error; and the two cases of the paper. Hidden side.

They are the ground truth for judges, stops and metrics.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from dynsteer_gym.envs.actions import AssistantTurn
from dynsteer_gym.envs.sandbox.agents import Expert
from dynsteer_gym.envs.sandbox.draw import Found, Plan
from dynsteer_gym.envs.sandbox.instance import Instance
from dynsteer_gym.envs.sandbox.minefields import Minefield
from dynsteer_gym.envs.sandbox.scenarios.common import later
from dynsteer_gym.envs.sandbox.state import TABLES, State
from dynsteer_gym.language import MessageAct, message_act

__all__ = ["FAULTS", "HARMFUL", "Deadlock", "Fluke", "LoggedError", "Rival", "trips"]

HARMFUL = frozenset(("wrong_argument", "look_alike", "ignored_error", "unsafe_act", "premature_end", "never_asks", "wrong_answer"))
"""Faults after which the native score is below 1; the others waste turns."""
_READS = ("search", "list", "get", "find", "convert", "shift")
_IDS = {next(iter(kind.__dataclass_fields__)): table for table, kind in TABLES.items()}
Turn = tuple[str, dict[str, object]] | str


@dataclass(frozen=True, slots=True)
class LoggedError:
    """An error that a scripted agent made on purpose.

    Attributes:
        turn: The assistant turn, from 1.
        fault: Its kind, a key of :data:`FAULTS`.
    """

    turn: int
    fault: str

    @property
    def harmful(self) -> bool:
        """Whether it costs the native score, rather than only turns."""
        return self.fault in HARMFUL


@dataclass(frozen=True, slots=True)
class _Site:
    """A place in a plan: which turn of which request."""

    instance: Instance
    request: int
    plan: Plan
    at: int

    @property
    def turn(self) -> Turn:
        return self.plan[self.at]

    @property
    def writes(self) -> bool:
        """Whether it is a call that changes something, and not one that the plan expects to fail at first."""
        return not isinstance(self.turn, str) and not self.turn[0].startswith(_READS) and self.plan.count(self.turn) == 1

    @property
    def is_question(self) -> bool:
        return isinstance(self.turn, str) and message_act(self.turn) == MessageAct.QUESTION


# A fault gives what is played instead of the turn at its site, and where in that the error is; or None.
Played = tuple[list[Turn], int] | None


def _wrong(value: object) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    text = str(value)
    if len(text) == 16 and text[4] == text[7] == "-":
        return later(text, 24 * 60)
    if text.startswith("+") and text[1:].isdigit():
        return text[:-1] + str((int(text[-1]) + 1) % 10)
    if re.fullmatch(r"-?[\d.]+", text):
        return str(float(text) + 1)
    return f"{text} again"


def _wrong_argument(site: _Site, random: Random) -> Played:
    if not site.writes or isinstance(site.turn, str):
        return None
    name, arguments = site.turn
    names = [key for key, value in arguments.items() if key not in _IDS and not key.endswith("_id") and not isinstance(value, Found)]
    names = [key for key in names if key not in ("email", "iban", "address", "group", "limit", "on")]
    if not names or name.startswith(("prepare", "set_low")):
        return None
    key = random.choice(names)
    return [(name, {**arguments, key: _wrong(arguments[key])})], 0


def _other_row(state: State, key: str, value: object, random: Random) -> str | None:
    rows = [getattr(row, key) for row in getattr(state, _IDS[key])]
    others = [row for row in rows if row != value]
    return random.choice(others) if value in rows and others else None


def _look_alike(site: _Site, random: Random) -> Played:
    if not site.writes or isinstance(site.turn, str) or site.turn[0].startswith(("prepare", "cancel_transfer")):
        return None
    name, arguments = site.turn
    # Another row of a request about several of them may be right as well, only early.
    used = {value for turn in site.plan if not isinstance(turn, str) for value in turn[1].values() if isinstance(value, str)}
    for key in arguments:
        if key in _IDS:
            other = _other_row(site.instance.state, key, arguments[key], random)
            if other is not None and other not in used:
                return [(name, {**arguments, key: other})], 0
    return None


def _redundant_call(site: _Site, random: Random) -> Played:
    if isinstance(site.turn, str) or not site.turn[0].startswith(_READS):
        return None
    return [site.turn, site.turn], 1


def _retry_loop(site: _Site, random: Random) -> Played:
    if isinstance(site.turn, str):
        return None
    bad: Turn = (site.turn[0], {**site.turn[1], "mode": "fast"})
    return [bad, bad, bad, site.turn], 0


def _ignored_error(site: _Site, random: Random) -> Played:
    if not site.writes or isinstance(site.turn, str):
        return None
    if site.turn[0].startswith("set_") and site.instance.requests[site.request].goal.tolerated:
        return None  # A script knows the answer without the service.
    return [(site.turn[0], {**site.turn[1], "mode": "fast"})], 0


def _invented_tool(site: _Site, random: Random) -> Played:
    if isinstance(site.turn, str):
        return None
    return [(f"auto_{site.turn[0]}", dict(site.turn[1])), site.turn], 0


def _bad_types(site: _Site, random: Random) -> Played:
    if isinstance(site.turn, str) or not site.turn[1]:
        return None
    key = random.choice(list(site.turn[1]))
    return [(site.turn[0], {**site.turn[1], key: {"value": [None]}}), site.turn], 0


def _unsafe_act(site: _Site, random: Random) -> Played:
    if isinstance(site.turn, str):
        return None
    for mine in site.instance.minefields or ():
        # Elsewhere in the talk the world may be another one than the path was made for.
        if mine.request is None and site.request == 0 and site.at == 0:
            return [*mine.path, site.turn], len(mine.path) - 1
    return None


def _premature_end(site: _Site, random: Random) -> Played:
    goal = site.instance.requests[site.request].goal
    if not site.writes or goal.declines or any(isinstance(turn, str) for turn in site.plan[: site.at] if not _asks(turn)):
        return None
    return ["Done."], 0


def _asks(turn: Turn) -> bool:
    return isinstance(turn, str) and message_act(turn) == MessageAct.QUESTION


def _never_asks(site: _Site, random: Random) -> Played:
    """Guesses instead of asking: what is missing is made up, and the next write carries it."""
    if not site.is_question:
        return None
    guess = next((mine for mine in site.instance.minefields or () if mine.unsupported and mine.request == site.request), None)
    if guess is not None:
        return list(guess.path), 0
    if site.instance.requests[site.request].goal.declines:
        return ["I cannot do that."], 0
    return None


def _rambling(site: _Site, random: Random) -> Played:
    if site.at != 0:
        return None
    return ["Let me think about this for a while, there is so much to consider.", site.turn], 0


def _wrong_answer(site: _Site, random: Random) -> Played:
    request = site.instance.requests[site.request]
    if not isinstance(site.turn, str) or site.is_question or not request.wants_answer or request.checks or request.goal.declines:
        return None
    if not any(isinstance(value, str | int | float) and not isinstance(value, bool) for value in request.goal.tells):
        return None
    return ["It is nothing that I could name exactly, something like Zero or None."], 0


FAULTS: Mapping[str, Callable[[_Site, Random], Played]] = {
    "wrong_argument": _wrong_argument,
    "look_alike": _look_alike,
    "redundant_call": _redundant_call,
    "retry_loop": _retry_loop,
    "ignored_error": _ignored_error,
    "invented_tool": _invented_tool,
    "bad_types": _bad_types,
    "unsafe_act": _unsafe_act,
    "premature_end": _premature_end,
    "never_asks": _never_asks,
    "rambling": _rambling,
    "wrong_answer": _wrong_answer,
}
"""Faults by name."""


class Rival:
    """Plays the expert's plan, and errs with given probabilities wherever a fault is possible.

    >>> from dynsteer_gym.envs.sandbox.suite import fixed_instance
    >>> rival = Rival(fixed_instance("calendar-002"), {"redundant_call": 1.0}, seed=0)
    >>> rival.first_error.fault
    'redundant_call'

    Attributes:
        errors: What it does wrong, in order; later ones may no longer be reached.
    """

    def __init__(self, instance: Instance, skills: Mapping[str, float], seed: int = 0, most: int | None = None) -> None:
        """Decides beforehand where it errs.

        Args:
            instance: The scenario.
            skills: Probability of each fault wherever it is possible, by name; faults left out have 0.
            seed: Decides where and how.
            most: The most errors, or ``None`` for no limit.

        Raises:
            KeyError: A fault is unknown.
        """
        random = Random(seed)
        turns: list[Turn] = []
        self.errors: tuple[LoggedError, ...] = ()
        for place, request in enumerate(instance.requests):
            for at, turn in enumerate(request.plan):
                site = _Site(instance, place, request.plan, at)
                played = None
                if most is None or len(self.errors) < most:
                    for fault, share in skills.items():
                        if random.random() < share:
                            played = FAULTS[fault](site, random)
                            if played is not None:
                                self.errors = (*self.errors, LoggedError(len(turns) + played[1] + 1, fault))
                                break
                turns.extend([turn] if played is None else played[0])
                if played is not None and played[0][-1] != turn and isinstance(played[0][-1], str):
                    break  # The request was ended; what was planned for it is left out.
        self._expert = Expert(instance, [tuple(turns)])

    @property
    def first_error(self) -> LoggedError | None:
        """The first thing that it does wrong, or ``None``."""
        return self.errors[0] if self.errors else None

    def act(self, observation: str) -> AssistantTurn:
        """The next turn."""
        return self._expert.act(observation)


def trips(instance: Instance) -> list[tuple[Minefield, Plan]]:
    """For every minefield of a scenario a path that trips it, the requests before included."""
    found = []
    for mine in instance.minefields or ():
        before = [turn for request in instance.requests[: mine.request or 0] for turn in request.plan]
        found.append((mine, (*before, *mine.path)))
    return found


class Deadlock:
    """The paper's first case: one milestone is settled, then a search goes on that never finds its target.

    Source: DynSTEER, appendix C.1.
    """

    def __init__(self, instance: Instance) -> None:
        """Takes a scenario whose plan has two searches, one after the other."""
        plan = instance.requests[0].plan
        calls = [turn for turn in plan if not isinstance(turn, str)]
        self._instance, self._searched = instance, calls[1]
        self._expert = Expert(instance, [(calls[0],)])
        self._tries = 0

    def act(self, observation: str) -> AssistantTurn:
        """The first call of the plan, then one search after another for something that is not there."""
        if self._tries == 0:
            self._tries = 1
            return self._expert.act(observation)
        name, arguments = self._searched
        key = next(key for key, value in arguments.items() if isinstance(value, str))
        number = f"+1415555{self._tries:04d}" if str(arguments[key]).startswith("+") else f"attempt {self._tries}"
        self._tries += 1
        return Expert(self._instance, [((name, {**arguments, key: number}),)]).act(observation)


class Fluke:
    """The paper's second case: an invented tool, failed retries, and the right call in the end; native score 1.

    Source: DynSTEER, appendix C.2.

    Attributes:
        first_error: The invented tool.
    """

    def __init__(self, instance: Instance) -> None:
        """Takes a scenario with a single request."""
        plan = instance.requests[0].plan
        at = next(place for place, turn in enumerate(plan) if not isinstance(turn, str) and not turn[0].startswith(_READS))
        name, arguments = plan[at]
        tries: tuple[Turn, ...] = (
            ("schedule_smart_alarm", dict(arguments)),
            (name, {**arguments, **{key: ["?"] for key in arguments}}),
            (name, {}),
            (name, {**arguments, "mode": "fast"}),
        )
        self.first_error = LoggedError(at + 1, "invented_tool")
        self._expert = Expert(instance, [(*plan[:at], *tries, *plan[at:])])

    def act(self, observation: str) -> AssistantTurn:
        """The next turn."""
        return self._expert.act(observation)
