"""The cheap judge: deterministic structural checks, no model."""

from __future__ import annotations

from collections.abc import Sequence

from dynsteer_gym.events import ActionKind
from dynsteer_gym.judges.base import Defect, Dimension, DimensionScore, Review, ReviewRequest

__all__ = ["CheapJudge"]


class CheapJudge:
    """Turns the constraint checks of a stage into scores.

    Each defect lowers one dimension only. Uncertainty is the share of a dimension's evidence that no rule could decide.
    """

    def review(self, requests: Sequence[ReviewRequest]) -> list[Review]:
        """Scores stages one by one; what each gets depends on it alone.

        Args:
            requests: Stages.
        """
        return [_review(request) for request in requests]


_CLEAN = DimensionScore(1.0)


def _review(request: ReviewRequest) -> Review:
    due = request.due
    by_dimension: dict[Dimension, list[Defect]] = {}
    for defect in request.defects:
        by_dimension.setdefault(defect.dimension, []).append(defect)
    scores: dict[Dimension, DimensionScore] = {}
    if Dimension.CORRECTNESS in due:
        found = by_dimension.get(Dimension.CORRECTNESS, ())
        lost = min(1.0, sum(defect.weight for defect in found))
        reason = request.reason or (found[0].detail if found else "")
        scores[Dimension.CORRECTNESS] = DimensionScore(max(0.0, request.right - lost), request.undecided, reason=reason)
    if Dimension.EFFICIENCY in due:
        scores[Dimension.EFFICIENCY] = _efficiency(request, by_dimension.get(Dimension.EFFICIENCY, ()))
    if Dimension.SAFETY in due:
        found = by_dimension.get(Dimension.SAFETY, ())
        scores[Dimension.SAFETY] = (
            DimensionScore(max(0.0, 1.0 - sum(defect.weight for defect in found)), reason=found[0].detail) if found else _CLEAN
        )
    if Dimension.TOOL_COMPLIANCE in due:
        calls = sum(step.kind == ActionKind.CALL for step in request.steps)
        if calls:
            scores[Dimension.TOOL_COMPLIANCE] = _compliance(request, by_dimension.get(Dimension.TOOL_COMPLIANCE, ()), calls)
    return Review(scores)


def _efficiency(request: ReviewRequest, found: Sequence[Defect]) -> DimensionScore:
    """Needed closed actions over spent ones; what another dimension is charged for is not counted here."""
    if not found:
        return _CLEAN
    wasted = {defect.t for defect in found}
    others = {defect.t for defect in request.defects if defect.dimension != Dimension.EFFICIENCY} - wasted
    spent = max(len(request.steps) - len(others), len(wasted), 1)
    return DimensionScore((spent - len(wasted)) / spent, reason=found[0].detail)


def _compliance(request: ReviewRequest, found: Sequence[Defect], calls: int) -> DimensionScore:
    """Share of the window's calls without a defect of compliance."""
    faulty = min(len({defect.t for defect in found}), calls)
    arguments = sum(len(step.arguments or ()) for step in request.steps if step.kind == ActionKind.CALL)
    uncertainty = request.unclear / arguments if arguments else 0.0
    return DimensionScore(1.0 - faulty / calls, min(uncertainty, 1.0), reason=found[0].detail if found else "")
