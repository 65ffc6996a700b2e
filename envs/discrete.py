"""A finite action interface over a text world, so that SB3's algorithms train on it as it is.

Actions are the candidates of :mod:`dynsteer_gym.envs.candidates` in an order that is shuffled at every step, so that a
position says nothing; the observation is a ``Box`` of features; ``action_masks()`` tells which positions are taken.
"""

from __future__ import annotations

from typing import Any, Self

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from dynsteer_gym.envs.actions import AssistantTurn
from dynsteer_gym.envs.base import ToolEnv
from dynsteer_gym.envs.candidates import STATIC, Candidate, CandidateList, Typed
from dynsteer_gym.envs.features import EMBEDDING, OVERLAPS, CatalogueWords, catalogue_words, embed, said_concepts
from dynsteer_gym.events import Event, EventKind
from dynsteer_gym.language import extract_literals
from dynsteer_gym.lexicon import VERBS
from dynsteer_gym.task import TaskView

__all__ = ["CONTEXT", "DYNAMIC", "FEATURES", "DiscreteActions"]

DYNAMIC = 11
"""Columns of a candidate that change from step to step."""
FEATURES = STATIC + DYNAMIC
"""Columns of a candidate."""
OVERLAPS_AT = STATIC - OVERLAPS - EMBEDDING
"""First column of the overlaps with the request's words."""
ERROR_AT = STATIC + 5
"""Column of the overlap between the things in a tool's name and the last error; the next one is for the user's reply."""
PRIVILEGED = 16
"""Columns for what ``observe`` lets through from the evaluator; 0 with ``observe="none"``."""
_ACTIONS = tuple(sorted(VERBS))
_REQUEST = len(_ACTIONS) + 1
CONTEXT = 16 + _REQUEST + PRIVILEGED
"""Columns of the context, which stand before the candidates."""
OBSERVE = ("none", "counts", "kinds")


class DiscreteActions(gym.Wrapper[NDArray[np.float32], np.int64, str, str], RecordConstructorArgs):
    """Offers the grounded calls and messages of a text world as ``Discrete(max_candidates)``.

    The observation is a flat ``Box`` of shape ``(CONTEXT + max_candidates * FEATURES,)``: the context, then one row of
    features for each candidate; rows that are not taken are 0. It holds nothing from the evaluator unless ``observe``
    says so. ``info["candidates"]`` counts them and ``info["candidates_left_out"]`` those for which there was no room.

    Attributes:
        last_turn: The turn that was last sent to the world.
    """

    def __init__(self, env: gym.Env[str, str], *, max_candidates: int = 96, observe: str = "none", blind: bool = False) -> None:
        """Wraps a text world.

        Args:
            env: The world, bare or evaluated.
            max_candidates: Size of the action space.
            observe: What of the evaluator the observation holds: ``none``; ``counts`` (settled and ready milestones);
                ``kinds`` (which tools the ready milestones ask for, hashed). The last two are privileged.
            blind: Leave out all features of words (of the request, of tools, of answers): the baseline that must fail.

        Raises:
            ValueError: ``observe`` is none of the three, or ``max_candidates`` is below 16.
        """
        RecordConstructorArgs.__init__(self, max_candidates=max_candidates, observe=observe, blind=blind)
        gym.Wrapper.__init__(self, env)
        if observe not in OBSERVE:
            raise ValueError(f"observe is one of {', '.join(OBSERVE)}; got {observe!r}")
        if max_candidates < 16:
            raise ValueError(f"max_candidates is at least 16; got {max_candidates}")
        base = env.unwrapped
        if not isinstance(base, ToolEnv):
            raise TypeError(f"DiscreteActions wraps a ToolEnv; got {type(base).__name__}")
        self._base: ToolEnv = base
        self.built_in = False
        self._observe = observe
        self._blind = blind
        self._size = max_candidates
        self.action_space = spaces.Discrete(max_candidates)
        self.observation_space = spaces.Box(-8.0, 8.0, (CONTEXT + max_candidates * FEATURES,), np.float32)
        self._tools: tuple[Any, ...] | None = None
        self._index: CatalogueWords | None = None
        self._list: CandidateList | None = None
        self._order: NDArray[np.int64] = np.zeros(0, np.int64)
        self._shuffler = np.random.default_rng(0)
        self.last_turn: AssistantTurn | None = None

    @property
    def spec(self) -> Any:
        """The spec that rebuilds the env; an env made by its registered id is one piece."""
        return self.env.spec if self.built_in else gym.Wrapper.spec.fget(self)  # type: ignore[attr-defined]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[NDArray[np.float32], dict[str, Any]]:  # type: ignore[override]
        """Starts an episode; ``seed`` also seeds the shuffling."""
        _, info = self.env.reset(seed=seed, options=options)
        if seed is not None:
            self._shuffler = np.random.default_rng([seed, 0x5EED])
        self.begin(info)
        return self.observe(), info

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:  # type: ignore[override]
        """Runs the candidate at a position; a position that is not taken is an empty message."""
        _, reward, terminated, truncated, info = self.env.step(self.translate(int(action)))  # type: ignore[arg-type]
        self.follow(info)
        return self.observe(), float(reward), terminated, truncated, info

    # The vector env runs the parts of a step one by one.

    def begin(self, info: dict[str, Any]) -> None:
        """Reads the first events of an episode."""
        view = self._base.task_view
        self._catalogue(view)
        self._turn = 0
        self._request(view.request)
        self._take_events()
        self._count(info)

    def translate(self, action: int) -> AssistantTurn:
        """The turn that choosing a position sends to the world."""
        if not 0 <= action < len(self._order):
            self._chosen = None
            self.last_turn = AssistantTurn(message="")
        else:
            self._chosen = int(self._order[action])
            assert self._list is not None
            self.last_turn = self._list.turn(self._chosen)
        return self.last_turn

    def follow(self, info: dict[str, Any]) -> None:
        """Reads the events of the step that was just run."""
        self._turn += 1
        self._read(self._take_events())
        self._count(info)

    def action_masks(self) -> NDArray[np.bool_]:
        """Which positions are taken, shape ``(max_candidates,)``."""
        mask = np.zeros(self._size, np.bool_)
        mask[: len(self._order)] = True
        return mask

    def candidate(self, action: int) -> Candidate:
        """The candidate at a position, for looking at."""
        assert self._list is not None
        return self._list.entry(int(self._order[action]))

    def candidates(self) -> list[Candidate]:
        """All candidates in the order of their positions."""
        assert self._list is not None
        return [self._list.entry(int(place)) for place in self._order]

    def observe(self, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """Shuffles the candidates and writes the observation.

        Args:
            out: Where to write it, shape ``(CONTEXT + max_candidates * FEATURES,)``; a new array by default.
        """
        entries = self._list
        assert entries is not None
        count = entries.count
        order = self._order = self._shuffler.permutation(count)
        if out is None:
            out = np.zeros(CONTEXT + self._size * FEATURES, np.float32)
        else:
            out[:CONTEXT] = 0.0
            out[CONTEXT + count * FEATURES :] = 0.0
        rows = out[CONTEXT:].reshape(self._size, FEATURES)[:count]
        rows[:, :STATIC] = entries.static[order]
        self._dynamic(count)
        rows[:, STATIC:] = self._columns[:count][order]
        self._context(out)
        return out

    def fork(self) -> Self:
        """An independent copy of the running episode, interface included."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.env = self.env.get_wrapper_attr("fork")()
        other._base = other.env.unwrapped  # type: ignore[assignment]
        if self._list is not None:
            other._list = self._list.fork()
            other._columns = self._columns.copy()
            other._called = self._called.copy()
            other._worked = self._worked.copy()
            other._tool_called = self._tool_called.copy()
            other._tool_worked = self._tool_worked.copy()
            other._failed = self._failed.copy()
            other._retry = self._retry.copy()
        other._shuffler = np.random.Generator(type(self._shuffler.bit_generator)())
        other._shuffler.bit_generator.state = self._shuffler.bit_generator.state
        return other

    def _catalogue(self, view: TaskView) -> None:
        if view.tools is self._tools and self._list is not None:
            return
        self._tools = view.tools
        self._index = catalogue_words(view.tools)
        self._list = CandidateList(self._index, _typed(view.tools, self._index), self._size)
        self._columns = np.zeros((self._size, DYNAMIC), np.float32)

    def _request(self, text: str) -> None:
        assert self._list is not None and self._index is not None and self._tools is not None
        self._list.start(text, self._turn, self._blind)
        self._chosen: int | None = None
        self._called = np.zeros(self._size, np.float32)
        self._worked = np.zeros(self._size, np.float32)
        self._tool_called = np.zeros(len(self._tools) + 5, np.float32)
        self._tool_worked = np.zeros(len(self._tools) + 5, np.float32)
        self._last_tool = -1
        self._error: NDArray[np.float32] | None = None
        self._failed_tool = -1
        self._failed = np.zeros(self._size, np.bool_)
        self._retry = np.zeros(self._size, np.float32)
        self._reply: NDArray[np.float32] | None = None
        self._asked = np.zeros(_REQUEST, np.float32)
        if not self._blind:
            said = said_concepts(text)
            self._asked[: len(_ACTIONS)] = [said.get(action, 0.0) for action in _ACTIONS]
            self._asked[-1] = 1.0 if text.rstrip().endswith("?") else 0.0
        self._flags = [0.0] * 10
        self._since = self._turn

    def _take_events(self) -> list[Event]:
        # An evaluating wrapper has drained the world already and keeps the events of the step.
        return self.env.step_events if hasattr(self.env, "step_events") else self._base.drain_events()  # type: ignore[union-attr]

    def _read(self, events: list[Event]) -> None:
        entries, index = self._list, self._index
        assert entries is not None and index is not None
        view = self._base.task_view
        if view.tools is not self._tools:
            self._catalogue(view)
            self._request(view.request)
        chosen = self._chosen
        tool = int(entries.tools[chosen]) if chosen is not None else -1
        flags = [0.0] * 10
        if chosen is not None:
            self._called[chosen] += 1
            self._tool_called[tool] += 1
        self._last_tool = tool
        for event in events:
            if event.kind == EventKind.TOOL_RETURN:
                if event.error is None:
                    flags[0] = 1.0
                    if chosen is not None:
                        self._worked[chosen] = 1.0
                        self._tool_worked[tool] = 1.0
                        self._failed[chosen] = False
                        self._retry[chosen] = 0.0
                    if event.writes:
                        self._retry[self._failed] = 1.0
                    if isinstance(event.value, list):
                        flags[2 + min(len(event.value), 2)] = 1.0
                    entries.returned(event.value, self._turn)
                    if tool == self._failed_tool:  # What went wrong last has been made good.
                        self._error, self._failed_tool = None, -1
                else:
                    flags[1] = 1.0
                    self._failed_tool = tool
                    if chosen is not None:
                        self._failed[chosen] = True
                        self._retry[chosen] = 0.0
                    self._error = None if self._blind else index.overlap(event.text)
            elif event.kind == EventKind.USER_MESSAGE:
                if event.new_request:
                    self._request(event.text)
                    return
                flags[5] = 1.0
                if extract_literals(event.text):
                    flags[6] = 1.0
                if not self._blind:
                    self._reply = index.overlap(event.text).max(axis=1)
                entries.heard(event.text, self._turn)
        flags[7] = 1.0 if self._failed_tool >= 0 else 0.0
        self._flags = flags

    def _dynamic(self, count: int) -> None:
        entries = self._list
        assert entries is not None
        tools, variants, steps = entries.tools[:count], entries.variants[:count], entries.steps[:count]
        out = self._columns[:count]
        np.minimum(self._called[:count] * (1 / 3), 1.0, out=out[:, 0])
        out[:, 1] = self._worked[:count]
        np.minimum(self._tool_called[tools] * (1 / 3), 1.0, out=out[:, 2])
        out[:, 3] = self._tool_worked[tools]
        out[:, 4] = tools == self._last_tool
        if self._error is None:
            out[:, 5] = out[:, 9] = 0.0
        else:
            told = self._error[variants]
            out[:, 5], out[:, 9] = told[:, 1], told[:, 4]
        out[:, 6] = 0.0 if self._reply is None else self._reply[variants]
        out[:, 8] = newer = steps > self._since
        out[:, 7] = newer & (steps == self._turn)
        out[:, 10] = self._retry[:count]

    def _context(self, out: NDArray[np.float32]) -> None:
        view = self._base.task_view
        limit = max(self._base.max_turns, 1)
        out[0] = self._turn / limit
        out[1] = min((self._turn - self._since) / 10, 2.0)
        out[2] = view.request_index / max(view.max_requests, 1)
        out[3] = min(float(self._tool_worked.sum()) / 5, 2.0)
        out[4 : 4 + len(self._flags)] = self._flags
        out[14] = len(self._order) / self._size
        out[15] = 1.0
        out[16 : 16 + _REQUEST] = self._asked
        if self._observe != "none":
            self._privileged(out[16 + _REQUEST : CONTEXT])

    def _privileged(self, out: NDArray[np.float32]) -> None:
        summary = self.env.get_wrapper_attr("frontier_summary")()
        out[0] = summary["settled"]
        out[1] = summary["ready"] / 4
        if self._observe == "kinds":
            hashed = embed(name for name in summary["kinds"])
            out[2 : 2 + len(hashed)] = hashed * 2

    def _count(self, info: dict[str, Any]) -> None:
        assert self._list is not None
        info["candidates"] = self._list.count
        info["candidates_left_out"] = self._list.overflow


_TYPED: dict[int, tuple[CatalogueWords, Typed]] = {}


def _typed(tools: tuple[Any, ...], index: CatalogueWords) -> Typed:
    known = _TYPED.get(id(index))
    if known is None or known[0] is not index:
        if len(_TYPED) >= 256:
            _TYPED.clear()
        known = _TYPED[id(index)] = (index, Typed(tools, index))
    return known[1]
