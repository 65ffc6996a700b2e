"""The evaluating wrapper: stage reward and early stops over any text world."""

from __future__ import annotations

import copy
import logging
from typing import TYPE_CHECKING, Any, Self

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from dynsteer_gym.blueprint.compiler import BlueprintCompiler
from dynsteer_gym.envs.actions import AssistantTurn
from dynsteer_gym.envs.base import ToolEnv
from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.evaluation.evaluator import StageEvaluator
from dynsteer_gym.events import Event
from dynsteer_gym.settings import Settings

if TYPE_CHECKING:
    from dynsteer_gym.blueprint.graph import CompiledTask
    from dynsteer_gym.evaluation.report import EvaluationReport
    from dynsteer_gym.judges.base import Judge

__all__ = ["DynSTEERWrapper"]


class DynSTEERWrapper(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Evaluates a text world stage by stage, pays stage scores as reward and ends hopeless episodes.

    >>> import dynsteer_gym
    >>> from dynsteer_gym.envs.sandbox import SandboxEnv
    >>> env = DynSTEERWrapper(SandboxEnv(), reward="stage", stop="paper")
    >>> obs, info = env.reset(seed=0)
    >>> obs, reward, terminated, truncated, info = env.step("Done.")
    >>> reward == sum(info["reward_components"].values())
    True

    ``info`` of a step holds ``stages`` (records settled now), ``stop`` (``None`` or the record), ``reward_components``
    (they sum to the reward), and at an end ``native_score`` (a true end only), ``is_success``, ``rollout_score``
    and ``report``. A stop is ``terminated``; a budget or a fault is ``truncated``. A wrapper that is told nothing of
    the scenario cannot leak it: the evaluator sees the public task view and the events.
    """

    def __init__(self, env: gym.Env[str, str], *, compiler: BlueprintCompiler | None = None, **settings: Any) -> None:
        """Wraps a world.

        Args:
            env: A :class:`~dynsteer_gym.envs.base.ToolEnv`, or wrappers over one.
            compiler: Compiles blueprints; a shared one shares its cache.
            **settings: Fields of :class:`~dynsteer_gym.settings.Settings`: ``judge``, ``reward``, ``stop``,
                ``success_at``, ``evaluator``, ``render_mode``.

        Raises:
            ConfigurationError: A setting is unknown or out of range, or ``env`` is no ``ToolEnv``.
        """
        RecordConstructorArgs.__init__(self, compiler=compiler, **settings)
        gym.Wrapper.__init__(self, env)
        base = env.unwrapped
        if not isinstance(base, ToolEnv):
            raise ConfigurationError(f"DynSTEERWrapper wraps a ToolEnv (text in, text out); got {type(base).__name__}")
        self._base: ToolEnv = base
        self.settings = Settings.read(settings)
        self.judge: Judge = self.settings.make_judge()
        self.reward = self.settings.make_reward()
        self._reads_progress = self.reward.config.kind == "native_dense"
        if self._reads_progress and type(base).native_progress is ToolEnv.native_progress:
            raise ConfigurationError(f"reward native_dense needs a world that tells its own progress; {type(base).__name__} does not")
        self._config = self.settings.make_evaluator_config()
        self.compiler = compiler if compiler is not None else _shared_compiler()
        self.evaluator: StageEvaluator | None = None
        self.step_events: list[Event] = []
        self.built_in = False
        self._ended = True
        self._request = ""

    @property
    def spec(self) -> Any:
        """The spec that rebuilds the env; an env made by its registered id is one piece."""
        return self.env.spec if self.built_in else gym.Wrapper.spec.fget(self)  # type: ignore[attr-defined]

    @property
    def render_mode(self) -> str | None:
        """How ``render`` shows the episode: ``ansi``, ``human`` or ``None``."""
        return self.settings.render_mode

    @property
    def compiled(self) -> CompiledTask:
        """The blueprint of the running episode, with its literals."""
        if self.evaluator is None:
            raise gym.error.ResetNeeded("Cannot look at the blueprint before calling env.reset()")
        return self.evaluator.task

    @property
    def request(self) -> str:
        """The episode's first request, as the user put it."""
        return self._request

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode and compiles its blueprint from the public view (cached by template)."""
        self._base.observer = None
        observation, info = self.env.reset(seed=seed, options=options)
        base = self._base
        view = base.task_view
        self._request = view.request
        evaluator = StageEvaluator(
            self.compiler.compile(view), view, self._config, compiler=self.compiler, max_turns=base.max_turns
        )
        self.step_events = base.drain_events()
        for event in self.step_events:
            evaluator.observe(event)
        self.evaluator = evaluator
        base.observer = evaluator.observe
        self.reward.reset()
        self._ended = False
        if self.settings.render_mode == "human":
            self._render_human(observation)
        return observation, info

    def step(self, action: str | AssistantTurn) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Runs one assistant turn, settles what it closed, reviews, pays, and stops where a criterion fires."""
        outcome = self.act(action)
        evaluator = self.evaluator
        assert evaluator is not None
        try:
            requests = evaluator.reviews()
            while requests:
                evaluator.apply(self.judge.review(requests))
                requests = evaluator.reviews()
        except Exception as error:
            self.mark_fault(outcome, "judge", error)
        return self.finish(outcome)

    # A vector env runs the parts of a step one by one, and reviews all its envs' requests in one batch between them.

    def act(self, action: str | AssistantTurn) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """First part of a step: the world runs the turn, the evaluator sees its events."""
        if self.evaluator is None or self._ended:
            raise gym.error.ResetNeeded("Cannot call env.step() before calling env.reset(), or after an episode has ended")
        try:
            outcome = self.env.step(action)  # type: ignore[arg-type]
            self.step_events = self._base.drain_events()
            return _checked(outcome)
        except (gym.error.Error, ConfigurationError):
            raise  # A misuse, and no fault of the world.
        except Exception as error:
            self.step_events = []
            return self.mark_fault(("", 0.0, False, True, {"messages": []}), "world", error)

    def mark_fault(
        self, outcome: tuple[str, float, bool, bool, dict[str, Any]], who: str, error: Exception
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Marks a step in which world, user or judge failed: ``info["fault"]``, for trainers to drop the episode.

        Args:
            outcome: The step so far; its ``info`` is marked.
            who: What failed.
            error: How.
        """
        _LOG.warning("a fault of the %s ends the episode", who, exc_info=error)
        outcome[4]["fault"] = f"{who}: {type(error).__name__}: {error}"[:500]
        return outcome

    def finish(self, outcome: tuple[str, float, bool, bool, dict[str, Any]]) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Last part of a step, after its reviews: stop criteria and reward."""
        observation, _, terminated, truncated, info = outcome
        evaluator = self.evaluator
        assert evaluator is not None
        world_end = info.get("world_end")
        fault = info.get("fault")
        true_end = terminated and not fault
        if fault:
            terminated, truncated = False, True
        stop = None
        if not true_end and not fault:
            stop = evaluator.close_turn()
            if stop is not None:
                terminated, truncated = True, False
        native: float | None = None
        if true_end:
            try:
                native = _native(info["native_score"] if "native_score" in info else self._base.native_score())
            except Exception as error:
                self.mark_fault(outcome, "world", error)
                fault, terminated, truncated = info["fault"], False, True
        stages = evaluator.take_stages()
        progress: float | None = None
        if self._reads_progress and not fault:
            try:
                progress = _native(self._base.native_progress())
            except Exception as error:
                self.mark_fault(outcome, "world", error)
                fault, native, terminated, truncated = info["fault"], None, False, True
        if fault:
            reward, components = 0.0, {}
        else:
            reward, components = self.reward.step(
                stages, stop, native, self._base.turn, self._base.max_turns, terminated or truncated, progress
            )
        info["stages"] = stages
        info["stop"] = stop
        info["reward_components"] = components
        if terminated or truncated:
            self._ended = True
            if native is None:
                info.pop("native_score", None)
            else:
                info["native_score"] = native
            info["is_success"] = bool(native is not None and native >= self.settings.success_at and not world_end)
            info["rollout_score"] = evaluator.score
            info["report"] = self.report() if self.settings.report else None
        if self.settings.render_mode == "human":
            self._render_human(observation)
        return observation, reward, terminated, truncated, info

    def lift_stop(self) -> None:
        """Lets an episode that a criterion has stopped go on, without stop rules from here.

        Meant for a :meth:`fork` of it: played to its true end, it shows what the stop saved and whether it was false. A
        call that a minefield intercepted was not run; to play on as without stops, send it again.

        Raises:
            ResetNeeded: The episode was not stopped, or its budget of turns is spent.
        """
        if self.evaluator is None or self.evaluator.stop is None or self._base.turn >= self._base.max_turns:
            raise gym.error.ResetNeeded("only an episode that a criterion has stopped, with turns left, can go on")
        self.evaluator.lift_stop()
        self._ended = False

    def report(self) -> EvaluationReport:
        """The auditable report of the episode so far."""
        if self.evaluator is None:
            raise gym.error.ResetNeeded("Cannot report before calling env.reset()")
        return self.evaluator.report()

    def frontier_summary(self) -> dict[str, Any]:
        """What the privileged observation modes let through: share settled, ready count, kinds of the ready milestones."""
        evaluator = self.evaluator
        assert evaluator is not None
        graph = evaluator.task.blueprint
        ready = evaluator.frontier()
        kinds = sorted({operation.name for key in ready for operation in graph.by_id[key].operations})
        return {"settled": evaluator.coverage, "ready": len(ready), "kinds": kinds}

    def render(self) -> str | None:  # type: ignore[override]
        """The transcript with stage scores (``ansi``); with ``human`` it was printed live."""
        if self.settings.render_mode != "ansi":
            return None
        from dynsteer_gym.rendering import transcript

        return transcript(self)

    def _render_human(self, observation: str) -> None:
        from dynsteer_gym.rendering import show_step

        show_step(self, observation)

    def snapshot(self) -> Any:
        """The running episode, world and evaluation, as an opaque value."""
        evaluator = None if self.evaluator is None else self.evaluator.fork()
        return self._base.snapshot(), evaluator, self.reward.fork(), self._ended, self._request

    def restore(self, snapshot: Any) -> None:
        """Goes back to a snapshot."""
        world, evaluator, reward, self._ended, self._request = snapshot
        self._base.restore(world)
        self.reward = reward.fork()
        self.evaluator = None if evaluator is None else evaluator.fork()
        self._base.observer = None if self.evaluator is None else self.evaluator.observe

    def fork(self) -> Self:
        """An independent copy of the running episode: world, evaluator and reward.

        Raises:
            NotImplementedError: The world cannot be forked.
        """
        other = copy.copy(self)
        other.env = self.env.get_wrapper_attr("fork")() if self.env is not self._base else self._base.fork()
        other._base = other.env.unwrapped  # type: ignore[assignment]
        other.reward = self.reward.fork()
        if self.evaluator is not None:
            other.evaluator = evaluator = self.evaluator.fork()
            other._base.observer = evaluator.observe
        return other


def _checked(outcome: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
    """A world's step, of the types that Gymnasium asks for.

    Raises:
        TypeError: It is something else.
    """
    observation, reward, terminated, truncated, info = outcome
    if not isinstance(observation, str) or not isinstance(info, dict):
        raise TypeError(f"step gave {type(observation).__name__} and {type(info).__name__}, and not a text and a dict")
    return observation, float(reward), bool(terminated), bool(truncated), info


def _native(value: Any) -> float:
    """A native score.

    Raises:
        ValueError: It is no number in [0, 1].
    """
    score = float(value)
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"the native score is {value!r}, and not in [0, 1]")
    return score


_LOG = logging.getLogger("dynsteer_gym")
_COMPILER: list[BlueprintCompiler] = []


def _shared_compiler() -> BlueprintCompiler:
    """One compiler a process: compilation is a pure function of the public view, so its cache may be shared."""
    if not _COMPILER:
        _COMPILER.append(BlueprintCompiler())
    return _COMPILER[0]
