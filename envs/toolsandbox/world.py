"""ToolSandbox as a world: its tools, databases and evaluation, one call at a time, without executing any text."""

from __future__ import annotations

import copy
import json
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from random import Random
from typing import Any
from uuid import UUID, uuid5

from dynsteer_gym.envs.function_tools import ToolError
from dynsteer_gym.envs.scripted import Reply, ScriptedWorld, WorldFault
from dynsteer_gym.envs.toolsandbox.library import library, local_names
from dynsteer_gym.envs.toolsandbox.native import native_progress, native_score
from dynsteer_gym.envs.toolsandbox.user import InstructedUser
from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.events import ErrorKind, StateDelta
from dynsteer_gym.task import TableHeader, TaskView, ToolSpec

__all__ = ["ToolSandboxWorld"]

_SPACE = UUID("8c1b8c3e-6f5d-5d2f-9a64-0d7f3b1f7c11")
_MESSAGES = 30
_KEYS = {"SETTING": "device_id", "CONTACT": "person_id", "MESSAGING": "message_id", "REMINDER": "reminder_id"}


class ToolSandboxWorld(ScriptedWorld):
    """Apple's own scenarios that need no web tool (509 of 1,032).

    Its databases, tools and evaluation are used as they are; tools are called with checked arguments, one at a time, and
    nothing that a model writes is executed. The clock stands still, ids are drawn from the episode. The native score is
    its own similarity, computed exactly (:mod:`~dynsteer_gym.envs.toolsandbox.native`).

    Attributes:
        library: ToolSandbox itself, as built in this process: hidden side.
        names: Names of the scenarios that are played: hidden side.
        tools_by_shown_name: Its functions by the name that the agent sees, of the running scenario: hidden side.
    """

    def __init__(self, *, call_timeout: float = 20.0, max_turns: int | None = None, **settings: Any) -> None:
        """Makes the world; the first one in a process builds all scenarios, which takes seconds.

        Args:
            call_timeout: Seconds that a call may take; kept in the main thread of a process only.
            max_turns: The most assistant turns; by default 15, which is ToolSandbox's limit of 30 messages.
            **settings: ``success_at``, ``render_mode``.

        Raises:
            ConfigurationError: There is no usable checkout of ToolSandbox.
        """
        super().__init__(max_turns=max_turns or _MESSAGES // 2, **settings)
        self.library: Any = library()
        self.names: tuple[str, ...] = local_names()
        self._timeout = call_timeout
        self._name = ""
        self._context: Any = None
        self._user: InstructedUser | None = None
        self._count = 0
        self.tools_by_shown_name: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """Name of the running scenario: hidden side."""
        return self._name

    @property
    def context(self) -> Any:
        """ToolSandbox's execution context of the running episode: hidden side."""
        return self._context

    @property
    def evaluation(self) -> Any:
        """ToolSandbox's evaluation of the running scenario: hidden side."""
        return self.library.scenarios[self._name].evaluation

    def begin(self, seed: int, options: Mapping[str, Any]) -> TaskView:
        """Starts the scenario of a seed, or the one of ``options["scenario"]``."""
        unknown = sorted(str(key) for key in options if key != "scenario")
        if unknown:
            raise ConfigurationError(f"the only reset option is 'scenario'; got {unknown[0]!r}")
        name = options.get("scenario") or Random(seed).choice(self.names)
        if name not in self.names:
            raise ConfigurationError(f"no local scenario is called {str(name)[:80]!r}")
        self._name, self._count = name, 0
        self._context = _copied(self.library.scenarios[name].starting_context)
        self._context.__class__ = self.library.quick
        space = self.library.context.DatabaseNamespace
        rows = self._context.get_database(space.SANDBOX, get_all_history_snapshots=True).to_dicts()
        role = self.library.context.RoleType
        spoken = [row for row in rows if row["visible_to"] != [role.USER]]
        opening = next(row["content"] for row in spoken if row["sender"] == role.USER)
        instruction = [row["content"] for row in rows if row["sender"] == role.SYSTEM and row["recipient"] == role.USER][-1]
        policy = "\n".join(row["content"] for row in spoken if row["sender"] == role.SYSTEM and row["recipient"] == role.AGENT)
        self._user = InstructedUser.of(instruction, opening)
        with self._current():
            shown = self._context.get_available_tools(scrambling_allowed=True)
            self.tools_by_shown_name = {
                key: tool for key, tool in shown.items() if role.AGENT in getattr(tool, "visible_to", (role.AGENT,))
            }
            tools = tuple(
                ToolSpec(
                    entry["function"]["name"],
                    entry["function"]["description"] or "",
                    {"additionalProperties": False, **entry["function"]["parameters"]},
                )
                for entry in self.library.convert(self.tools_by_shown_name)
            )
        tables = tuple(
            TableHeader(str(item), tuple(column for column in self._context.dbs_schemas[item] if column != "sandbox_message_index"))
            for item in space
            if str(item) != "SANDBOX"
        )
        task_id = blake2b(f"toolsandbox:{name}".encode(), digest_size=8).hexdigest()
        return TaskView(task_id=task_id, request=opening, tools=tools, tables=tables, policy=policy)

    @contextmanager
    def _current(self) -> Iterator[None]:
        """ToolSandbox's global context is this episode's; the one before comes back afterwards."""
        with self.library.context.new_context(self._context):
            before, self.library.identifiers = self.library.identifiers, self._identifier
            try:
                yield
                self._context = self.library.context.get_current_context()
            finally:
                self.library.identifiers = before

    def _identifier(self) -> str:
        self._count += 1
        return str(uuid5(_SPACE, f"{self._name}:{self._count}"))

    def _add(self, sender: str, recipient: str, content: str, **more: Any) -> None:
        role = self.library.context.RoleType
        row = {"sender": role[sender], "recipient": role[recipient], "content": content, "visible_to": [role[sender], role[recipient]], **more}
        self._context.add_to_database(self.library.context.DatabaseNamespace.SANDBOX, [row])

    def execute(self, tool: str, arguments: dict[str, Any]) -> tuple[Any, tuple[StateDelta, ...] | None]:
        """Calls a tool, as a message to the execution environment and its answer."""
        spec = self.task_view.tool(tool)
        assert spec is not None
        missing = [key for key in spec.required if key not in arguments]
        odd = [key for key in arguments if key not in spec.properties]
        ident = f"call_{self._calls}_{self._count}"
        with self._current():
            self._add("AGENT", "EXECUTION_ENVIRONMENT", f"{tool}(**{arguments!r})", openai_tool_call_id=ident, openai_function_name=tool)
            before = dict(self._context._dbs)
            value, problem = None, ""
            kind = ErrorKind.RUNTIME
            if missing or odd:
                what = f"{missing[0]!r} is missing" if missing else f"there is no argument {odd[0]!r}"
                kind, problem = ErrorKind.SCHEMA, f"{tool}: {what}. It takes {', '.join(spec.properties) or 'no arguments'}."
            else:
                function = self.tools_by_shown_name[tool]
                try:
                    with _limited(self._timeout):
                        value = function(**copy.deepcopy(arguments))
                except WorldFault:
                    raise
                except Exception as error:
                    problem = _hidden(f"{type(error).__name__}: {str(error).strip().splitlines()[-1] if str(error).strip() else ''}", function.__name__, tool)
                    kind = ErrorKind.PRECONDITION if isinstance(error, (ConnectionError, PermissionError)) else ErrorKind.RUNTIME
                    self._context._dbs.update({key: frame for key, frame in before.items() if str(key) != "SANDBOX"})
            trace = self._trace()
            self._add(
                "EXECUTION_ENVIRONMENT",
                "AGENT",
                problem or repr(value),
                openai_tool_call_id=ident,
                openai_function_name=tool,
                tool_call_exception=problem or None,
                tool_trace=None if problem else trace,
            )
            self._flatten()
            writes = _changes(before, self._context._dbs)
        if problem:
            raise ToolError(kind, problem)
        return json.loads(json.dumps(value, default=str)), writes

    def _trace(self) -> list[str] | None:
        """Takes the trace off the agent's message: ToolSandbox keeps it with the answer."""
        import polars

        frames, space = self._context._dbs, self.library.context.DatabaseNamespace.SANDBOX
        row = frames[space][-1:]
        trace = row["tool_trace"][0]
        if trace is None:
            return None
        frames[space] = frames[space][:-1].vstack(row.with_columns(polars.lit(None, dtype=row["tool_trace"].dtype).alias("tool_trace")))
        return trace.to_list()

    def _flatten(self) -> None:
        """Frames that grow row by row are kept in one piece, so that a late step costs what an early one does."""
        for key, frame in self._context._dbs.items():
            if frame.n_chunks() > 4:
                self._context._dbs[key] = frame.rechunk()

    def respond(self, message: str) -> Reply:
        """What the user says, and its end of the conversation."""
        assert self._user is not None
        reply, self._user = self._user.hears(message)
        with self._current():
            self._add("AGENT", "USER", message)
            if reply.ends:
                self._add("USER", "EXECUTION_ENVIRONMENT", "end_conversation()", conversation_active=True)
                self._context.name_to_tool["end_conversation"]()
                self._add("EXECUTION_ENVIRONMENT", "USER", "None")
            else:
                self._add("USER", "AGENT", reply.text)
            self._flatten()
        return reply

    def native_score(self) -> float:
        """ToolSandbox's own similarity."""
        with self._current():
            return native_score(self.library, self._context, self.evaluation)

    def native_progress(self) -> float:
        """The best milestone similarity so far: monotone, and the native score at the end where no minefield matched."""
        with self._current():
            return native_progress(self.library, self._context, self.evaluation)

    def copied(self) -> dict[str, Any]:
        """The context; its frames are immutable and shared."""
        return {"_context": None if self._context is None else _copied(self._context)}


def _copied(context: Any) -> Any:
    other = copy.copy(context)
    other._dbs = dict(context._dbs)
    other.interactive_console = None  # Nothing is executed as text.
    return other


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Interrupts a call that takes too long, where that can be done: in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: Any) -> None:
        raise WorldFault(f"a call did not return within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _hidden(text: str, own: str, shown: str) -> str:
    """An error without a tool's own name, where another one is shown."""
    return text if own == shown else text.replace(own, shown)


def _changes(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> tuple[StateDelta, ...]:
    """Rows that differ between the newest snapshots of two states."""
    found: list[StateDelta] = []
    for space, key in _KEYS.items():
        old_frame = next(frame for name, frame in before.items() if str(name) == space)
        new_frame = next(frame for name, frame in after.items() if str(name) == space)
        if old_frame is new_frame:
            continue
        old, new = _newest(old_frame, key), _newest(new_frame, key)
        for ident in {**old, **new}:
            if old.get(ident) != new.get(ident):
                found.append(StateDelta(space.lower(), ident, old.get(ident), new.get(ident)))
    return tuple(found)


def _newest(frame: Any, key: str) -> dict[str, dict[str, Any]]:
    latest = frame["sandbox_message_index"].max()
    rows = frame.filter(frame["sandbox_message_index"] == latest).drop("sandbox_message_index").to_dicts()
    return {str(row[key]): row for row in rows if row[key] is not None}
