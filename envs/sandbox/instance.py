"""A scenario as a value, hidden side included."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from dynsteer_gym.envs.sandbox.minefields import Minefield
from dynsteer_gym.envs.sandbox.state import PHONE_TABLES, State
from dynsteer_gym.envs.sandbox.user import Request
from dynsteer_gym.envs.sandbox.variants import Scramble
from dynsteer_gym.task import ToolSpec

__all__ = ["VARIANTS", "Instance", "content_hash"]

VARIANTS = ("canonical", "distraction", "scrambled", "insufficient")
"""Primary variants; the factors behind them are fields of their own."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A scenario, hidden side included.

    Attributes:
        task_id: Opaque identifier, the only name on the public side.
        name: A name for operators.
        family: Family, or ``talk-<requests>`` for talks with several.
        state: Initial state.
        requests: The requests of the talk in order.
        tools: Public specs of the tools on offer, in the order shown.
        max_turns: The suite's limit of assistant turns.
        voice: Which paraphrases the user speaks.
        domain: One of the five domains, or ``phone``.
        variant: Primary variant, of :data:`VARIANTS`.
        distractors: Own names of the tools that are there to distract.
        scramble: How the catalogue is scrambled, or ``None``.
        missing: What the user does not know, or ``""``.
        minefields: What must not be done, or ``None`` where the goals alone tell.
        tables: Tables of the world, as the public view lists them.
    """

    task_id: str
    name: str
    family: str
    state: State
    requests: tuple[Request, ...]
    tools: tuple[ToolSpec, ...]
    max_turns: int
    voice: int
    domain: str = "phone"
    variant: str = "canonical"
    distractors: tuple[str, ...] = ()
    scramble: Scramble | None = None
    missing: str = ""
    minefields: tuple[Minefield, ...] | None = None
    tables: tuple[str, ...] = PHONE_TABLES


def content_hash(instance: Instance) -> str:
    """A digest of everything in a scenario, hidden side included: equal only for equal scenarios."""
    return blake2b(json.dumps(_data(instance), sort_keys=True, ensure_ascii=False).encode(), digest_size=16).hexdigest()


def _data(value: Any) -> Any:
    """Plain data of a value; types count, sets are ordered."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: _data(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"is": type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {str(key): _data(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(map(str, value))
    if isinstance(value, list | tuple):
        return [_data(item) for item in value]
    return value
