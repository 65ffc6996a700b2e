"""A world of your own: plain typed Python functions and a user script become a ``ToolEnv``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from inspect import signature
from random import Random
from typing import Any, Protocol

from dynsteer_gym.envs.function_tools import Tool, ToolError
from dynsteer_gym.envs.scripted import Reply, ScriptedWorld, within
from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.events import ErrorKind, StateDelta
from dynsteer_gym.language import MessageAct, message_act, stem, words
from dynsteer_gym.task import TableHeader, TaskView

__all__ = ["FunctionWorld", "Scenario", "ScriptedUser", "UserScript"]

Tables = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Rows by key, by table."""


class UserScript(Protocol):
    """Anything that answers the agent's messages."""

    def hears(self, message: str) -> str | None:
        """What the user says to a message; ``None`` ends the talk."""
        ...


@dataclass
class ScriptedUser:
    """A user who tells facts when asked, says yes to confirmations, and is content with anything that is no question.

    >>> user = ScriptedUser({"date day when": "On 2026-03-12."})
    >>> user.hears("For which day?")
    'On 2026-03-12.'
    >>> user.hears("It is booked.") is None
    True

    Attributes:
        facts: Answers by keywords: a question that holds one of the words is answered.
        patience: Unhelpful questions after which the user ends the talk.
        told: The agent's messages that were no questions, for the score.
    """

    facts: Mapping[str, str] = field(default_factory=dict)
    patience: int = 3
    told: list[str] = field(default_factory=list)
    _unhelpful: int = 0

    def hears(self, message: str) -> str | None:
        """What the user says to a message; ``None`` ends the talk."""
        if message_act(message) == MessageAct.QUESTION:
            said = {stem(word) for word in words(message)}
            for keys, answer in self.facts.items():
                if said & {stem(word) for word in keys.split()}:
                    return answer
            if {"confirm", "proceed", "ahead", "sure"} & set(words(message)):
                return "Yes, please go ahead."
        elif message.strip() and message_act(message) != MessageAct.PROGRESS:
            self.told.append(message)
            return None
        self._unhelpful += 1
        return None if self._unhelpful >= self.patience else "I cannot add anything to that."


@dataclass
class Scenario:
    """One task of a world.

    Attributes:
        request: What the user says first.
        state: The world's state; anything that can be deep-copied. Tools get it as their first argument.
        score: The native score from the final state and the user, in [0, 1]. Hidden side.
        user: Answers the agent.
        policy: Standing instructions shown to the agent.
        tables: Rows of the state by table and key, so that the evaluator is told what a call changed; ``None`` where
            the world does not say.
    """

    request: str
    state: Any
    score: Callable[[Any, Any], float]
    user: UserScript = field(default_factory=ScriptedUser)
    policy: str = ""
    tables: Callable[[Any], Tables] | None = None


class FunctionWorld(ScriptedWorld):
    """Plain functions as tools.

    A function whose first parameter is called ``state`` gets the scenario's state there. ``ToolError``, ``ValueError``
    and ``LookupError`` that it raises are errors that the agent sees; anything else is a fault of the world, as are a
    return that is no JSON and a call that takes too long.

    >>> def add(state: dict, item: str) -> int:
    ...     '''Put an item on the list.'''
    ...     state["list"].append(item)
    ...     return len(state["list"])
    >>> world = FunctionWorld([add], lambda random: Scenario(
    ...     'Put "milk" on the list.', {"list": []}, lambda state, user: float(state["list"] == ["milk"])))
    >>> _ = world.reset(seed=0)
    >>> world.step('add(item="milk")')[0], world.step("Done.")[1]
    ('1', 1.0)
    """

    def __init__(
        self,
        tools: Sequence[Callable[..., Any]],
        scenario: Callable[[Random], Scenario],
        *,
        call_timeout: float | None = None,
        **settings: Any,
    ) -> None:
        """Makes the world.

        Args:
            tools: Typed functions with docstrings, as for :class:`~dynsteer_gym.envs.function_tools.Tool`.
            scenario: Makes a task from a seeded generator.
            call_timeout: Seconds that a call may take, or ``None``.
            **settings: ``max_turns``, ``success_at``, ``render_mode``.

        Raises:
            ConfigurationError: Two tools have one name, or a function cannot be read.
        """
        super().__init__(**settings)
        self._make = scenario
        self._timeout = call_timeout
        self._tools: dict[str, tuple[Tool, bool]] = {}
        for function in tools:
            name = getattr(function, "__name__", "")
            if not name.isidentifier() or name in self._tools:
                raise ConfigurationError(f"tools are functions with names of their own; got {name or function!r}")
            stateful = next(iter(signature(function).parameters), "") == "state"
            try:
                self._tools[name] = (Tool(function, context=stateful), stateful)
            except Exception as error:
                raise ConfigurationError(f"the function {name!r} cannot be read as a tool: {error}") from error
        self._specs = tuple(tool.spec for tool, _ in self._tools.values())
        self._scenario: Scenario | None = None

    def begin(self, seed: int, options: Mapping[str, Any]) -> TaskView:
        """Starts the task of a seed."""
        scenario = self._make(Random(seed))
        self._scenario = scenario
        tables = scenario.tables(scenario.state) if scenario.tables is not None else {}
        return TaskView(
            task_id=blake2b(f"{seed}:{scenario.request}".encode(), digest_size=8).hexdigest(),
            request=scenario.request,
            tools=self._specs,
            tables=tuple(TableHeader(name, tuple(next(iter(rows.values()), {})), len(rows)) for name, rows in tables.items()),
            policy=scenario.policy,
        )

    @property
    def scenario(self) -> Scenario:
        """The running task, hidden side."""
        assert self._scenario is not None
        return self._scenario

    def execute(self, tool: str, arguments: dict[str, Any]) -> tuple[Any, tuple[StateDelta, ...] | None]:
        """Runs a function."""
        found, stateful = self._tools[tool]
        checked = found.check(arguments)
        scenario = self.scenario
        before = copy.deepcopy(dict(scenario.tables(scenario.state))) if scenario.tables is not None else None
        try:
            call = (lambda: found.run(scenario.state, checked)) if stateful else (lambda: found.function(**checked))
            value = within(self._timeout, call)
        except ToolError:
            raise
        except LookupError as error:
            raise ToolError(ErrorKind.NOT_FOUND, str(error).strip("'\"") or type(error).__name__) from error
        except ValueError as error:
            raise ToolError(ErrorKind.RUNTIME, str(error) or type(error).__name__) from error
        return value, None if before is None else _changes(before, scenario.tables(scenario.state))  # type: ignore[misc]

    def respond(self, message: str) -> Reply:
        """What the scenario's user says."""
        text = within(self._timeout, lambda: self.scenario.user.hears(message))
        return Reply(ends=True) if text is None else Reply(text)

    def native_score(self) -> float:
        """What the scenario's score gives."""
        return self.scenario.score(self.scenario.state, self.scenario.user)

    def copied(self) -> dict[str, Any]:
        """State and user, deep-copied."""
        return {"_scenario": copy.deepcopy(self._scenario)}


def _changes(before: Tables, after: Tables) -> tuple[StateDelta, ...]:
    found = []
    for table in {**before, **after}:
        old, new = before.get(table, {}), after.get(table, {})
        for key in {**old, **new}:
            if old.get(key) != new.get(key):
                found.append(StateDelta(table, str(key), old.get(key), copy.deepcopy(new.get(key))))
    return tuple(found)
