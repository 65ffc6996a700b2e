"""Imports ToolSandbox's own source without the model clients that it imports for its agents; undone afterwards."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["importable"]

_NEEDLESS = (
    "openai",
    "openai.types",
    "openai.types.chat",
    "openai.types.chat.chat_completion_message_tool_call",
    "langchain_core",
    "langchain_core.messages",
    "langchain_core.pydantic_v1",
)


class _Empty(ModuleType):
    """A module in which every name is an empty class."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


@contextmanager
def importable(checkout: Path) -> Iterator[None]:
    """``tool_sandbox`` can be imported from a checkout; path and stand-ins are gone afterwards.

    Args:
        checkout: Folder that holds ``tool_sandbox``.
    """
    stood_in = [name for name in _NEEDLESS if name not in sys.modules and (name.partition(".")[0] not in _installed())]
    for name in stood_in:
        sys.modules[name] = _Empty(name)
    sys.path.insert(0, str(checkout))
    try:
        yield
    finally:
        sys.path.remove(str(checkout))
        for name in stood_in:
            sys.modules.pop(name, None)


def _installed() -> set[str]:
    return {name for name in ("openai", "langchain_core") if find_spec(name) is not None}
