"""A file of rollouts replayed over all cores: streaming, resumable, with a summary."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from dynsteer_gym.blueprint.compiler import BlueprintCompiler
from dynsteer_gym.blueprint.drawing import svg
from dynsteer_gym.errors import ConfigurationError
from dynsteer_gym.evaluation.config import EvaluatorConfig
from dynsteer_gym.evaluation.stopping import StopConfig
from dynsteer_gym.events import EventKind
from dynsteer_gym.rendering import action_line
from dynsteer_gym.replay import Line, read_lines, read_tools, recorded, replay

__all__ = ["auroc", "evaluate_file", "evaluate_line", "figures"]

SUCCESS = 1.0
"""Outcome from which a rollout counts as a success."""


def evaluate_line(line: Line, tools: Sequence[Any], compiler: BlueprintCompiler, config: EvaluatorConfig) -> dict[str, Any]:
    """One rollout's record, as JSON data; its outcome is looked at after the evaluation only.

    Args:
        line: A line that could be read.
        tools: The tools on offer.
        compiler: Compiles blueprints.
        config: Settings of the evaluator.
    """
    assert line.rollout is not None
    started = time.perf_counter()
    task = recorded(line.rollout, tools)
    done = replay(task, compiler=compiler, config=config)
    spent = time.perf_counter() - started
    report = done.evaluator.report()
    quality = {stage.milestone: stage.quality for stage in report.stages}
    notes = {key: f"quality {value:.2f}" for key, value in quality.items()}
    colours = {key: "#cfe8d5" if value >= 0.8 else "#f6e3b4" if value >= 0.3 else "#f3c6bb" for key, value in quality.items()}
    settled = {stage.t: stage.milestone for stage in report.stages}
    flawed: dict[int, list[str]] = {}
    for defect in report.defects:
        flawed.setdefault(defect.t, []).append(f"{defect.kind}: {defect.detail}"[:240])
    stop = done.stop
    outcome = line.rollout.get("outcome")
    return {
        "line": line.number,
        "id": str(line.rollout.get("id", f"line-{line.number}")),
        "request": task.view.request[:2000],
        "turns": done.turns,
        "events": sum(event.kind != EventKind.TASK_CHANGE for event in task.events),
        "score": report.score,
        "coverage": report.coverage,
        "stop": None
        if stop is None
        else {"criterion": str(stop.criterion), "event": stop.event, "t": stop.t, "turn": stop.turn, "evidence": stop.evidence},
        "first_error": None if report.first_error is None else report.first_error.model_dump(mode="json"),
        "report": report.model_dump(mode="json"),
        "timeline": [
            {
                "k": [action.first_event, action.last_event],
                "t": action.t,
                "turn": action.turn,
                "action": action_line(action)[:600],
                "settled": settled.get(action.t, ""),
                "defects": flawed.get(action.t, []),
            }
            for action in done.evaluator.actions
        ],
        "graph": svg(done.evaluator.task.blueprint, notes, colours),
        "ms": round(spent * 1e3, 3),
        "outcome": float(outcome) if isinstance(outcome, int | float) else None,
    }


_WORKER: dict[str, Any] = {}


def _start_worker(tools: Path, config: dict[str, Any]) -> None:
    _WORKER.update(tools=read_tools(tools), compiler=BlueprintCompiler(), config=EvaluatorConfig(**config))


def _work(line: Line) -> dict[str, Any]:
    try:
        return evaluate_line(line, _WORKER["tools"], _WORKER["compiler"], _WORKER["config"])
    except Exception as error:  # One odd rollout must not cost the others.
        return {"line": line.number, "problem": f"{type(error).__name__}: {error}"[:500]}


def evaluate_file(
    path: Path,
    tools: Path,
    *,
    stop: str = "paper",
    workers: int | None = None,
    partial: Path | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> list[dict[str, Any]]:
    """Replays a file.

    Args:
        path: Rollouts, ``.jsonl`` or ``.jsonl.gz``.
        tools: Tools in OpenAI's format.
        stop: Preset of the (virtual) stops.
        workers: Processes; as many as there are cores by default.
        partial: Where records are kept while it runs: a run that was killed goes on from there.
        progress: Called with the number of lines done.

    Returns:
        A record for each line that is not empty, in order; one with ``problem`` where it could not be evaluated.

    Raises:
        ConfigurationError: A file cannot be read, or the stops are unknown.
    """
    settings = EvaluatorConfig(stop=StopConfig.preset_named(stop)).model_dump(mode="json")
    read_tools(tools)
    if not path.is_file():
        raise ConfigurationError(f"{path} is no file")
    found = {} if partial is None else _kept(partial, _fingerprint(path, tools, settings))
    keep = None if partial is None else partial.open("a", encoding="utf-8")

    def take(record: dict[str, Any]) -> None:
        found[record["line"]] = record
        if keep is not None:
            keep.write(json.dumps(record, ensure_ascii=False) + "\n")
            keep.flush()
        progress(len(found))

    def waiting() -> Iterator[Line]:
        for line in read_lines(path):
            if line.number in found:
                continue
            if line.rollout is None:
                take({"line": line.number, "problem": line.problem})
            else:
                yield line

    count = workers or os.cpu_count() or 1
    try:
        if count == 1:
            _start_worker(tools, settings)
            for line in waiting():
                take(_work(line))
        else:
            context = multiprocessing.get_context("spawn")
            with context.Pool(count, _start_worker, (tools, settings)) as pool:
                for record in pool.imap_unordered(_work, waiting(), chunksize=4):
                    take(record)
    finally:
        if keep is not None:
            keep.close()
    return [found[number] for number in sorted(found)]


def _fingerprint(path: Path, tools: Path, settings: Mapping[str, Any]) -> str:
    """What a kept record depends on."""
    digest = hashlib.blake2b(digest_size=16)
    for file in (path, tools):
        with file.open("rb") as opened:
            while block := opened.read(1 << 20):
                digest.update(block)
    digest.update(json.dumps(settings, sort_keys=True).encode())
    return digest.hexdigest()


def _kept(partial: Path, fingerprint: str) -> dict[int, dict[str, Any]]:
    """Records of an earlier run of the same files and settings; a line cut short is dropped."""
    found: dict[int, dict[str, Any]] = {}
    lines: list[str] = []
    if partial.exists():
        for place, line in enumerate(partial.read_text(encoding="utf-8").splitlines()):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if place == 0:
                if record.get("fingerprint") != fingerprint:
                    break
            elif "line" in record:
                found[record["line"]] = record
                lines.append(line)
    partial.parent.mkdir(parents=True, exist_ok=True)
    fresh = partial.with_suffix(".tmp")
    fresh.write_text("\n".join([json.dumps({"fingerprint": fingerprint}), *lines]) + "\n", encoding="utf-8")
    os.replace(fresh, partial)
    return found


def auroc(scores: Sequence[float], good: Sequence[bool]) -> float | None:
    """Area under the ROC curve: how often a success scores above a failure, ties counting half; ``None`` without both.

    >>> auroc([0.9, 0.2, 0.5], [True, False, True])
    1.0
    """
    ups = [score for score, one in zip(scores, good, strict=True) if one]
    downs = sorted(score for score, one in zip(scores, good, strict=True) if not one)
    if not ups or not downs:
        return None
    from bisect import bisect_left, bisect_right

    wins = sum(bisect_left(downs, score) + 0.5 * (bisect_right(downs, score) - bisect_left(downs, score)) for score in ups)
    return wins / (len(ups) * len(downs))


def figures(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The table over all rollouts.

    Saved progress is virtual: ``1 - p`` with ``p`` the turn of the stop over all turns, the turn of the stop counted as
    run; a rollout that is not stopped saves nothing. Source: DynSTEER, table 3.

    Args:
        records: From :func:`evaluate_file`.

    Returns:
        JSON data: ``rollouts``, ``bad_lines``, ``score``, ``coverage``, ``ms``, ``stops`` by criterion; where outcomes are
        known ``outcomes`` with ``successes``, ``auroc`` (of the final stage score for success), ``false_stops`` (share of
        the successes that would have been stopped) and ``saved_failing`` (``mean`` of the ratios, and ``of_sums``).
    """
    good = [record for record in records if "problem" not in record]
    found: dict[str, Any] = {
        "rollouts": len(good),
        "bad_lines": [{"line": record["line"], "problem": record["problem"]} for record in records if "problem" in record],
        "score": _mean([record["score"] for record in good]),
        "coverage": _mean([record["coverage"] for record in good]),
        "ms": _mean([record["ms"] for record in good]),
        "stops": dict(Counter(record["stop"]["criterion"] for record in good if record["stop"])),
    }
    judged = [record for record in good if record["outcome"] is not None]
    if judged:
        success = [record["outcome"] >= SUCCESS for record in judged]
        area = auroc([record["score"] for record in judged], success)
        failing = [record for record, one in zip(judged, success, strict=True) if not one]
        stopped = [record["stop"] is not None for record, one in zip(judged, success, strict=True) if one]
        saved = [record["turns"] - record["stop"]["turn"] if record["stop"] else 0 for record in failing]
        found["outcomes"] = {
            "known": len(judged),
            "successes": sum(success),
            "auroc": None if area is None else round(area, 3),
            "false_stops": _mean([float(one) for one in stopped]),
            "saved_failing": {
                "mean": _mean([part / max(record["turns"], 1) for part, record in zip(saved, failing, strict=True)]),
                "of_sums": round(sum(saved) / max(sum(record["turns"] for record in failing), 1), 3),
            },
        }
    return found


def _mean(numbers: Sequence[float]) -> float | None:
    return round(mean(numbers), 3) if numbers else None
