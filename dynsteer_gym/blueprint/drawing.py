"""Blueprints as text, Graphviz DOT and SVG."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from dynsteer_gym.blueprint.graph import Blueprint, Milestone, Operation

__all__ = ["dot", "svg", "text"]

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 230, 46, 36, 40


def _operation(operation: Operation) -> str:
    bound = ", ".join(f"{name}={role.key or role.source}" for name, role in operation.bindings)
    return f"{operation.name}({bound})"


def label(milestone: Milestone) -> str:
    """The milestone's alternatives, by name."""
    return " | ".join(dict.fromkeys(operation.name for operation in milestone.operations))


def text(blueprint: Blueprint, literals: Mapping[str, object] | None = None) -> str:
    """The graph in words, one milestone a paragraph.

    Args:
        blueprint: The graph.
        literals: Values of the literal roles, shown where given.
    """
    lines = []
    for milestone in blueprint.milestones:
        after = ", ".join(blueprint.predecessors[milestone.id]) or "start"
        anchor = blueprint.anchors[milestone.id] or "s0"
        sure = "certain" if milestone.certain else f"support {milestone.support:.2f}"
        lines.append(f"{milestone.id}  {milestone.goal}  [share {milestone.share:.3f}, {sure}, after {after}, anchor {anchor}]")
        lines.extend(f"      {'or ' if place else ''}{_operation(op)}" for place, op in enumerate(milestone.operations))
    for minefield in blueprint.minefields:
        lines.append(f"{minefield.id}  {minefield.kind}: {minefield.reason}")
    for key, value in (literals or {}).items():
        lines.append(f"      {key} = {value!r}")
    return "\n".join(lines)


def dot(blueprint: Blueprint) -> str:
    """The graph in Graphviz's language."""
    lines = ["digraph blueprint {", "  rankdir=TB; node [shape=box];"]
    for milestone in blueprint.milestones:
        caption = f"{milestone.id}: {label(milestone)}".replace('"', "'")
        lines.append(f'  "{milestone.id}" [label="{caption}"];')
    lines.extend(f'  "{earlier}" -> "{later}";' for earlier, later in blueprint.edges)
    return "\n".join([*lines, "}"])


def svg(blueprint: Blueprint, notes: Mapping[str, str] | None = None, colours: Mapping[str, str] | None = None) -> str:
    """The graph as a picture, layered by longest path.

    Args:
        blueprint: The graph.
        notes: A second line in a milestone's box, such as its score.
        colours: Fill of a milestone's box.
    """
    level: dict[str, int] = {}
    for milestone in blueprint.milestones:
        level[milestone.id] = 1 + max((level[key] for key in blueprint.predecessors[milestone.id]), default=-1)
    rows: dict[int, list[str]] = {}
    for key, depth in level.items():
        rows.setdefault(depth, []).append(key)
    widest = max((len(row) for row in rows.values()), default=1)
    width = widest * (_WIDTH + _GAP_X) + _GAP_X
    height = len(rows) * (_HEIGHT + _GAP_Y) + 10
    place: dict[str, tuple[float, float]] = {}
    for depth, row in rows.items():
        start = (width - len(row) * (_WIDTH + _GAP_X) + _GAP_X) / 2
        for column, key in enumerate(row):
            place[key] = (start + column * (_WIDTH + _GAP_X), 5 + depth * (_HEIGHT + _GAP_Y))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>',
    ]
    for earlier, later in blueprint.edges:
        (x1, y1), (x2, y2) = place[earlier], place[later]
        parts.append(
            f'<line x1="{x1 + _WIDTH / 2}" y1="{y1 + _HEIGHT}" x2="{x2 + _WIDTH / 2}" y2="{y2}" stroke="#555" marker-end="url(#tip)"/>'
        )
    for milestone in blueprint.milestones:
        x, y = place[milestone.id]
        fill = (colours or {}).get(milestone.id, "#eef2f7")
        caption = escape(f"{milestone.id}  {label(milestone)}"[:36])
        note = escape((notes or {}).get(milestone.id, ""))
        parts.append(f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="{fill}" stroke="#567"/>')
        parts.append(f'<text x="{x + 10}" y="{y + (19 if note else 28)}">{caption}</text>')
        if note:
            parts.append(f'<text x="{x + 10}" y="{y + 36}" fill="#444">{note}</text>')
    return "".join([*parts, "</svg>"])
