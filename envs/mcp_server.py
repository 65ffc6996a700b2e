"""The tools of an MCP server as a world: the server is started with the episode and ended with it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from hashlib import blake2b
from random import Random
from threading import Thread
from typing import Any

from dynsteer_gym.envs.function_tools import ToolError
from dynsteer_gym.envs.functions import Scenario
from dynsteer_gym.envs.scripted import Reply, ScriptedWorld, WorldFault
from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.events import ErrorKind, StateDelta
from dynsteer_gym.task import TaskView, ToolSpec

__all__ = ["McpWorld"]


class _Server:
    """One running stdio server, spoken to from a thread of its own: its session lives and ends in one task."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None, timeout: float) -> None:
        self._timeout = timeout
        self._loop = asyncio.new_event_loop()
        self._ready: Future[tuple[ToolSpec, ...]] = Future()
        self._stopping: asyncio.Event | None = None
        self._session: Any = None
        self._thread = Thread(target=self._work, args=(list(command), environment), daemon=True)
        self._thread.start()
        try:
            self.tools = self._ready.result(timeout)
        except FutureTimeout:
            self.close()
            raise WorldFault(f"the server did not answer within {timeout:g} s") from None

    def _work(self, command: list[str], environment: Mapping[str, str] | None) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve(command, environment))
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(WorldFault(f"the server could not be started: {_first(error)}"))
        finally:
            self._session = None
            self._loop.close()

    async def _serve(self, command: list[str], environment: Mapping[str, str] | None) -> None:
        from mcp import ClientSession
        from mcp.client.stdio import StdioServerParameters, stdio_client

        self._stopping = asyncio.Event()
        parameters = StdioServerParameters(command=command[0], args=command[1:], env=None if environment is None else dict(environment))
        async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            found: list[Any] = []
            cursor: str | None = None
            while True:
                page = await session.list_tools(params=_cursor(cursor))
                found.extend(page.tools)
                cursor = page.next_cursor
                if not cursor:
                    break
            self._session = session
            self._ready.set_result(tuple(_spec(tool) for tool in found))
            await self._stopping.wait()

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Calls a tool.

        Raises:
            ToolError: The server says that the call failed.
            WorldFault: The server is gone, or does not answer in time.
        """
        session = self._session
        if session is None or not self._thread.is_alive():
            raise WorldFault("the server has ended")
        future = asyncio.run_coroutine_threadsafe(session.call_tool(tool, arguments), self._loop)
        try:
            result = future.result(self._timeout)
        except FutureTimeout:
            future.cancel()
            raise WorldFault(f"the server did not answer within {self._timeout:g} s") from None
        except Exception as error:
            raise WorldFault(f"the server failed: {_first(error)}") from error
        text = "\n".join(part.text for part in result.content if getattr(part, "text", None) is not None)
        if result.is_error:
            raise ToolError(ErrorKind.RUNTIME, text or "the call failed")
        structured = result.structured_content
        if isinstance(structured, Mapping) and set(structured) == {"result"}:
            return structured["result"]
        return structured if structured is not None else _read(text)

    def close(self) -> None:
        """Ends the server."""
        if self._thread.is_alive() and self._stopping is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(self._timeout)


def _cursor(cursor: str | None) -> Any:
    from mcp.types import PaginatedRequestParams

    return None if cursor is None else PaginatedRequestParams(cursor=cursor)


def _first(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _spec(tool: Any) -> ToolSpec:
    returns = tool.output_schema
    if isinstance(returns, Mapping) and set(returns.get("properties", ())) == {"result"}:
        returns = returns["properties"]["result"]
    return ToolSpec(tool.name, tool.description or "", {"type": "object", "properties": {}, **tool.input_schema}, returns)


class McpWorld(ScriptedWorld):
    """The tools of an MCP server (stdio), with a user and a score of your own.

    The server is started at ``reset``, ended at the next one and at ``close``, so that every episode has a fresh one.
    A server that dies or hangs is a fault of the episode (``info["fault"]``), and no more.
    """

    def __init__(
        self,
        command: Sequence[str],
        scenario: Callable[[Random], Scenario],
        *,
        environment: Mapping[str, str] | None = None,
        call_timeout: float = 30.0,
        **settings: Any,
    ) -> None:
        """Makes the world; nothing is started yet.

        Args:
            command: The server's program and arguments; ``"python"`` is this interpreter.
            scenario: Makes a task from a seeded generator; its ``state`` is yours, and its ``score`` is given a
                function that calls tools in place of the state where ``state`` is ``None``.
            environment: Environment variables of the server, or ``None`` for a safe few of this process's.
            call_timeout: Seconds to wait for the server.
            **settings: ``max_turns``, ``success_at``, ``render_mode``.

        Raises:
            ConfigurationError: The command is empty, or the package ``mcp`` is not installed.
        """
        super().__init__(**settings)
        from importlib.util import find_spec

        if find_spec("mcp") is None:
            raise ConfigurationError('McpWorld needs the package mcp: pip install "dynsteer-gym[mcp]"')
        if not command or isinstance(command, str):
            raise ConfigurationError("command is a list: the server's program and its arguments")
        self._command = [sys.executable if command[0] == "python" else command[0], *command[1:]]
        self._make = scenario
        self._environment = environment
        self._timeout = call_timeout
        self._server: _Server | None = None
        self._scenario: Scenario | None = None

    def begin(self, seed: int, options: Mapping[str, Any]) -> TaskView:
        """Starts a fresh server and the task of a seed."""
        self.close()
        scenario = self._scenario = self._make(Random(seed))
        self._server = _Server(self._command, self._environment, self._timeout)
        task_id = blake2b(f"{seed}:{scenario.request}".encode(), digest_size=8).hexdigest()
        return TaskView(task_id=task_id, request=scenario.request, tools=self._server.tools, policy=scenario.policy)

    def execute(self, tool: str, arguments: dict[str, Any]) -> tuple[Any, tuple[StateDelta, ...] | None]:
        """Calls the server."""
        assert self._server is not None
        return self._server.call(tool, arguments), None

    def respond(self, message: str) -> Reply:
        """What the scenario's user says."""
        assert self._scenario is not None
        text = self._scenario.user.hears(message)
        return Reply(ends=True) if text is None else Reply(text)

    def native_score(self) -> float:
        """What the scenario's score gives."""
        assert self._scenario is not None and self._server is not None
        server, state = self._server, self._scenario.state
        looked: Any = (lambda tool, **arguments: server.call(tool, arguments)) if state is None else state
        return self._scenario.score(looked, self._scenario.user)

    def close(self) -> None:
        """Ends the server."""
        if self._server is not None:
            self._server.close()
            self._server = None
