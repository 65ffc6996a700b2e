"""BFCL's multi-turn tasks: 800 talks with scripted users, deterministic tools, and its own checks as native score.

Needs the wheel ``bfcl-eval`` without its pins: ``pip install --no-deps bfcl-eval mpmath``. Nothing of it is copied here.
Source: Berkeley Function Calling Leaderboard, multi-turn categories.
"""

from __future__ import annotations

import ast
import copy
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any, Self

from dynsteer_gym.envs.function_tools import ToolError
from dynsteer_gym.envs.scripted import Reply, ScriptedWorld, within
from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.events import ErrorKind, StateDelta
from dynsteer_gym.task import TaskView, ToolSpec

__all__ = ["CATEGORIES", "BfclWorld", "ground_truth", "task_names"]

CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
"""Categories of 200 tasks each: plain, a function that appears in the middle, a parameter that the user leaves out, long returns."""
_STEPS = 21
_NEW_TOOLS = "I have updated some more functions you can choose from. What about now?"
_KINDS = {"dict": "object", "float": "number", "tuple": "array", "any": None}
_STATELESS = ("MathAPI",)
_NOW = datetime(2026, 1, 5, 12)


class _Clock(datetime):
    """``datetime`` with a fixed present."""

    @classmethod
    def now(cls, tz: Any = None) -> Self:
        return cls(_NOW.year, _NOW.month, _NOW.day, _NOW.hour, tzinfo=tz)

    @classmethod
    def today(cls) -> Self:
        return cls.now()


def _root() -> Path:
    found = find_spec("bfcl_eval")
    if found is None or not found.submodule_search_locations:
        raise ConfigurationError("backend bfcl needs the package bfcl-eval: pip install --no-deps bfcl-eval mpmath")
    return Path(next(iter(found.submodule_search_locations)))


@lru_cache(maxsize=1)
def _tasks() -> dict[str, tuple[dict[str, Any], list[list[str]]]]:
    """Tasks and their ground truth by id."""
    found = {}
    data = _root() / "data"
    try:
        for category in CATEGORIES:
            name = next(path.name for path in sorted(data.glob(f"BFCL_v*_multi_turn_{category}.json")))
            truths = {entry["id"]: entry["ground_truth"] for entry in _rows(data / "possible_answer" / name)}
            for entry in _rows(data / name):
                found[entry["id"]] = (entry, truths[entry["id"]])
    except (OSError, StopIteration, KeyError, ValueError) as error:
        raise ConfigurationError(f"the installed bfcl-eval holds other data than expected: {type(error).__name__}: {error}") from error
    return found


def _rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def task_names(category: str = "all") -> tuple[str, ...]:
    """Ids of the tasks: hidden side.

    Args:
        category: One of :data:`CATEGORIES`, or ``all``.

    Raises:
        ConfigurationError: There is no such category, or the package is missing.
    """
    if category not in (*CATEGORIES, "all"):
        raise ConfigurationError(f"category is one of {', '.join(CATEGORIES)} or all; got {category!r}")
    return tuple(name for name in _tasks() if category == "all" or name.rsplit("_", 1)[0].endswith(category))


@lru_cache(maxsize=1)
def _backends() -> Any:
    return import_module("bfcl_eval.constants.executable_backend_config")


@lru_cache(maxsize=32)
def _class(name: str) -> Any:
    module = import_module(_backends().CLASS_FILE_PATH_MAPPING[name])
    if getattr(module, "datetime", None) is datetime:
        module.datetime = _Clock  # type: ignore[attr-defined]
    return getattr(module, name)


@lru_cache(maxsize=32)
def _specs(name: str) -> tuple[ToolSpec, ...]:
    path = _root() / "data" / "multi_turn_func_doc" / _backends().MULTI_TURN_FUNC_DOC_FILE_MAPPING[name]
    return tuple(
        ToolSpec(
            entry["name"],
            entry["description"].rpartition("Tool description: ")[2],
            {"additionalProperties": False, **_schema(entry["parameters"])},
            _schema(entry["response"]) if entry.get("response") else None,
        )
        for entry in _rows(path)
    )


def _schema(node: Any) -> Any:
    """BFCL's schemas use Python's names of types."""
    if isinstance(node, Mapping):
        found = {key: _schema(value) for key, value in node.items()}
        kind = node.get("type")
        if isinstance(kind, str) and kind in _KINDS:
            if _KINDS[kind] is None:
                del found["type"]
            else:
                found["type"] = _KINDS[kind]
        return found
    return [_schema(item) for item in node] if isinstance(node, list) else node


def _instances(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The task's simulators in their initial state."""
    found = {}
    for name in entry["involved_classes"]:
        instance = _class(name)()
        if name not in _STATELESS:
            start = copy.deepcopy(entry["initial_config"].get(name, {}))
            instance._load_scenario(start, long_context="long_context" in entry["id"])
        found[name] = instance
    return found


def _method(instances: Mapping[str, Any], tool: str) -> Any:
    for instance in instances.values():
        method = getattr(instance, tool, None) if not tool.startswith("_") else None
        if inspect.ismethod(method):
            return method
    raise ToolError(ErrorKind.UNKNOWN_TOOL, f"No tool is called {tool!r}.")


def _written(value: Any) -> str:
    """A return as BFCL's checker compares it."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        try:
            return json.dumps(value)
        except (TypeError, ValueError):
            return str(value)
    return str(value)


def ground_truth(name: str) -> list[list[tuple[str, dict[str, Any]]]]:
    """The calls of a task's ground truth by user turn: hidden side. Nothing is evaluated but literals.

    Args:
        name: Id of the task.
    """
    entry, truth = _tasks()[name]
    instances = _instances(entry)
    return [[_parsed(text, instances) for text in turn] for turn in truth]


def _parsed(text: str, instances: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    node = ast.parse(text.strip(), mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(f"no call: {text[:80]}")
    given = [ast.literal_eval(argument) for argument in node.args]
    named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg is not None}
    bound = inspect.signature(_method(instances, node.func.id)).bind_partial(*given, **named)
    return node.func.id, dict(bound.arguments)


class BfclWorld(ScriptedWorld):
    """BFCL's multi-turn tasks; a message of the agent ends its turn, and the user brings the next request.

    The native score is 1.0 where BFCL's own checks hold after every turn (same state as the ground truth's, and its
    responses among the agent's), else 0.0.
    """

    def __init__(self, *, category: str = "all", call_timeout: float | None = None, max_turns: int | None = None, **settings: Any) -> None:
        """Makes the world.

        Args:
            category: One of :data:`CATEGORIES`, or ``all``.
            call_timeout: Seconds that a call may take, or ``None``.
            max_turns: The most assistant turns, or ``None`` for BFCL's own limit: 20 steps for each user turn, and the message that ends it.
            **settings: ``success_at``, ``render_mode``.

        Raises:
            ConfigurationError: The package is missing, or there is no such category.
        """
        super().__init__(max_turns=max_turns or _STEPS, **settings)
        self._names = task_names(category)
        self._limit = max_turns
        self._timeout = call_timeout
        self._name = ""
        self._instances: dict[str, Any] = {}
        self._truth: dict[str, Any] = {}
        self._place = 0
        self._called: list[str] = []
        self._all: list[str] = []
        self._valid = True

    @property
    def name(self) -> str:
        """Id of the running task: hidden side."""
        return self._name

    def begin(self, seed: int, options: Mapping[str, Any]) -> TaskView:
        """Starts the task of a seed, or the one of ``options["scenario"]``."""
        unknown = sorted(str(key) for key in options if key != "scenario")
        if unknown:
            raise ConfigurationError(f"the only reset option is 'scenario'; got {unknown[0]!r}")
        name = options.get("scenario") or Random(seed).choice(self._names)
        if name not in _tasks():
            raise ConfigurationError(f"no task is called {name!r}; tasks are called multi_turn_base_0 and such")
        entry, truth = _tasks()[name]
        self._name = name
        self._instances, self._truth = _instances(entry), _instances(entry)
        self._place = 0
        self._called, self._all = [], []
        self._valid = True
        self.max_turns = self._limit or _STEPS * len(truth)
        return TaskView(
            task_id=blake2b(f"bfcl:{name}".encode(), digest_size=8).hexdigest(),
            request=self._said(0),
            tools=self._offered(0),
            max_requests=sum(bool(turn) for turn in entry["question"]),
        )

    def _said(self, turn: int) -> str:
        return "\n".join(message["content"] for message in _tasks()[self._name][0]["question"][turn])

    def _offered(self, turn: int) -> tuple[ToolSpec, ...]:
        """The tools on offer in a turn: those that appear later are left out until then."""
        entry, _ = _tasks()[self._name]
        hidden = set(entry.get("excluded_function", ()))
        for when, names in (entry.get("missed_function") or {}).items():
            if turn < int(when):
                hidden |= set(names)
        return tuple(spec for name in entry["involved_classes"] for spec in _specs(name) if spec.name not in hidden)

    def execute(self, tool: str, arguments: dict[str, Any]) -> tuple[Any, tuple[StateDelta, ...] | None]:
        """Calls a simulator's method."""
        spec = self.task_view.tool(tool)
        assert spec is not None
        missing = [key for key in spec.required if key not in arguments]
        odd = [key for key in arguments if key not in spec.properties]
        if missing or odd:
            what = f"{missing[0]!r} is missing" if missing else f"there is no argument {odd[0]!r}"
            raise ToolError(ErrorKind.SCHEMA, f"{tool}: {what}. It takes {', '.join(spec.properties) or 'no arguments'}.")
        method = _method(self._instances, tool)
        try:
            value = within(self._timeout, lambda: method(**copy.deepcopy(arguments)))
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            self._called.append(f"Error during execution: {error}")
            raise ToolError(ErrorKind.RUNTIME, f"{type(error).__name__}: {error}") from error
        self._called.append(_written(value))
        if isinstance(value, dict) and set(value) == {"error"}:
            raise ToolError(ErrorKind.RUNTIME, str(value["error"]))
        return _plain(value), None

    def respond(self, message: str) -> Reply:
        """Ends the agent's turn: it is checked, and the user brings what comes next."""
        self._check()
        _, truth = _tasks()[self._name]
        self._place += 1
        if self._place >= len(truth):
            return Reply(ends=True)
        text = self._said(self._place)
        tools = self._offered(self._place)
        view = None if tools == self.task_view.tools else replace(self.task_view, tools=tools)
        return Reply(text or _NEW_TOOLS, new_request=bool(text), view=view)

    def _check(self) -> None:
        """BFCL's checks after a turn: state, then responses."""
        expected = []
        for tool, arguments in _truth_of(self._name)[self._place]:
            try:
                expected.append(_written(_method(self._truth, tool)(**copy.deepcopy(arguments))))
            except Exception as error:
                expected.append(f"Error during execution: {error}")
        called, self._called = self._called, []
        self._all.extend(called)
        if not expected:
            return
        self._valid = self._valid and bool(called) and self._same_state() and _holds_all(self._all, expected)

    def _same_state(self) -> bool:
        for name, truth in self._truth.items():
            own = vars(self._instances[name])
            if any(own.get(key) != value for key, value in vars(truth).items() if not key.startswith("_")):
                return False
        return True

    def native_score(self) -> float:
        """1.0 where the checks held after every turn, and all turns were played."""
        return float(self._valid and self._place >= len(_tasks()[self._name][1]))

    def copied(self) -> dict[str, Any]:
        """The simulators, deep-copied, and what they returned."""
        instances, truth = copy.deepcopy((self._instances, self._truth))
        return {"_instances": instances, "_truth": truth, "_called": list(self._called), "_all": list(self._all)}


@lru_cache(maxsize=1024)
def _truth_of(name: str) -> list[list[tuple[str, dict[str, Any]]]]:
    return ground_truth(name)


def _holds_all(said: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether all wanted responses are among those given, each as often as it is wanted."""
    left = list(said)
    for item in wanted:
        if item not in left:
            return False
        left.remove(item)
    return True


def _plain(value: Any) -> Any:
    """JSON data of a return; objects become their text."""
    return json.loads(json.dumps(value, default=str))
