"""What ``dynsteer measure toolsandbox`` prints: the adapter and the blueprint on Apple's own scenarios. Hidden side."""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from statistics import mean, median
from typing import Any

from dynsteer_gym.envs.actions import AssistantTurn, ToolCall

__all__ = ["f1", "measure_toolsandbox"]

_KINDS = ("tool_trace", "database_state", "sentence")
_REFUSAL = "I cannot do that."
_TIMED = 120


def measure_toolsandbox(
    dev: Sequence[str] | None = None, limit: int | None = None, seed: int = 0, progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Plays, times and compares.

    Args:
        dev: Names of the scenarios that the blueprint is compared on, or ``None`` for all.
        limit: Only so many scenarios, drawn by the seed, or ``None`` for all.
        seed: Decides the random agent's calls.
        progress: Told how many scenarios have been played, and of how many.

    Returns:
        JSON data: ``scenarios``; ``agents`` (for ``oracle``, ``refusal``, ``silent`` and ``random``: ``native``, the
        mean, ``at_095``, the share with at least 0.95, ``faults``); ``step`` (``own_ms`` and ``ms``: ToolSandbox's own
        step and the adapter's, median; ``overhead``: their ratio less 1; ``at_100_ms``); ``native_s_at_60``;
        ``blueprint`` (``micro``, each kind of reference milestone, and ``minefields``: ``precision``, ``recall``, ``f1``,
        with the counts).

    Raises:
        ConfigurationError: There is no usable checkout of ToolSandbox.
    """
    from dynsteer_gym.envs.toolsandbox import ToolSandboxWorld

    world = ToolSandboxWorld()
    names = list(world.names)
    if limit is not None:
        names = sorted(Random(seed).sample(names, min(limit, len(names))))
    return {
        "scenarios": len(names),
        "agents": _agents(world, names, seed, progress or (lambda done, total: None)),
        "step": _step_times(),
        "native_s_at_60": _native_seconds(60),
        "blueprint": _blueprint(world, names if dev is None else [name for name in dev if name in set(world.names)]),
    }


# Agents.


def _agents(world: Any, names: Sequence[str], seed: int, progress: Callable[[int, int], None]) -> dict[str, Any]:
    from dynsteer_gym.envs.toolsandbox.oracle import Oracle

    scores: dict[str, list[tuple[float, bool]]] = {"oracle": [], "refusal": [], "silent": [], "random": []}
    for place, name in enumerate(names):
        world.reset(options={"scenario": name})
        info = Oracle(world).play()
        scores["oracle"].append((world.native_score(), "fault" in info))
        for agent, act in (
            ("refusal", lambda random: _REFUSAL),
            ("silent", lambda random: ""),
            ("random", lambda random: random_turn(world, random)),
        ):
            random = Random(f"{seed}:{name}")
            world.reset(options={"scenario": name})
            info = {}
            while not world.ended:
                *_, info = world.step(act(random))
            scores[agent].append((world.native_score(), "fault" in info))
        progress(place + 1, len(names))
    return {
        agent: {
            "native": round(mean(score for score, _ in entries), 4),
            "at_095": round(mean(score >= 0.95 for score, _ in entries), 4),
            "faults": sum(fault for _, fault in entries),
        }
        for agent, entries in scores.items()
    }


def random_turn(world: Any, random: Random) -> AssistantTurn | str:
    """A call of a random tool with arguments that its schema allows, or now and then a message."""
    tools = world.task_view.tools
    pick = random.randrange(len(tools) + 1)
    if pick == len(tools):
        return random.choice(("Done.", "Which one do you mean?", _REFUSAL))
    tool = tools[pick]
    given = {
        name: random_value(schema, random, world.task_view.request)
        for name, schema in tool.properties.items()
        if name in tool.required or random.random() < 0.3
    }
    return AssistantTurn(calls=(ToolCall(tool.name, given),))


def random_value(schema: Mapping[str, Any], random: Random, request: str) -> Any:
    """A value that a JSON schema allows: a word of the request, a small number, a truth value, an option."""
    if "enum" in schema:
        return random.choice(list(schema["enum"]))
    kind = schema.get("type", "string")
    if kind == "boolean":
        return random.random() < 0.5
    if kind == "integer":
        return random.randrange(1, 2_100)
    if kind == "number":
        return random.choice((random.uniform(-180, 180), random.uniform(1.6e9, 1.8e9)))
    return random.choice(request.split() or ["text"])


# Times.


def _script(library: Any, world: Any, calls: int) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """A scenario with both a look-up and a switch, and calls that do both in turn."""
    for name in world.names:
        world.reset(options={"scenario": name})
        shown = {own.__name__: key for key, own in world.tools_by_shown_name.items()}
        if all(shown.get(tool) == tool for tool in ("search_contacts", "set_wifi_status", "get_wifi_status")):
            break
    turns = [("set_wifi_status", {"on": False}), ("get_wifi_status", {}), ("search_contacts", {"name": "a"}), ("set_wifi_status", {"on": True})]
    return name, [turns[place % len(turns)] for place in range(calls)]


def _step_times() -> dict[str, float]:
    """The adapter's step and ToolSandbox's own on the same calls, in milliseconds."""
    from dynsteer_gym.envs.toolsandbox import ToolSandboxWorld
    from dynsteer_gym.envs.toolsandbox.library import own_role

    world = ToolSandboxWorld(max_turns=2 * _TIMED)
    library = world.library
    name, calls = _script(library, world, _TIMED)
    ours: list[float] = []
    world.reset(options={"scenario": name})
    for tool, arguments in calls:
        turn = AssistantTurn(calls=(ToolCall(tool, arguments),))
        before = time.perf_counter()
        world.step(turn)
        ours.append((time.perf_counter() - before) * 1e3)
    role, types = own_role(), library.context.RoleType
    scenario = library.scenarios[name]
    context = copy.deepcopy(scenario.starting_context)
    own: list[float] = []
    with library.context.new_context(context):
        rows = context.get_database(library.context.DatabaseNamespace.SANDBOX, get_all_history_snapshots=True).to_dicts()
        for place, row in enumerate(rows):
            if row["recipient"] == types.EXECUTION_ENVIRONMENT and row["sender"] == types.SYSTEM:
                role.respond(ending_index=place)
        for place, (tool, arguments) in enumerate(calls):
            code = f"call_{place}_parameters = {arguments}\ncall_{place}_response = {tool}(**call_{place}_parameters)\nprint(repr(call_{place}_response))"
            before = time.perf_counter()
            context = library.context.get_current_context()
            context.add_to_database(
                library.context.DatabaseNamespace.SANDBOX,
                [{"sender": types.AGENT, "recipient": types.EXECUTION_ENVIRONMENT, "content": code, "openai_tool_call_id": f"call_{place}", "openai_function_name": tool}],
            )
            role.respond()
            context = library.context.get_current_context()
            for key, frame in context._dbs.items():
                context._dbs[key] = frame.rechunk()
            own.append((time.perf_counter() - before) * 1e3)
    early, late = slice(4, 24), slice(90, 110)
    return {
        "own_ms": round(median(own[early]), 3),
        "ms": round(median(ours[early]), 3),
        "overhead": round(median(ours[early]) / median(own[early]) - 1, 3),
        "own_at_100_ms": round(median(own[late]), 3),
        "at_100_ms": round(median(ours[late]), 3),
    }


def _native_seconds(calls: int) -> float:
    """Seconds of the native score after so many calls, on the scenario with the most reference milestones."""
    from dynsteer_gym.envs.toolsandbox import ToolSandboxWorld

    world = ToolSandboxWorld(max_turns=2 * calls)
    name = max(world.names, key=lambda item: len(world.library.scenarios[item].evaluation.milestone_matcher.milestones))
    world.reset(options={"scenario": name})
    random = Random(0)
    for _ in range(calls):
        tool = random.choice(world.task_view.tools)
        given = {key: random_value(schema, random, world.task_view.request) for key, schema in tool.properties.items() if key in tool.required}
        world.step(AssistantTurn(calls=(ToolCall(tool.name, given),)))
    before = time.perf_counter()
    world.native_score()
    return round(time.perf_counter() - before, 4)


# Blueprint.


def f1(hits: int, predicted: int, wanted: int) -> dict[str, Any]:
    """Precision, recall and their harmonic mean of pooled counts; all 1 where nothing is wanted and nothing predicted."""
    if not predicted and not wanted:
        return {"precision": 1.0, "recall": 1.0, "f1": 1.0, "hits": 0, "predicted": 0, "wanted": 0}
    precision = hits / predicted if predicted else 0.0
    recall = hits / wanted if wanted else 0.0
    both = 2 * hits / (predicted + wanted)
    return {
        "precision": round(precision, 4),
        "recall": round(recall, 4),
        "f1": round(both, 4),
        "hits": hits,
        "predicted": predicted,
        "wanted": wanted,
    }


def _blueprint(world: Any, names: Iterable[str]) -> dict[str, Any]:
    """Milestones against the references, matched within a scenario as multisets of the tools' own names."""
    from dynsteer_gym.blueprint.compiler import BlueprintCompiler
    from dynsteer_gym.blueprint.graph import MinefieldKind
    from dynsteer_gym.envs.toolsandbox.references import forbidden_tools, references

    compiler = BlueprintCompiler()
    hits, predicted, wanted = Counter[str](), Counter[str](), Counter[str]()
    mines = Counter[str]()
    scenarios = empty = 0
    for name in names:
        scenarios += 1
        world.reset(options={"scenario": name})
        own = {key: tool.__name__ for key, tool in world.tools_by_shown_name.items()}
        graph = compiler.compile(world.task_view).blueprint
        asked = Counter((entry.kind, entry.name) for entry in references(world.library, name))
        kinds = {entry: kind for kind, entry in asked}
        found = Counter(_operation(milestone, own, kinds) for milestone in graph.milestones)
        empty += not asked
        for key in {*asked, *found}:
            hits[key[0]] += min(asked[key], found[key])
            predicted[key[0]] += found[key]
            wanted[key[0]] += asked[key]
        forbidden = set(forbidden_tools(world.library, name))
        screened = {own[mine.tool] for mine in graph.minefields if mine.kind == MinefieldKind.UNSUPPORTED_CALL and mine.tool in own}
        mines.update(hits=len(forbidden & screened), predicted=len(screened), wanted=len(forbidden))
    return {
        "scenarios": scenarios,
        "without_references": empty,
        "micro": f1(hits.total(), predicted.total(), wanted.total()),
        **{kind: f1(hits[kind], predicted[kind], wanted[kind]) for kind in _KINDS},
        "minefields": f1(mines["hits"], mines["predicted"], mines["wanted"]),
    }


def _operation(milestone: Any, own: Mapping[str, str], kinds: Mapping[str, str]) -> tuple[str, str]:
    """Kind and own name of a milestone's first operation; a tool is of the kind that the references give it, else by what it does."""
    from dynsteer_gym.envs.toolsandbox.references import MESSAGE

    operation = milestone.operations[0]
    if operation.kind == "message":
        return "sentence", MESSAGE
    name = own.get(operation.name, operation.name)
    reads = name.startswith(("get_", "search_", "timestamp_", "datetime_", "shift_", "unit_", "calculate_"))
    return kinds.get(name, "tool_trace" if reads else "database_state"), name

