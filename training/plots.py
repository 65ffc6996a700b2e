"""Learning curves as PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["learning_curve"]


def learning_curve(path: Path, curves: Mapping[str, Sequence[Mapping[str, float]]], levels: Mapping[str, float], title: str) -> None:
    """Draws success over env steps, with stage return of the trained agent beside it.

    Args:
        path: The PNG file to write.
        curves: Points with ``steps``, ``success`` and ``stage_return`` by agent.
        levels: Success of agents that are horizontal lines.
        title: Heading.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), dpi=130)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    colours = {"trained": "#1f6fb4", "sparse": "#c4572e", "blind": "#8a8a8a"}
    for name, points in curves.items():
        steps = [point["steps"] / 1000 for point in points]
        axes.plot(steps, [point["success"] for point in points], color=colours.get(name), label=f"{name}: success")
        if name == "trained":
            stage = [point["stage_return"] for point in points]
            axes.plot(steps, stage, color=colours[name], alpha=0.45, linestyle="--", label="trained: stage return")
    styles = {"random": ":", "blind": "-.", "expert": "-"}
    for name, level in levels.items():
        axes.axhline(level, color="#777777", linewidth=1, linestyle=styles.get(name, ":"), label=name)
    axes.set_xlabel("env steps (thousands)")
    axes.set_ylabel("unseen seeds, deterministic policy, no stops")
    axes.set_ylim(-0.02, 1.02)
    axes.set_title(title, fontsize=11)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, loc="center right")
    figure.tight_layout()
    figure.savefig(path)
