"""Keyword arguments of ``gym.make``, checked: a wrong one fails there with one clear sentence."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.evaluation.config import EvaluatorConfig
from dynsteer_gym.evaluation.stopping import StopConfig
from dynsteer_gym.rewards import RewardConfig, RewardFunction

if TYPE_CHECKING:
    import gymnasium as gym

    from dynsteer_gym.judges.base import Judge

__all__ = ["EnvSettings", "Settings", "WorldSettings"]

JUDGES = ("cheap", "standard", "adaptive")


class _Checked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, validate_default=True)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """Checks keyword arguments.

        Raises:
            ConfigurationError: One sentence on the first argument that does not hold.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            raise ConfigurationError(_sentence(cls, error)) from None


def _sentence(model: type[BaseModel], error: ValidationError) -> str:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"]) or "arguments"
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, model.model_fields, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known ones are {', '.join(sorted(model.model_fields))}."
        return f"unknown argument {name!r}; {hint}"
    message = first["msg"].removeprefix("Value error, ")
    given = repr(first.get("input"))
    return f"argument {name!r}: {message[0].lower()}{message[1:]}; got {given if len(given) < 80 else given[:77] + '...'}"


class Settings(_Checked):
    """How a world is evaluated, paid and stopped.

    Attributes:
        judge: ``cheap``, ``standard``, ``adaptive`` (tiers above cheap are served by the cheap judge while no other is
            configured, and reports say so), or an object with ``review(requests)``.
        reward: Name of a preset, ``{"preset": name, ...changes}``, or a ``RewardConfig``.
        stop: Name of a preset, ``{"preset": name, ...changes}``, or a ``StopConfig``.
        evaluator: Fields of ``EvaluatorConfig``, or one; its stop rules are those of ``stop``.
        success_at: Native score from which an episode counts as a success, in (0, 1].
        report: Whether ``info["report"]`` is made at an end.
        render_mode: ``ansi``, ``human`` or ``None``.
    """

    judge: Any = "adaptive"
    reward: Any = "stage"
    stop: Any = "paper"
    evaluator: Any = None
    success_at: float = Field(default=1.0, gt=0, le=1)
    report: bool = True
    render_mode: Literal["ansi", "human"] | None = None

    @field_validator("judge")
    @classmethod
    def _judge(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value not in JUDGES:
                raise ValueError(f"a judge is one of {', '.join(JUDGES)} or an object with a review method")
        elif not callable(getattr(value, "review", None)):
            raise ValueError(f"a judge is one of {', '.join(JUDGES)} or an object with a review method")
        return value

    @field_validator("reward")
    @classmethod
    def _reward(cls, value: Any) -> RewardConfig:
        return _preset(RewardConfig, value, "reward")

    @field_validator("stop")
    @classmethod
    def _stop(cls, value: Any) -> StopConfig:
        return _preset(StopConfig, value, "stop")

    @field_validator("evaluator")
    @classmethod
    def _evaluator(cls, value: Any) -> EvaluatorConfig | None:
        if value is None or isinstance(value, EvaluatorConfig):
            return value
        if isinstance(value, Mapping):
            return EvaluatorConfig(**value)
        raise ValueError("evaluator takes an EvaluatorConfig or its fields")

    def make_judge(self) -> Judge:
        """The judge."""
        if isinstance(self.judge, str):
            from dynsteer_gym.judges.cheap import CheapJudge

            return CheapJudge()
        return self.judge

    def make_reward(self) -> RewardFunction:
        """The reward function of one env."""
        return RewardFunction(self.reward)

    def make_evaluator_config(self) -> EvaluatorConfig:
        """The evaluator's configuration, stop rules included."""
        base = self.evaluator if self.evaluator is not None else EvaluatorConfig()
        return base.model_copy(update={"stop": self.stop})


def _preset(model: Any, value: Any, word: str) -> Any:
    """Reads a preset's name, a mapping with changes to a preset, or a ready model."""
    if isinstance(value, model):
        return value
    if isinstance(value, str):
        return model.preset_named(value)
    if isinstance(value, Mapping):
        changes = dict(value)
        name = changes.pop("preset", None)
        if name is None:
            return model(**changes)
        return model.preset_named(name, **changes)
    raise ValueError(f"{word} takes a preset's name, a mapping or a {model.__name__}")


class WorldSettings(_Checked):
    """Which world, and what of it.

    Attributes:
        backend: The world: ``builtin``, ``bfcl`` (BFCL's multi-turn tasks) or ``toolsandbox`` (Apple's own scenarios).
        suite: Suite of scenarios. ``builtin``: ``phone`` (default), ``phone-long``, ``phone-fixed``, ``endless``,
            ``dynsteer-509``. ``bfcl``: ``all`` (default), ``base``, ``miss_func``, ``miss_param``, ``long_context``.
        split: Split of the suite, such as ``train`` (default); each suite of ``builtin`` has its own, ``bfcl`` has none.
        families: Only scenarios of these families (operators' choice; agents never see them), or ``None``.
        weights: Sampling weights by family, or ``None`` for equal ones.
        max_turns: The most assistant turns, or ``None`` for the suite's own limit.
        render_mode: ``ansi`` or ``None``.
    """

    backend: Literal["builtin", "bfcl", "toolsandbox"] = "builtin"
    suite: str | None = None
    split: str | None = None
    families: tuple[str, ...] | None = None
    weights: dict[str, float] | None = None
    max_turns: int | None = Field(default=None, ge=1)
    render_mode: Literal["ansi", "human"] | None = None

    def make_world(self) -> gym.Env[str, str]:
        """The bare world.

        Raises:
            ConfigurationError: A setting does not go with the backend, or the backend is not installed.
        """
        if self.backend == "bfcl":
            from dynsteer_gym.envs.bfcl import BfclWorld

            for name in ("split", "families", "weights"):
                if getattr(self, name) is not None:
                    raise ConfigurationError(f"backend 'bfcl' has no {name}; choose a category by suite")
            return BfclWorld(category=self.suite or "all", max_turns=self.max_turns, render_mode=self.render_mode)
        if self.backend == "toolsandbox":
            from dynsteer_gym.envs.toolsandbox import ToolSandboxWorld

            for name in ("suite", "split", "families", "weights"):
                if getattr(self, name) is not None:
                    raise ConfigurationError(f"backend 'toolsandbox' has no {name}")
            return ToolSandboxWorld(max_turns=self.max_turns, render_mode=self.render_mode)
        from dynsteer_gym.envs.sandbox import SandboxEnv

        return SandboxEnv(
            suite=self.suite or "phone",
            split=self.split or "train",
            families=self.families,
            weights=self.weights,
            max_turns=self.max_turns,
            render_mode=self.render_mode,
        )


class EnvSettings(Settings, WorldSettings):
    """All keyword arguments of ``DynSTEER-ToolSandbox-v0``.

    Attributes:
        interface: ``text``, or ``discrete`` for SB3's algorithms.
        max_candidates: Size of the discrete action space.
        observe: What of the evaluator the discrete observation holds: ``none``, ``counts``, ``kinds``.
        blind: Hide all words from the discrete observation.
    """

    interface: Literal["text", "discrete"] = "text"
    max_candidates: int = Field(default=96, ge=16)
    observe: Literal["none", "counts", "kinds"] = "none"
    blind: bool = False
    render_mode: Literal["ansi", "human"] | None = None

    def make(self) -> gym.Env[Any, Any]:
        """The evaluated env."""
        from dynsteer_gym.wrapper import DynSTEERWrapper

        evaluated = {name: getattr(self, name) for name in Settings.model_fields}
        env = DynSTEERWrapper(self.make_world(), **evaluated)
        env.built_in = True
        if self.interface == "text":
            return env
        from dynsteer_gym.envs.discrete import DiscreteActions

        discrete = DiscreteActions(env, max_candidates=self.max_candidates, observe=self.observe, blind=self.blind)
        discrete.built_in = True
        return discrete
