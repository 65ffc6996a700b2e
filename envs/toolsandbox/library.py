"""ToolSandbox's scenarios, built once in a process with a fixed clock: hidden side."""

from __future__ import annotations

import datetime as real_datetime
import os
import random
import sys
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from dynsteer_gym.envs.toolsandbox.shim import importable
from dynsteer_gym.errors import ConfigurationError

__all__ = ["ENVIRONMENT", "NOW", "Library", "check", "library", "local_names", "own_role", "remember", "where"]

ENVIRONMENT = "DYNSTEER_TOOLSANDBOX"
"""Environment variable that names the checkout."""
NOW = real_datetime.datetime(2024, 3, 18, 10, 30)
"""The present, when scenarios are built and when they are played."""
_WEB = frozenset(("search_stock", "search_location_around_lat_lon", "search_lat_lon", "search_weather_around_lat_lon", "convert_currency"))
_NEEDED = ("polars", "scipy", "attrs", "dill", "phonenumbers", "pint", "geopy", "holidays", "ccy", "decorator", "rapidfuzz", "rouge_score", "strenum", "tqdm", "tenacity", "requests")
_SEED = 20240318


class _Clock(real_datetime.datetime):
    """``datetime`` with a fixed present."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return cls(NOW.year, NOW.month, NOW.day, NOW.hour, NOW.minute, tzinfo=tz)

    @classmethod
    def today(cls) -> Any:
        return cls.now()


def _remembered() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "dynsteer-gym" / "toolsandbox"


def remember(checkout: Path) -> Path:
    """Writes down where the checkout is; returns the file."""
    file = _remembered()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{checkout.resolve()}\n", encoding="utf-8")
    return file


def where() -> Path:
    """The checkout: of the environment variable, or as remembered.

    Raises:
        ConfigurationError: There is none, or something is wrong with it.
    """
    named = os.environ.get(ENVIRONMENT)
    if named is None and _remembered().is_file():
        named = _remembered().read_text(encoding="utf-8").strip()
    if not named:
        raise ConfigurationError(
            "backend toolsandbox needs a checkout of apple/ToolSandbox: clone it, then run `dynsteer toolsandbox install PATH` "
            f"or set {ENVIRONMENT}"
        )
    problems = check(Path(named))
    if problems:
        raise ConfigurationError(problems[0])
    return Path(named)


def check(checkout: Path) -> list[str]:
    """What is wrong with a checkout, one sentence each; empty where all is well."""
    problems = []
    if not checkout.is_dir():
        return [f"{checkout} is no folder"]
    for name in ("tool_sandbox/scenarios/__init__.py", "tool_sandbox/common/execution_context.py", "tool_sandbox/tools/__init__.py"):
        if not (checkout / name).is_file():
            problems.append(f"{checkout} holds no {name}; give the folder of a checkout of apple/ToolSandbox")
    from importlib.util import find_spec

    lacking = [name for name in _NEEDED if find_spec(name) is None]
    if lacking:
        problems.append(f'packages are missing: {", ".join(lacking)}; pip install "dynsteer-gym[toolsandbox]"')
    elif not problems:
        try:
            with importable(checkout):
                import_module("tool_sandbox.scenarios")
        except Exception as error:
            problems.append(f"its source cannot be imported: {type(error).__name__}: {error}")
    return problems


class Library:
    """The scenarios and the parts of ToolSandbox that play them.

    Attributes:
        scenarios: All scenarios by name.
        context: Its module ``execution_context``.
        evaluation: Its module ``evaluation``.
        quick: Its class ``ExecutionContext``, remembering what it would work out anew at every look at a database.
        utils: Its module ``utils``.
        convert: Turns its tools into OpenAI's format.
        identifiers: Makes ids in place of ``uuid4``; set by the running env.
    """

    def __init__(self, checkout: Path) -> None:
        """Builds everything, with the clock stopped and shuffles seeded."""
        with importable(checkout):
            package = import_module("tool_sandbox.scenarios")
            self.context = import_module("tool_sandbox.common.execution_context")
            self.evaluation = import_module("tool_sandbox.common.evaluation")
            self.utils = import_module("tool_sandbox.common.utils")
            self.convert = import_module("tool_sandbox.common.tool_conversion").convert_to_openai_tools
            backend = import_module("tool_sandbox.common.tool_discovery").ToolBackend
        self.identifiers: Any = None
        self.quick = _quick(self.context.ExecutionContext, self.context.DatabaseNamespace.SANDBOX)
        _stop_clocks()
        for name in ("reminder", "contact", "messaging"):
            sys.modules[f"tool_sandbox.tools.{name}"].uuid4 = self._identifier  # type: ignore[attr-defined]
        before = random.getstate()
        random.seed(_SEED)
        try:
            self.scenarios: Mapping[str, Any] = package.named_scenarios(backend.DEFAULT)
        finally:
            random.setstate(before)

    def _identifier(self) -> str:
        return self.identifiers()


def _quick(base: type, conversation: Any) -> type:
    """A context that remembers, by frame, what only depends on that frame: frames are never changed in place."""

    class Quick(base):  # type: ignore[misc, valid-type]
        @property
        def max_sandbox_message_index(self) -> int:
            frame = self._dbs[conversation]
            if self.__dict__.get("_spoken") is not frame:
                self._newest = super().max_sandbox_message_index
                self._spoken = frame
            return self._newest

        def get_most_recent_snapshot_sandbox_message_index(self, namespace: Any, query_index: int) -> int:
            seen = self.__dict__.setdefault("_snapshots", {})
            frame = self._dbs[namespace]
            if namespace not in seen or seen[namespace][0] is not frame:
                empty = self.drop_headguard(frame).is_empty()
                seen = self._snapshots = {**seen, namespace: (frame, [] if empty else sorted(set(frame["sandbox_message_index"].to_list())))}
            known = seen[namespace][1]
            if not known:
                return -1
            if query_index > self.max_sandbox_message_index + 1:
                raise IndexError(f"there is no message {query_index} yet")
            return known[max(bisect_right(known, query_index) - 1, 0)]

    return Quick


def _stop_clocks() -> None:
    """Gives every module of ToolSandbox that reads the present a stopped one."""
    stopped = SimpleNamespace(**{name: getattr(real_datetime, name) for name in dir(real_datetime) if not name.startswith("__")})
    stopped.datetime = _Clock
    for name, module in list(sys.modules.items()):
        if name.startswith("tool_sandbox.") and isinstance(getattr(module, "datetime", None), ModuleType):
            module.datetime = stopped  # type: ignore[attr-defined]


@lru_cache(maxsize=1)
def library() -> Library:
    """The library of this process.

    Raises:
        ConfigurationError: There is no usable checkout.
    """
    return Library(where())


def local_names() -> tuple[str, ...]:
    """Names of the scenarios that need none of the web tools: hidden side."""
    return tuple(
        name
        for name, scenario in library().scenarios.items()
        if scenario.starting_context.tool_allow_list and not _WEB & set(scenario.starting_context.tool_allow_list)
    )


def own_role() -> Any:
    """ToolSandbox's own execution role, which runs text as code: for timing it against the adapter only."""
    library()
    with importable(where()):
        role = import_module("tool_sandbox.roles.execution_environment").ExecutionEnvironment()
    _stop_clocks()
    return role
