"""The self-contained HTML report of a run: table, curve, three rollouts with their blueprints."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np

from dynsteer_gym.blueprint.drawing import svg
from dynsteer_gym.envs.discrete import DiscreteActions
from dynsteer_gym.rendering import action_line
from dynsteer_gym.settings import EnvSettings
from dynsteer_gym.training.evaluate import Agent, family_of
from dynsteer_gym.wrapper import DynSTEERWrapper

__all__ = ["record_rollouts", "write_report"]

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2rem auto; padding: 0 1rem; color: #1d2733; }
table { border-collapse: collapse; margin: 1rem 0; } td, th { padding: .3rem .7rem; border-bottom: 1px solid #d5dde5; text-align: right; }
td:first-child, th:first-child, td:nth-child(2), th:nth-child(2) { text-align: left; }
.rollout { border: 1px solid #d5dde5; border-radius: 8px; padding: 1rem; margin: 1.2rem 0; display: flex; gap: 1.5rem; flex-wrap: wrap; }
.rollout > div { flex: 1 1 420px; min-width: 0; } pre { white-space: pre-wrap; font-size: 12.5px; background: #f5f8fa; padding: .7rem; border-radius: 6px; }
.error { color: #b03a1e; font-weight: 600; } .stop { color: #b03a1e; } img, svg { max-width: 100%; height: auto; }
</style></head><body>
<h1>{{ title }}</h1>
<p>{{ lead }}</p>
<table><tr><th>agent</th><th>split</th><th>success</th><th>native</th><th>stage return</th><th>steps</th><th>episodes</th></tr>
{% for agent, splits in agents.items() %}{% for split, row in splits.items() %}
<tr><td>{{ agent }}</td><td>{{ split }}</td><td>{{ '%.3f' % row.success }}</td><td>{{ '%.3f' % row.native }}</td>
<td>{{ '%.3f' % row.stage_return }}</td><td>{{ '%.2f' % row.steps }}</td><td>{{ row.episodes }}</td></tr>
{% endfor %}{% endfor %}</table>
{% if curve %}<img alt="Learning curve" src="data:image/png;base64,{{ curve }}">{% endif %}
<h2>Three rollouts</h2>
{% for rollout in rollouts %}
<div class="rollout"><div><h3>{{ rollout.heading }}</h3>
<p>{{ rollout.outcome }}</p>
{% if rollout.error %}<p class="error">First error, closed step {{ rollout.error.t }}: {{ rollout.error.detail }} ({{ rollout.error.dimension }})</p>{% endif %}
{% if rollout.stop %}<p class="stop">Stopped, {{ rollout.stop.criterion }}, closed step {{ rollout.stop.t }}: {{ rollout.stop.evidence }}</p>{% endif %}
<pre>user>  {{ rollout.request }}
{% for line in rollout.lines %}{{ line }}
{% endfor %}</pre></div><div>{{ rollout.graph | safe }}</div></div>
{% endfor %}
</body></html>
"""


def _colour(quality: float) -> str:
    return "#cfe8d5" if quality >= 0.8 else "#f6e3b4" if quality >= 0.3 else "#f3c6bb"


def record_rollouts(agents: dict[str, Agent], settings: dict[str, Any], split: str, count: int = 3) -> list[dict[str, Any]]:
    """Plays some episodes with stops on and keeps what a reader wants to see.

    Args:
        agents: Agents by name; the last one is asked for failures, so that stops and errors are seen.
        settings: Keyword arguments of ``gym.make``.
        split: Split to play on.
        count: How many rollouts.
    """
    found: list[dict[str, Any]] = []
    plan = [next(iter(agents))] * (count - 1) + [list(agents)[-1]]
    for number, name in enumerate(plan):
        shown = {**settings, "blind": name == "blind"}
        made = EnvSettings.read({**shown, "split": split, "interface": "discrete", "report": True})
        env = made.make()
        assert isinstance(env, DiscreteActions)
        core = env.env
        assert isinstance(core, DynSTEERWrapper)
        info: dict[str, Any] = {}
        last = number == count - 1
        for attempt in range(20):
            observation, _ = env.reset(seed=70_000 + number + 100 * attempt)
            done = False
            while not done:
                action = agents[name].act(observation[None], env.action_masks()[None])[0]
                observation, _, terminated, truncated, info = env.step(np.int64(action))
                done = terminated or truncated
            if not last or (info["stop"] is not None and core.evaluator is not None and core.evaluator.stages):
                break
        report, evaluator = info["report"], core.evaluator
        assert evaluator is not None
        quality = {stage.milestone: stage.quality for stage in report.stages}
        notes = {key: f"quality {value:.2f}" for key, value in quality.items()}
        colours = {key: _colour(value) for key, value in quality.items()}
        native = info.get("native_score")
        found.append(
            {
                "heading": f"{name} agent, family {family_of(env)}",
                "request": core.request,
                "outcome": f"Native score {'none' if native is None else f'{native:.2f}'}, "
                f"stage return {info['rollout_score']:.2f}, {len(quality)} of {len(report.milestones)} milestones settled.",
                "error": report.first_error,
                "stop": report.stop,
                "lines": [action_line(action) for action in evaluator.actions],
                "graph": svg(evaluator.task.blueprint, notes, colours),
            }
        )
    return found


def write_report(
    path: Path, title: str, lead: str, agents: dict[str, Any], rollouts: list[dict[str, Any]], curve: Path | None
) -> None:
    """Writes the page; nothing in it is loaded from elsewhere."""
    from jinja2 import Environment

    image = base64.b64encode(curve.read_bytes()).decode() if curve is not None and curve.exists() else ""
    template = Environment(autoescape=True).from_string(_PAGE)
    path.write_text(template.render(title=title, lead=lead, agents=agents, rollouts=rollouts, curve=image), encoding="utf-8")
