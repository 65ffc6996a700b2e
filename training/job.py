"""The whole job of ``dynsteer train sb3``: train, evaluate, write ``runs/<name>/``."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from dynsteer_gym.training.callbacks import Books
from dynsteer_gym.training.config import TrainConfig
from dynsteer_gym.training.evaluate import Agent, PolicyAgent, RandomAgent
from dynsteer_gym.training.html import record_rollouts, write_report
from dynsteer_gym.training.plots import learning_curve
from dynsteer_gym.training.runner import Trained, env_settings, evaluate_agents, train, write_json

__all__ = ["blind_figure", "run"]

Tell = Callable[[str], None]


def blind_figure(preset: str) -> dict[str, Any] | None:
    """The committed figures of a blind agent that was trained alike, or ``None`` where there are none.

    Args:
        preset: Name of the preset; the file tells seed and steps.
    """
    place = resources.files("dynsteer_gym.training").joinpath("data", f"blind-{preset}.json")
    return json.loads(place.read_text()) if place.is_file() else None


def _comparison(config: TrainConfig) -> dict[str, TrainConfig]:
    sparse = config.model_copy(update={"reward": "sparse", "stop": "none", "anneal": False})
    return {"sparse": sparse, "blind": config.model_copy(update={"blind": True})}


def run(
    config: TrainConfig,
    folder: Path,
    *,
    resume: bool = False,
    compare: bool = False,
    progress: Callable[[str, int, Books, float], None] | None = None,
    tell: Tell = lambda text: None,
) -> dict[str, Any]:
    """Runs the job.

    Args:
        config: The configuration.
        folder: ``runs/<name>``; made where missing.
        resume: Go on from the folder's checkpoints.
        compare: Also train the sparse-reward agent and the blind one at the same number of steps.
        progress: Called after each update with the agent's name, steps, books and rate.
        tell: Called with one line about each part.

    Returns:
        What ``summary.json`` holds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config.model_dump(mode="json"))
    jobs = {"blind" if config.blind else "trained": config}
    if compare:
        jobs.update({name: own for name, own in _comparison(config).items() if name not in jobs})
    done: dict[str, Trained] = {}
    for name, own in jobs.items():
        place = folder if own is config else folder / name
        place.mkdir(exist_ok=True)
        tell(f"training the {name} agent: {own.total_steps:,} steps, seed {own.seed}")
        call = None if progress is None else (lambda steps, books, rate, name=name: progress(name, steps, books, rate))
        done[name] = train(own, place, resume=resume, progress=call, label=name)
        if done[name].interrupted:
            tell(f"interrupted; go on with: dynsteer train sb3 --name {folder.name} --resume")
            return {}
    main = next(iter(done))
    tell("evaluating without stops, deterministic policy")
    agents = evaluate_agents(config, {name: made.model for name, made in done.items()})
    known = None if "blind" in agents else blind_figure(config.preset)
    if known is not None:
        agents["blind"] = known["splits"]
    books = done[main].books
    curve = folder / "curve.png"
    first = config.splits[0]
    levels = {name: agents[name][first]["success"] for name in ("random", "blind") if name in agents and name not in done}
    learning_curve(curve, {name: made.books.curve for name, made in done.items()}, levels, f"preset {config.preset}, seed {config.seed}, {config.curve_episodes} episodes a point")
    summary = {
        "preset": config.preset,
        "seed": config.seed,
        "env_steps": int(done[main].model.num_timesteps),
        "seconds": round(books.seconds, 1),
        "steps_a_second": round(done[main].model.num_timesteps / max(books.seconds, 1e-9), 1),
        "steps_saved": books.saved(int(done[main].model.num_timesteps)),
        "observe": config.observe,
        "blind_figure": None if known is None else {key: known[key] for key in ("seed", "env_steps")},
        "agents": agents,
        "curves": {name: made.books.curve for name, made in done.items()},
    }
    write_json(folder / "summary.json", summary)
    shown: dict[str, Agent] = {main: PolicyAgent(done[main].model), "random": RandomAgent(config.seed)}
    rollouts = record_rollouts(shown, env_settings(config), first)
    lead = (
        f"{summary['env_steps']:,} env steps in {summary['seconds']:.0f} s, observation without anything from the evaluator "
        f"(observe={config.observe!r}); evaluated without stops, with a deterministic policy."
    )
    write_report(folder / "report.html", f"dynsteer train sb3, preset {config.preset}, seed {config.seed}", lead, agents, rollouts, curve)
    return summary
