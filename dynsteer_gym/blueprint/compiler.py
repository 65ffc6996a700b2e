"""From a public task view to a blueprint: synthesis, validation, consensus, reduction, extension by later requests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from dynsteer_gym.blueprint.consensus import Consensus, agree
from dynsteer_gym.blueprint.generation import Candidate, Generator, HeuristicGenerator
from dynsteer_gym.blueprint.graph import (
    Blueprint,
    Compilation,
    CompiledTask,
    Milestone,
    Minefield,
    Operation,
    OperationKind,
    Role,
    RoleSource,
)
from dynsteer_gym.blueprint.planning import Catalogue, Request, read_request
from dynsteer_gym.blueprint.validation import validate
from dynsteer_gym.errors import DynSTEERError
from dynsteer_gym.task import TaskView, ToolSpec

__all__ = ["BlueprintCompiler", "CompilationError", "CompilerConfig"]


class CompilationError(DynSTEERError):
    """No candidate was valid, and no fallback is declared."""


class CompilerConfig(BaseModel):
    """How blueprints are compiled.

    Attributes:
        fallback: With no valid candidate: ``answer`` takes one milestone, a message that ends the request; ``error``
            raises.
        alternatives: Merge classes that exclude each other (off in the paper's mode).
        low_consensus: Fewer valid candidates than this are reported.
        cache_size: Blueprints kept, by template and catalogue.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    fallback: str = Field(default="answer", pattern="^(answer|error)$")
    alternatives: bool = True
    low_consensus: int = Field(default=3, ge=1)
    cache_size: int = Field(default=4096, ge=0)


@dataclass(frozen=True, slots=True)
class _Part:
    """One request's compiled part, before it takes its place in a talk."""

    consensus: Consensus
    compilation: Compilation


class BlueprintCompiler:
    """Compiles public task views; a pure function of them, with a cache.

    >>> from dynsteer_gym.task import TaskView, ToolSpec
    >>> tool = ToolSpec("set_lamp", "Turn the lamp on or off.", {
    ...     "type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]})
    >>> task = BlueprintCompiler().compile(TaskView("t", "Turn the lamp off.", (tool,)))
    >>> [operation.name for milestone in task.blueprint.milestones for operation in milestone.operations]
    ['set_lamp', 'report']
    """

    def __init__(self, config: CompilerConfig | None = None, generator: Generator | None = None) -> None:
        """Makes a compiler.

        Args:
            config: Its configuration.
            generator: Synthesises candidates; the planning heuristics by default.
        """
        self.config = config if config is not None else CompilerConfig()
        self._generator: Generator = generator if generator is not None else HeuristicGenerator()
        self._forget()

    def _forget(self) -> None:
        self._parts: dict[tuple[str, str], _Part] = {}
        self._blueprints: dict[Any, Blueprint] = {}
        self._catalogues: dict[str, Catalogue] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Pickles without the cache, which any process can fill anew."""
        state = dict(self.__dict__)
        for name in ("_parts", "_blueprints", "_catalogues"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def compile(self, view: TaskView) -> CompiledTask:
        """The blueprint of a view's first request.

        Args:
            view: The public task view (equation 1); nothing else is looked at.

        Raises:
            CompilationError: No candidate is valid and ``fallback`` is ``error``.
        """
        request = read_request(view.request, f"r{view.request_index}")
        key = (view.catalogue_key, request.template, view.request_index, max(view.max_requests, 1))
        blueprint = self._blueprints.get(key)
        if blueprint is None:
            part = self._part(view, request.template, view.request)
            empty = Blueprint((), max_requests=max(view.max_requests, 1))
            blueprint = self._blueprints[key] = _extended(empty, part, view.request_index)
        return CompiledTask(blueprint, request.literals)

    def extend(self, task: CompiledTask, view: TaskView) -> CompiledTask:
        """The blueprint of a talk that a new request has been brought into.

        The new part's sources get all sinks of the earlier request as predecessors.

        Args:
            task: What was compiled so far.
            view: The public view as it now stands.

        Raises:
            CompilationError: As for :meth:`compile`.
        """
        request = read_request(view.request, f"r{view.request_index}")
        key = (id(task.blueprint), view.catalogue_key, request.template, view.request_index)
        known = self._blueprints.get(key)
        if known is None or self._blueprints.get(("base", *key)) is not task.blueprint:
            part = self._part(view, request.template, view.request)
            known = _extended(task.blueprint, part, view.request_index)
            if len(self._blueprints) >= self.config.cache_size:
                self._blueprints.clear()
            self._blueprints[key] = known
            self._blueprints[("base", *key)] = task.blueprint
        return CompiledTask(known, {**task.literals, **request.literals})

    def _part(self, view: TaskView, template: str, text: str) -> _Part:
        key = (view.catalogue_key, template)
        part = self._parts.get(key)
        if part is None:
            if len(self._parts) >= self.config.cache_size:
                self._forget()
            part = self._parts[key] = self._synthesise(self._catalogue(view.tools, view.catalogue_key), read_request(text, "r0"))
        return part

    def _catalogue(self, tools: tuple[ToolSpec, ...], key: str) -> Catalogue:
        known = self._catalogues.get(key)
        if known is None:
            known = self._catalogues[key] = Catalogue(tools)
        return known

    def _synthesise(self, catalogue: Catalogue, request: Request) -> _Part:
        candidates = list(self._generator.candidates(catalogue, request))
        valid: list[Candidate] = []
        dropped: list[str] = []
        for candidate in candidates:
            reason = validate(candidate, catalogue, request)
            if reason is None:
                valid.append(candidate)
            else:
                dropped.append(f"{candidate.heuristic}: {reason}")
        consensus = agree(valid, alternatives=self.config.alternatives) if valid else None
        fallback = consensus is None or not consensus.milestones
        if fallback:
            if self.config.fallback == "error":
                reasons = "; ".join(dropped) or "no candidate was synthesised, or none agreed"
                raise CompilationError(f"no blueprint could be compiled: {reasons}")
            end = Operation(OperationKind.MESSAGE, "report")
            consensus = Consensus((Milestone("m0", (end,), 1.0, goal="Tell the user how it ended."),), (), ())
        assert consensus is not None
        compilation = Compilation(
            len(candidates),
            len(valid),
            tuple(dropped),
            len(valid) < self.config.low_consensus,
            fallback,
            consensus.dropped_cycles,
        )
        return _Part(consensus, compilation)


def _extended(base: Blueprint, part: _Part, index: int) -> Blueprint:
    """A blueprint with one more request's part; requests beyond ``max_requests`` pay nothing."""
    prefix = f"r{index}"
    share = 1 / base.max_requests if len(base.compilations) < base.max_requests else 0.0

    def role(own: Role) -> Role:
        return Role(own.source, prefix + own.key[2:]) if own.source == RoleSource.LITERAL else own

    added = []
    for milestone in part.consensus.milestones:
        operations = tuple(
            Operation(op.kind, op.name, tuple((name, role(own)) for name, own in op.bindings)) for op in milestone.operations
        )
        added.append(
            replace(milestone, id=f"{prefix}.{milestone.id}", operations=operations, share=milestone.share * share, request=index)
        )
    edges = [(f"{prefix}.{a}", f"{prefix}.{b}") for a, b in part.consensus.edges]
    if base.milestones:
        last = base.milestones[-1].request
        sinks = [m.id for m in base.milestones if m.request == last and not base.successors[m.id]]
        later = {b for _, b in edges}
        edges += [(sink, m.id) for sink in sinks for m in added if m.id not in later]
    # What an earlier request forbade, this one may ask for: each request screens by its own minefields.
    minefields: tuple[Minefield, ...] = tuple(
        replace(minefield, id=f"{prefix}.{minefield.id}", request=index) for minefield in part.consensus.minefields
    )
    return Blueprint(
        (*base.milestones, *added),
        tuple(sorted((*base.edges, *edges))),
        (*base.minefields, *minefields),
        base.max_requests,
        (*base.compilations, part.compilation),
    )
