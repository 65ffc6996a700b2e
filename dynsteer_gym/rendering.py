"""Readable transcripts with stage scores: ``render_mode`` "ansi" and "human"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dynsteer_gym.events import ActionKind, ClosedAction

if TYPE_CHECKING:
    from dynsteer_gym.evaluation.evaluator import StageEvaluator, StageRecord
    from dynsteer_gym.wrapper import DynSTEERWrapper

__all__ = ["action_line", "show_step", "stage_line", "transcript"]


def action_line(action: ClosedAction) -> str:
    """One closed action on one or two lines."""
    if action.kind == ActionKind.MESSAGE:
        return f"{action.t:>3}  agent> {action.text or '(nothing)'}\n     user>  {action.reply}"
    arguments = ", ".join(f"{name}={value!r}" for name, value in (action.arguments or {}).items())
    outcome = action.error_text if action.error is not None else repr(action.value)
    call = action.text if action.arguments is None else f"{action.tool}({arguments})"
    return f"{action.t:>3}  call>  {_short(call)}\n     tool>  {_short(outcome)}"


def _short(text: str, limit: int = 160) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def stage_line(record: StageRecord) -> str:
    """A settled stage on one line."""
    scores = "  ".join(f"{name} {found.score:.2f}" for name, found in record.scores.items())
    return f"     ==> {record.milestone} settled: quality {record.quality:.2f} of share {record.share:.3f}  ({scores})"


def _lines(evaluator: StageEvaluator, start: int = 0) -> Iterator[str]:
    settled = {}
    for record in evaluator.stages:
        settled.setdefault(record.t, []).append(record)
    for action in evaluator.actions[start:]:
        yield action_line(action)
        for record in settled.get(action.t, ()):
            yield stage_line(record)


def transcript(wrapper: DynSTEERWrapper) -> str:
    """The episode so far: actions, returns, stage scores, ready frontier and stop.

    Args:
        wrapper: The evaluating wrapper, after ``reset``.
    """
    evaluator = wrapper.evaluator
    if evaluator is None:
        return "no episode is running; call reset() first"
    graph = evaluator.task.blueprint
    lines = [f"     user>  {wrapper.request}", *_lines(evaluator)]
    ready = [graph.by_id[key].goal for key in evaluator.frontier()]
    lines.append(f"     score {evaluator.score:.3f}, settled {len(evaluator.settled)} of {len(graph.milestones)}")
    if evaluator.stop is not None:
        lines.append(f"     STOP {evaluator.stop.criterion}: {evaluator.stop.evidence}")
    elif ready:
        lines.append(f"     next: {' | '.join(ready)}")
    return "\n".join(lines)


def show_step(wrapper: DynSTEERWrapper, observation: str) -> None:
    """Prints what the last step brought, live, with rich.

    Args:
        wrapper: The evaluating wrapper.
        observation: What the agent sees now.
    """
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    evaluator = wrapper.evaluator
    assert evaluator is not None
    if evaluator.t == 0:
        console.print(f"[bold]user>[/bold] {escape(observation)}")
        return
    turn = evaluator.actions[-1].turn if evaluator.actions else 0
    start = next((place for place, action in enumerate(evaluator.actions) if action.turn == turn), 0)
    for line in _lines(evaluator, start):
        style = "green" if line.lstrip().startswith("==>") else "white"
        console.print(f"[{style}]{escape(line)}[/{style}]")
    if evaluator.stop is not None:
        console.print(f"[red]STOP {evaluator.stop.criterion}: {escape(evaluator.stop.evidence)}[/red]")
