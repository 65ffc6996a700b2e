"""The self-contained page of a replay: overview, list with filters, and each rollout's graph, timeline and stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["write_page"]

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1200px; margin: 2rem auto; padding: 0 1rem; color: #1d2733; }
table { border-collapse: collapse; margin: .6rem 0; } td, th { padding: .25rem .6rem; border-bottom: 1px solid #d5dde5; text-align: left; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
details { border: 1px solid #d5dde5; border-radius: 8px; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; display: flex; gap: 1rem; flex-wrap: wrap; } summary b { min-width: 11rem; }
.good { color: #1d7a46; } .bad { color: #b03a1e; } .stop td { background: #fbe9e4; } .quiet { color: #66717d; }
.parts { display: flex; gap: 1.5rem; flex-wrap: wrap; } .parts > div { flex: 1 1 460px; min-width: 0; overflow-x: auto; }
code { font-size: 12.5px; white-space: pre-wrap; overflow-wrap: anywhere; } svg { max-width: 100%; height: auto; }
form { display: flex; gap: .8rem; flex-wrap: wrap; margin: 1rem 0; } input, select { font: inherit; padding: .2rem .4rem; }
</style></head><body>
<h1>{{ title }}</h1>
<table>
<tr><th>rollouts</th><td class="n">{{ figures.rollouts }}</td><td class="quiet">{{ figures.bad_lines | length }} lines could not be read</td></tr>
<tr><th>mean stage score Q</th><td class="n">{{ figures.score }}</td><td class="quiet">coverage {{ figures.coverage }}</td></tr>
<tr><th>milliseconds a rollout</th><td class="n">{{ figures.ms }}</td><td></td></tr>
{% for criterion, count in figures.stops.items() %}<tr><th>stops: {{ criterion }}</th><td class="n">{{ count }}</td><td class="quiet">virtual</td></tr>{% endfor %}
{% if figures.outcomes %}{% set known = figures.outcomes %}
<tr><th>successes</th><td class="n">{{ known.successes }}</td><td class="quiet">of {{ known.known }} with an outcome</td></tr>
<tr><th>AUROC of Q for success</th><td class="n">{{ known.auroc }}</td><td></td></tr>
<tr><th>false stops</th><td class="n">{{ known.false_stops }}</td><td class="quiet">share of the successes that would have been stopped</td></tr>
<tr><th>turns saved on failures</th><td class="n">{{ known.saved_failing.of_sums }}</td><td class="quiet">of all their turns; mean of the ratios {{ known.saved_failing.mean }}; virtual</td></tr>
{% endif %}
</table>
{% if figures.bad_lines %}<details><summary><b>Lines that could not be read</b></summary><table>
{% for line in figures.bad_lines %}<tr><td class="n">{{ line.line }}</td><td>{{ line.problem }}</td></tr>{% endfor %}</table></details>{% endif %}
<form id="filter"><input name="text" type="search" placeholder="id or request" aria-label="id or request">
<select name="outcome" aria-label="outcome"><option value="">any outcome</option><option>success</option><option>failure</option><option>unknown</option></select>
<select name="stop" aria-label="stop"><option value="">stopped or not</option><option>stopped</option><option>none</option></select>
<label>Q at most <input name="most" type="number" min="0" max="1" step="0.05" value="1"></label> <span id="shown"></span></form>
{% for row in rows %}
<details class="rollout" data-text="{{ (row.id ~ ' ' ~ row.request) | lower }}" data-outcome="{{ row.verdict }}" data-stop="{{ 'stopped' if row.stop else 'none' }}" data-score="{{ row.score }}">
<summary><b>{{ row.id }}</b><span>Q {{ '%.2f' % row.score }}</span><span class="{{ {'success': 'good', 'failure': 'bad'}.get(row.verdict, 'quiet') }}">{{ row.verdict }}</span>
<span class="quiet">{{ row.turns }} turns</span>{% if row.stop %}<span class="bad">{{ row.stop.criterion }} at turn {{ row.stop.turn }}</span>{% endif %}</summary>
<p>{{ row.request }}</p>
{% if row.first_error %}<p class="bad">First error, closed step {{ row.first_error.t }} ({{ row.first_error.dimension }}): {{ row.first_error.kind }}, {{ row.first_error.detail }}{{ ', repaired' if row.first_error.repaired else '' }}</p>{% endif %}
{% if row.stop %}<p class="bad">Stop, {{ row.stop.criterion }}, raw event {{ row.stop.event }}, closed step {{ row.stop.t }}: {{ row.stop.evidence }}</p>{% endif %}
<div class="parts"><div>{{ row.graph | safe }}</div><div>
<table><tr><th>stage</th><th>window</th><th class="n">S0</th><th>scores and reasons</th></tr>
{% for stage in row.report.stages %}<tr><td>{{ stage.milestone }}<br><span class="quiet">{{ stage.goal }}</span></td><td>{{ stage.anchor or 's0' }} → {{ stage.t }}<br><span class="quiet">{{ stage.steps | join(', ') }}</span></td>
<td class="n">{{ '%.2f' % stage.fixed_score }}</td><td>{% for name, part in stage.dimensions.items() %}{{ name }} {{ '%.2f' % part.score }}{{ ': ' ~ part.reason if part.reason else '' }}<br>{% endfor %}</td></tr>{% endfor %}</table></div></div>
<table><tr><th class="n">events</th><th class="n">t</th><th class="n">turn</th><th>action</th><th>settled</th><th>defects</th></tr>
{% for step in row.timeline %}<tr{% if row.stop and row.stop.t == step.t %} class="stop"{% endif %}><td class="n">{{ step.k[0] }}–{{ step.k[1] }}</td><td class="n">{{ step.t }}</td><td class="n">{{ step.turn }}</td>
<td><code>{{ step.action }}</code></td><td>{{ step.settled }}</td><td class="bad">{{ step.defects | join('; ') }}</td></tr>{% endfor %}</table>
</details>
{% endfor %}
<script>
const form = document.getElementById("filter"), rows = [...document.querySelectorAll(".rollout")];
function show() {
  const get = name => form.elements[name].value;
  let count = 0;
  for (const row of rows) {
    const fits = row.dataset.text.includes(get("text").toLowerCase()) && (!get("outcome") || row.dataset.outcome === get("outcome"))
      && (!get("stop") || row.dataset.stop === get("stop")) && Number(row.dataset.score) <= Number(get("most") || 1);
    row.hidden = !fits;
    count += fits;
  }
  document.getElementById("shown").textContent = `${count} of ${rows.length}`;
}
form.addEventListener("input", show);
form.addEventListener("submit", event => event.preventDefault());
show();
</script></body></html>
"""


def write_page(path: Path, title: str, figures: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> None:
    """Writes the page; nothing in it is loaded from elsewhere.

    Args:
        path: Where to.
        title: Heading.
        figures: From :func:`~dynsteer_gym.replay_job.figures`.
        records: From :func:`~dynsteer_gym.replay_job.evaluate_file`.
    """
    from jinja2 import Environment

    from dynsteer_gym.replay_job import SUCCESS

    rows = []
    for record in records:
        if "problem" not in record:
            outcome = record["outcome"]
            verdict = "unknown" if outcome is None else "success" if outcome >= SUCCESS else "failure"
            rows.append({**record, "verdict": verdict})
    template = Environment(autoescape=True, trim_blocks=True).from_string(_PAGE)
    path.write_text(template.render(title=title, figures=figures, rows=rows), encoding="utf-8", errors="replace")
