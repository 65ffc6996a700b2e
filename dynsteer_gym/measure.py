"""What ``dynsteer measure`` prints: how the evaluator does on runs whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

__all__ = ["measure_suite"]


def measure_suite(split: str = "all", seed: int = 0, limit: int | None = None) -> dict[str, Any]:
    """Experts and rivals of ``dynsteer-509`` under the evaluator with the stops of the paper.

    Args:
        split: Split of the suite.
        seed: Decides where rivals err.
        limit: Only so many scenarios, or ``None`` for all.

    Returns:
        JSON data: ``expert`` and each fault, with ``runs``, ``success`` (native score 1), ``stage_score`` (mean rollout
        score ``Q``), ``stopped`` (share), ``false_stops`` (share of the successful runs that would have been stopped),
        ``steps_saved`` (share of the turns of failing runs), and for faults ``located``: share of runs in which the
        earliest defect found is the logged first error.
    """
    from dynsteer_gym.envs.sandbox.agents import Expert
    from dynsteer_gym.envs.sandbox.rivals import FAULTS, Rival
    from dynsteer_gym.envs.sandbox.suite import closed_suite

    instances = closed_suite("dynsteer-509", split)[:limit]
    found: dict[str, Any] = {"expert": _summary([_played(instance, Expert(instance), None) for instance in instances])}
    for fault in FAULTS:
        share = 1.0 if fault in ("unsafe_act", "never_asks") else 0.5
        runs = []
        for place, instance in enumerate(instances):
            rival = Rival(instance, {fault: share}, seed * 100_003 + place, most=1)
            if rival.first_error is not None:
                runs.append(_played(instance, rival, rival.first_error.turn))
        found[fault] = _summary(runs)
    return found


def _played(instance: Any, agent: Any, error: int | None) -> dict[str, Any]:
    """One run to its end, with the turn at which the first stop would have come."""
    from dynsteer_gym.envs.sandbox import SandboxEnv
    from dynsteer_gym.evaluation.stopping import Criterion
    from dynsteer_gym.wrapper import DynSTEERWrapper

    env = DynSTEERWrapper(SandboxEnv(suite="dynsteer-509", split="all"), stop="paper")
    observation, _ = env.reset(options={"scenario": instance.name})
    world: SandboxEnv = env.unwrapped  # type: ignore[assignment]
    stopped: int | None = None
    done, info = False, {}
    while not done:
        action = agent.act(observation)
        observation, _, terminated, truncated, info = env.step(action)
        if info["stop"] is not None and stopped is None and not world.ended:
            stopped = world.turn
            env.lift_stop()
            terminated = False
            if info["stop"].criterion is Criterion.MINEFIELD:  # The call was held back; played on, it runs.
                observation, _, terminated, truncated, info = env.step(action)
        done = terminated or truncated
    score = float(info.get("native_score", 0.0))
    first = info["report"].first_error
    return {
        "success": score == 1.0,
        "stage_score": info["rollout_score"],
        "stopped": stopped,
        "turns": world.turn,
        "located": None if error is None else first is not None and first.t == error,  # One action a turn.
    }


def _summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    good = [run for run in runs if run["success"]]
    bad = [run for run in runs if not run["success"]]
    saved = sum(run["turns"] - run["stopped"] for run in bad if run["stopped"] is not None)
    located = [run["located"] for run in runs if run["located"] is not None]
    return {
        "runs": len(runs),
        "success": _share(len(good), len(runs)),
        "stage_score": round(mean(run["stage_score"] for run in runs), 3) if runs else None,
        "stopped": _share(sum(run["stopped"] is not None for run in runs), len(runs)),
        "false_stops": _share(sum(run["stopped"] is not None for run in good), len(good)),
        "steps_saved": _share(saved, sum(run["turns"] for run in bad)),
        "located": _share(sum(located), len(located)),
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None
