"""The auditable record of an evaluated episode: pydantic models with a JSON round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from dynsteer_gym.task import TaskView

if TYPE_CHECKING:
    from dynsteer_gym.evaluation.evaluator import StageEvaluator

__all__ = ["EvaluationReport", "build"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DimensionReport(_Record):
    """One dimension's score in a stage."""

    score: float
    uncertainty: float
    asked: str
    served: str
    weight: float
    reason: str


class StageReport(_Record):
    """One settled stage."""

    milestone: str
    goal: str
    t: int
    event: int
    anchor: str | None
    steps: tuple[int, ...]
    share: float
    score: float
    fixed_score: float
    quality: float
    operation: str
    decided_on: str
    satisfied: bool | None
    reviewed: int
    dimensions: dict[str, DimensionReport]


class DefectReport(_Record):
    """One defect."""

    t: int
    kind: str
    dimension: str
    detail: str
    repaired: bool


class StopReport(_Record):
    """The stop."""

    criterion: str
    event: int
    t: int
    turn: int
    anchor: str | None
    dimension: str | None
    evidence: str


class MilestoneReport(_Record):
    """One node of the blueprint."""

    id: str
    request: int
    operations: tuple[str, ...]
    share: float
    support: float
    certain: bool
    after: tuple[str, ...]
    goal: str


class CompilationReport(_Record):
    """How one request's part of the blueprint came about."""

    candidates: int
    valid: int
    dropped: tuple[str, ...]
    low_consensus: bool
    fallback: bool


class EvaluationReport(_Record):
    """Everything that an audit of one episode needs.

    Attributes:
        task_id: The opaque id.
        score: The rollout score ``Q``.
        weighted_score: ``Q_w``, with the moving weights of equation 7.
        coverage: Shares settled.
        quality: Mean fixed-weight score of the settled stages, ``None`` where none settled.
        milestones: The blueprint.
        minefields: Its fatal operations.
        compilations: One entry for each request.
        stages: Settled stages in order.
        defects: What rules found wrong, by closed step.
        first_error: The earliest defect.
        first_critical_error: The earliest unrepaired defect of a failing stage.
        stop: The stop, or ``None``.
        settled: Closed step by milestone.
        provisional: Best partial match of the ready milestones.
        closed_steps: Closed actions seen.
        events: Raw events seen.
        tiers_served_by_cheap: Dimension reviews for which a higher tier was asked and the cheap judge answered.
        config: The evaluator's settings.
    """

    task_id: str
    score: float
    weighted_score: float
    coverage: float
    quality: float | None
    milestones: tuple[MilestoneReport, ...]
    minefields: tuple[str, ...]
    compilations: tuple[CompilationReport, ...]
    stages: tuple[StageReport, ...]
    defects: tuple[DefectReport, ...]
    first_error: DefectReport | None
    first_critical_error: DefectReport | None
    stop: StopReport | None
    settled: dict[str, int]
    provisional: dict[str, float]
    closed_steps: int
    events: int
    tiers_served_by_cheap: int
    config: dict[str, Any]


def build(evaluator: StageEvaluator, view: TaskView) -> EvaluationReport:
    """The report of an evaluation as it stands.

    Args:
        evaluator: The evaluation.
        view: The public view.
    """
    blueprint = evaluator.task.blueprint
    stages, served_cheap = [], 0
    for record in evaluator.stages:
        milestone = blueprint.by_id[record.milestone]
        dimensions = {}
        for dimension, found in record.scores.items():
            asked = record.asked[dimension]
            served_cheap += asked != found.tier
            dimensions[str(dimension)] = DimensionReport(
                score=found.score,
                uncertainty=found.uncertainty,
                asked=str(asked),
                served=str(found.tier),
                weight=record.weights[dimension],
                reason=found.reason,
            )
        stages.append(
            StageReport(
                milestone=record.milestone,
                goal=milestone.goal,
                t=record.t,
                event=record.event,
                anchor=record.anchor,
                steps=record.steps,
                share=record.share,
                score=record.score,
                fixed_score=record.fixed,
                quality=record.quality,
                operation=milestone.operations[record.operation].name,
                decided_on=record.used,
                satisfied=record.satisfied,
                reviewed=record.reviewed,
                dimensions=dimensions,
            )
        )
    failing = {t for record in evaluator.stages if record.quality < evaluator.config.theta_warn for t in record.steps}
    unsettled_from = max((record.t for record in evaluator.stages), default=0)
    order = sorted(range(len(evaluator.defects)), key=lambda place: (evaluator.defects[place].t, place))
    defects = []
    critical = None
    for place in order:
        defect = evaluator.defects[place]
        repaired = place in evaluator.repaired
        entry = DefectReport(
            t=defect.t, kind=defect.kind, dimension=str(defect.dimension), detail=defect.detail, repaired=repaired
        )
        defects.append(entry)
        if critical is None and not repaired and (defect.t in failing or defect.t > unsettled_from or defect.critical):
            critical = entry
    if critical is None:
        critical = _wrong_stage(evaluator)
    first = defects[0] if defects else _wrong_stage(evaluator)
    stop = evaluator.stop
    scores = [record.fixed for record in evaluator.stages]
    return EvaluationReport(
        task_id=view.task_id,
        score=evaluator.score,
        weighted_score=min(sum(record.share * record.score for record in evaluator.stages), 1.0),
        coverage=evaluator.coverage,
        quality=sum(scores) / len(scores) if scores else None,
        milestones=tuple(
            MilestoneReport(
                id=milestone.id,
                request=milestone.request,
                operations=tuple(
                    f"{op.name}({', '.join(f'{name}={role.source}:{role.key}' for name, role in op.bindings)})"
                    for op in milestone.operations
                ),
                share=milestone.share,
                support=milestone.support,
                certain=milestone.certain,
                after=blueprint.predecessors[milestone.id],
                goal=milestone.goal,
            )
            for milestone in blueprint.milestones
        ),
        minefields=tuple(f"{m.kind}: {m.reason}" for m in blueprint.minefields),
        compilations=tuple(
            CompilationReport(
                candidates=own.candidates,
                valid=own.valid,
                dropped=own.dropped,
                low_consensus=own.low_consensus,
                fallback=own.fallback,
            )
            for own in blueprint.compilations
        ),
        stages=tuple(stages),
        defects=tuple(defects),
        first_error=first,
        first_critical_error=critical,
        stop=None
        if stop is None
        else StopReport(
            criterion=str(stop.criterion),
            event=stop.event,
            t=stop.t,
            turn=stop.turn,
            anchor=stop.anchor,
            dimension=stop.dimension,
            evidence=stop.evidence,
        ),
        settled=dict(evaluator.settled),
        provisional=dict(evaluator.provisional),
        closed_steps=evaluator.t,
        events=evaluator.k,
        tiers_served_by_cheap=served_cheap,
        config=evaluator.config.model_dump(mode="json"),
    )


def _wrong_stage(evaluator: StageEvaluator) -> DefectReport | None:
    """The first stage that was settled with the wrong entity or an untrue claim."""
    for record in evaluator.stages:
        for dimension, found in record.scores.items():
            if found.score == 0.0 and found.reason:
                return DefectReport(
                    t=record.t, kind="wrong stage", dimension=str(dimension), detail=found.reason, repaired=False
                )
    return None
