"""The command line: ``dynsteer train sb3 | run | scenarios | blueprint | bench``."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Stage-wise reward and early stops for tool-using agents.")
train_app = typer.Typer(no_args_is_help=True, help="Train an agent.")
app.add_typer(train_app, name="train")
toolsandbox = typer.Typer(no_args_is_help=True, help="Apple's ToolSandbox, from a checkout of your own.")
app.add_typer(toolsandbox, name="toolsandbox")
measures = typer.Typer(no_args_is_help=True, help="Measure how the evaluator does where the truth is known.")
app.add_typer(measures, name="measure")


def _version(value: bool) -> None:
    if value:
        from dynsteer_gym import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False) -> None:
    pass


@train_app.command("sb3")
def train_sb3(
    preset: Annotated[str, typer.Option(help="quick, long or smoke.")] = "quick",
    name: Annotated[str | None, typer.Option(help="Folder under runs/; the preset and seed by default.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = 0,
    steps: Annotated[int | None, typer.Option(help="Env steps instead of the preset's.")] = None,
    observe: Annotated[str | None, typer.Option(help="none, counts or kinds; the last two are privileged.")] = None,
    blind: Annotated[bool, typer.Option(help="Train the baseline that sees no words.")] = False,
    compare: Annotated[bool, typer.Option(help="Also train the sparse-reward and the blind agent.")] = False,
    resume: Annotated[bool, typer.Option(help="Go on from the folder's checkpoint.")] = False,
    runs: Annotated[Path, typer.Option(help="Where runs go.")] = Path("runs"),
) -> None:
    """Train MaskablePPO on the built-in world with stage reward and early stops, evaluate it, write runs/<name>/."""
    # Two workers and the learner share the cores: numeric libraries must not start threads of their own in each.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from dynsteer_gym.training.config import TrainConfig
    from dynsteer_gym.training.job import run

    changes = {"seed": seed, "total_steps": steps, "observe": observe, "blind": blind or None}
    config = TrainConfig.from_preset(preset, **changes)
    folder = runs / (name or f"{preset}{'-blind' if blind else ''}-{seed}")
    console = Console()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]:.0f} steps/s  success {task.fields[success]:.2f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        tasks: dict[str, Any] = {}

        def progress(agent: str, done: int, books: Any, rate: float) -> None:
            if agent not in tasks:
                tasks[agent] = bar.add_task(agent, total=config.total_steps, rate=0.0, success=0.0)
            bar.update(tasks[agent], completed=min(done, config.total_steps), rate=rate, success=books.rows[-1]["success"])

        summary = run(config, folder, resume=resume, compare=compare, progress=progress, tell=console.print)
    if not summary:
        raise typer.Exit(130)
    _table(console, summary)
    console.print(f"written to {folder}/: summary.json, config.json, metrics.csv, model.zip, curve.png, report.html")


def _table(console: Any, summary: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(title=f"preset {summary['preset']}, seed {summary['seed']}: no stops, deterministic policy")
    for heading in ("agent", "split", "success", "native", "stage return", "steps"):
        table.add_column(heading, justify="left" if heading in ("agent", "split") else "right")
    for agent, splits in summary["agents"].items():
        for split, row in splits.items():
            values = (f"{row[key]:.3f}" for key in ("success", "native", "stage_return"))
            table.add_row(agent, split, *values, f"{row['steps']:.2f}")
    console.print(table)
    saved = summary["steps_saved"]
    console.print(
        f"{summary['env_steps']:,} env steps in {summary['seconds']:.0f} s ({summary['steps_a_second']:.0f}/s); stops ended "
        f"{saved['stopped_episodes']:,} of {saved['episodes']:,} training episodes"
    )
    control = saved["control"]
    if control["episodes"]:
        console.print(
            f"control arm, live: {control['episodes']} of them played on for {control['further_turns']:.1f} further turns, so that stops "
            f"saved about {saved['steps']:,.0f} steps ({100 * saved['share']:.1f} % of all); {control['false_stops']} would have succeeded "
            f"({100 * control['false_stop_share']:.1f} %, with 95 % confidence at most {100 * control['false_stop_at_most']:.1f} %)"
        )
    known = summary["blind_figure"]
    if known is not None:
        console.print(f"blind: committed figure (seed {known['seed']}, {known['env_steps']:,} steps); --compare trains it anew")
    worst = sorted(next(iter(summary["agents"]["trained"].values()))["families"].items(), key=lambda item: item[1])[:3] if "trained" in summary["agents"] else []
    if worst:
        console.print("weakest families: " + ", ".join(f"{name} {rate:.2f}" for name, rate in worst))


def _load_agent(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("agent_script", path)
    if spec is None or spec.loader is None:
        raise typer.BadParameter(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not callable(getattr(module, "act", None)):
        raise typer.BadParameter(f"{path} defines no function act(observation, info) -> str")
    return module.act


@app.command("run")
def run_one(
    scenario: Annotated[str | None, typer.Argument(help="Name or task id; a random one of the phone by default.")] = None,
    agent: Annotated[Path | None, typer.Option(help="Python file with act(observation, info) -> str; the keyboard by default.")] = None,
    expert: Annotated[bool, typer.Option(help="Let the scenario's own expert play.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of a random scenario.")] = 0,
    stop: Annotated[str, typer.Option(help="none, provable or paper.")] = "paper",
    report: Annotated[Path | None, typer.Option(help="Write the auditable report as JSON.")] = None,
) -> None:
    """Play one scenario: an agent script, the expert, or you at the keyboard."""
    import gymnasium as gym

    import dynsteer_gym  # noqa: F401

    env: Any = gym.make("DynSTEER-ToolSandbox-v0", stop=stop, render_mode="human", disable_env_checker=True)
    observation, info = env.reset(seed=seed, options={"scenario": scenario} if scenario else None)
    act = _load_agent(agent) if agent is not None else None
    if expert:
        from dynsteer_gym.envs.sandbox.agents import Expert

        player = Expert(env.unwrapped.instance)
        act = lambda text, _: player.act(text)  # noqa: E731
    if act is None:
        typer.echo("tools: " + ", ".join(tool["function"]["name"] for tool in info["tools"]))
        typer.echo('write a call such as search_contacts(name="Ada"), or a message to the user; an empty line ends')
    done = False
    while not done:
        if act is None:
            line = input("you> ")
            if not line.strip():
                break
        else:
            line = act(observation, info)
        observation, _, terminated, truncated, info = env.step(line)
        done = terminated or truncated
    if done:
        stopped = info["stop"]
        typer.echo(
            f"native score {info.get('native_score')}, stage return {info['rollout_score']:.3f}, "
            f"stop {stopped.criterion if stopped else None}"
        )
    if report is not None:
        report.write_text(env.get_wrapper_attr("report")().model_dump_json(indent=2))
    env.close()


@app.command("scenarios")
def scenarios(
    suite: Annotated[str, typer.Option(help="phone-fixed or dynsteer-509.")] = "dynsteer-509",
    split: Annotated[str, typer.Option(help="Split of dynsteer-509: train, validation, test or all.")] = "all",
    stats: Annotated[bool, typer.Option("--stats", help="Print the suite's table, counted from its scenarios.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON: one object a line, or the statistics as one.")] = False,
) -> None:
    """List the scenarios of a closed suite (operators' view: names and families are hidden from agents)."""
    from dynsteer_gym.envs.sandbox.suite import closed_suite

    instances = closed_suite(suite, split)
    if stats:
        from dynsteer_gym.envs.sandbox.statistics import suite_statistics

        found = suite_statistics(instances)
        if as_json:
            typer.echo(json.dumps(found, indent=2))
        else:
            _print_statistics(found, suite)
        return
    for instance in instances:
        request = instance.requests[0]
        if as_json:
            entry = {
                "name": instance.name,
                "task_id": instance.task_id,
                "domain": instance.domain,
                "variant": instance.variant,
                "families": [item.family for item in instance.requests],
                "calls": sum(not isinstance(turn, str) for item in instance.requests for turn in item.plan),
                "tools": len(instance.tools),
                "minefields": [mine.kind for mine in instance.minefields or ()],
                "request": request.text,
            }
            typer.echo(json.dumps(entry, ensure_ascii=False))
        else:
            typer.echo(f"{instance.name:<26} {instance.domain:<10} {instance.variant:<12} {request.text}")


def _print_statistics(found: dict[str, Any], suite: str) -> None:
    from rich.console import Console
    from rich.table import Table

    def row(name: str, part: dict[str, Any]) -> tuple[str, ...]:
        turns, tools, mines = part["user_turns"], part["tools"], part["minefields"]
        kinds = ", ".join(f"{kind} {count}" for kind, count in mines["kinds"].items())
        return (
            name,
            str(part["scenarios"]),
            f"{turns['mean']:.1f} ({turns['fewest']}-{turns['most']})",
            f"{tools['mean']:.1f} ({tools['fewest']}-{tools['most']})",
            f"{mines['all']} ({mines['hazard']} + {mines['unsupported']})",
            kinds,
        )

    table = Table("domain", "scenarios", "user turns", "tools", "minefields (hazard + unsupported)", "kinds", title=suite)
    for name, part in found["domains"].items():
        table.add_row(*row(name, part))
    table.add_section()
    table.add_row(*row("all", found))
    console = Console()
    console.print(table)
    variants = Table("variant", "scenarios")
    for name, count in found["variants"].items():
        variants.add_row(name, str(count))
    console.print(variants)
    calls = found["calls"]
    console.print(
        f"{found['families']} families ({found['primary_families']} of them come first in a scenario); "
        f"{calls['mean']:.1f} calls by the expert on average, {calls['10 to 25']} scenarios with 10 to 25, "
        f"{calls['40 to 110']} with 40 to {calls['most']}"
    )


@app.command("blueprint")
def blueprint(
    scenario: Annotated[str, typer.Argument(help="Name or task id, such as calendar-017 or add_contact/0.")],
    dot: Annotated[Path | None, typer.Option(help="Write Graphviz DOT.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write a picture.")] = None,
) -> None:
    """Compile and print the blueprint of a scenario from its public view; draw it."""
    from dynsteer_gym.blueprint import drawing
    from dynsteer_gym.blueprint.compiler import BlueprintCompiler
    from dynsteer_gym.envs.sandbox import SandboxEnv

    env = SandboxEnv()
    env.reset(options={"scenario": scenario})
    task = BlueprintCompiler().compile(env.task_view)
    typer.echo(f"request: {env.task_view.request}")
    typer.echo(drawing.text(task.blueprint, task.literals))
    if dot is not None:
        dot.write_text(drawing.dot(task.blueprint))
    if svg is not None:
        svg.write_text(drawing.svg(task.blueprint))


@app.command("bench")
def bench(
    out: Annotated[Path | None, typer.Option("--json", help="Write the figures to a file.")] = None,
) -> None:
    """Measure the budgets: microseconds a step, growth, resets, forks, memory, imports, training rate."""
    from dynsteer_gym.benchmark import measure

    figures = measure(tell=lambda name, value: typer.echo(f"{name:<20} {value}"))
    if out is not None:
        out.write_text(json.dumps(figures, indent=2) + "\n")


@app.command("replay")
def replay_rollouts(
    rollouts: Annotated[Path, typer.Argument(help="Rollouts in OpenAI chat format, .jsonl or .jsonl.gz: one object with messages a line.")],
    tools: Annotated[Path, typer.Option(help="The tools on offer, in OpenAI's format.")],
    out: Annotated[Path | None, typer.Option("--json", help="Write figures and reports; a run that was killed goes on from there.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained page.")] = None,
    stop: Annotated[str, typer.Option(help="Stops, virtual: none, provable or paper.")] = "paper",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; all cores by default.")] = None,
) -> None:
    """Replay recorded rollouts through blueprint, stages, judge and virtual stops."""
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from dynsteer_gym.replay import read_lines
    from dynsteer_gym.replay_job import evaluate_file, figures
    from dynsteer_gym.replay_page import write_page

    console = Console()
    partial = None if out is None else out.with_name(f"{out.name}.partial.jsonl")
    total = sum(1 for _ in read_lines(rollouts))
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("replaying", total=total)
        records = evaluate_file(
            rollouts, tools, stop=stop, workers=workers, partial=partial, progress=lambda done: progress.update(task, completed=done)
        )
    found = figures(records)
    table = Table("figure", "value", title=str(rollouts.name))
    known = found.get("outcomes")
    for name in ("rollouts", "score", "coverage", "ms"):
        table.add_row(name, str(found[name]))
    for criterion, count in found["stops"].items():
        table.add_row(f"virtual stops: {criterion}", str(count))
    if known:
        table.add_row("successes", f"{known['successes']} of {known['known']}")
        table.add_row("AUROC of the stage score", str(known["auroc"]))
        table.add_row("false stops on successes", str(known["false_stops"]))
        saved = known["saved_failing"]
        table.add_row("turns saved on failures", f"{saved['of_sums']} of all; mean ratio {saved['mean']}")
    console.print(table)
    for line in found["bad_lines"]:
        typer.echo(f"line {line['line']}: {line['problem']}", err=True)
    if html is not None:
        write_page(html, f"Replay of {rollouts.name}", found, records)
    if out is not None and partial is not None:
        out.write_text(json.dumps({"figures": found, "rollouts": records}, ensure_ascii=False), encoding="utf-8")
        partial.unlink(missing_ok=True)


@toolsandbox.command("install")
def toolsandbox_install(path: Annotated[Path, typer.Argument(help="A checkout of apple/ToolSandbox.")]) -> None:
    """Check a checkout of ToolSandbox, say what is wrong with it, and remember where it is."""
    from dynsteer_gym.envs.toolsandbox.library import check, remember

    problems = check(path)
    for problem in problems:
        typer.echo(problem, err=True)
    if problems:
        raise typer.Exit(1)
    typer.echo(f"{path} can be used; noted in {remember(path)}")


@measures.command("suite")
def measure_the_suite(
    split: Annotated[str, typer.Option(help="train, validation, test or all.")] = "all",
    seed: Annotated[int, typer.Option(help="Decides where rivals err.")] = 0,
    out: Annotated[Path | None, typer.Option("--json", help="Write the figures to a file.")] = None,
) -> None:
    """Experts and rivals of dynsteer-509 under the evaluator: false stops, first errors located, steps saved."""
    from rich.console import Console
    from rich.table import Table

    from dynsteer_gym.measure import measure_suite

    figures = measure_suite(split, seed)
    names = ("runs", "success", "stage_score", "stopped", "false_stops", "steps_saved", "located")
    table = Table("agent", *names, title=f"dynsteer-509, split {split}: stops of the paper, played on (virtual)")
    for agent, entry in figures.items():
        table.add_row(agent, *["" if entry[name] is None else str(entry[name]) for name in names])
    Console().print(table)
    if out is not None:
        out.write_text(json.dumps(figures, indent=2) + "\n")


@measures.command("toolsandbox")
def measure_the_toolsandbox(
    dev: Annotated[Path | None, typer.Option(help="File with names of scenarios, one per line: the blueprint is compared on these.")] = None,
    limit: Annotated[int | None, typer.Option(help="Only so many scenarios, drawn by the seed.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Decides the random agent's calls.")] = 0,
    out: Annotated[Path | None, typer.Option("--json", help="Write the figures to a file.")] = None,
) -> None:
    """Apple's ToolSandbox: agents' native scores, step times and the blueprint against the reference milestones."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from dynsteer_gym.measure_toolsandbox import measure_toolsandbox

    names = None if dev is None else [line.strip() for line in dev.read_text(encoding="utf-8").splitlines() if line.strip()]
    console = Console()
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("scenarios", total=None)
        figures = measure_toolsandbox(names, limit, seed, lambda done, total: bar.update(task, completed=done, total=total))
    table = Table("agent", "native score", "at least 0.95", "faults", title=f"{figures['scenarios']} scenarios of ToolSandbox")
    for agent, entry in figures["agents"].items():
        table.add_row(agent, f"{entry['native']:.3f}", f"{entry['at_095']:.3f}", str(entry["faults"]))
    console.print(table)
    step = figures["step"]
    console.print(
        f"step {step['ms']} ms, ToolSandbox's own {step['own_ms']} ms ({step['overhead']:+.1%}); at the 100th call {step['at_100_ms']} ms; "
        f"native score after 60 calls {figures['native_s_at_60']} s"
    )
    found = figures["blueprint"]
    table = Table("blueprint", "precision", "recall", "F1", "references", title=f"against the references of {found['scenarios']} scenarios")
    for kind in ("micro", "tool_trace", "database_state", "sentence", "minefields"):
        entry = found[kind]
        table.add_row(kind, f"{entry['precision']:.3f}", f"{entry['recall']:.3f}", f"{entry['f1']:.3f}", str(entry["wanted"]))
    console.print(table)
    if out is not None:
        out.write_text(json.dumps(figures, indent=2) + "\n")


def main() -> None:
    """Runs the command line; a misuse ends with one sentence and status 2."""
    from dynsteer_gym.errors import DynSTEERError

    try:
        app()
    except DynSTEERError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
