"""Compilation: reading, validation, consensus, alternatives, dominators, extension."""

import pickle

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsteer_gym.blueprint.compiler import BlueprintCompiler, CompilationError, CompilerConfig
from dynsteer_gym.blueprint.consensus import agree, majority
from dynsteer_gym.blueprint.drawing import dot, svg, text
from dynsteer_gym.blueprint.generation import Candidate
from dynsteer_gym.blueprint.graph import (
    Blueprint,
    Milestone,
    Minefield,
    MinefieldKind,
    Operation,
    OperationKind,
    Role,
    RoleSource,
)
from dynsteer_gym.blueprint.order import find_cycle, topological, transitive_reduction
from dynsteer_gym.blueprint.planning import Catalogue, Node, read_request
from dynsteer_gym.blueprint.validation import validate
from dynsteer_gym.task import TaskView, ToolSpec


def schema(required=(), **types):
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in types.items()}, "required": list(required)}


ROW = {"type": "array", "items": {"type": "object", "properties": {"book_id": {"type": "string"}, "title": {"type": "string"}}}}
TOOLS = (
    ToolSpec("search_books", "Search the books of the library by title.", schema(title="string"), ROW),
    ToolSpec("borrow_book", "Borrow a book. This cannot be undone.", schema(("book_id",), book_id="string"), {"type": "boolean"}),
    ToolSpec("set_lamp", "Turn the lamp on or off.", schema(("on",), on="boolean"), {"type": "boolean"}),
)


def view(request, **changes):
    return TaskView("t", request, TOOLS, **changes)


def names(blueprint):
    return [tuple(dict.fromkeys(op.name for op in m.operations)) for m in blueprint.milestones]


def test_a_request_is_chained_back_from_its_goal():
    task = BlueprintCompiler().compile(view('Borrow the book "Dune".'))
    assert names(task.blueprint) == [("search_books",), ("borrow_book",), ("report",)]
    assert task.literals == {"r0/quoted:0": "Dune"}
    bound = dict(task.blueprint.milestones[1].operations[0].bindings)
    assert bound == {"book_id": Role(RoleSource.PRODUCER, "search_books.book_id")}
    assert sum(m.share for m in task.blueprint.milestones) == pytest.approx(1.0)


def test_minefields_are_guessed_values_and_lasting_deeds_that_nobody_asked_for():
    kinds = {(m.kind, m.tool) for m in BlueprintCompiler().compile(view('Borrow the book "Dune".')).blueprint.minefields}
    assert kinds == {(MinefieldKind.UNSUPPORTED_CALL, "borrow_book")}
    kinds = {(m.kind, m.tool) for m in BlueprintCompiler().compile(view("Turn the lamp off.")).blueprint.minefields}
    assert kinds == {(MinefieldKind.HAZARD, "borrow_book")}


def test_the_constant_follows_the_words():
    for word, value in (("on", "true"), ("off", "false")):
        task = BlueprintCompiler().compile(view(f"Turn the lamp {word}."))
        assert task.blueprint.milestones[0].operations[0].bindings == (("on", Role(RoleSource.CONSTANT, value)),)


def test_one_template_is_compiled_once_whatever_its_values_and_the_order_of_tools():
    compiler = BlueprintCompiler()
    one = compiler.compile(view('Borrow the book "Dune".'))
    other = compiler.compile(TaskView("u", 'Borrow the book "Emma".', TOOLS[::-1]))
    assert one.blueprint is other.blueprint
    assert other.literals == {"r0/quoted:0": "Emma"}
    assert pickle.loads(pickle.dumps(compiler)).compile(view('Borrow the book "Dune".')).blueprint == one.blueprint


def test_a_later_request_waits_for_the_sinks_of_the_one_before():
    compiler = BlueprintCompiler()
    first = view("Turn the lamp off.", max_requests=2)
    task = compiler.compile(first)
    second = TaskView("t", 'Borrow the book "Dune".', TOOLS, max_requests=2, request_index=1)
    longer = compiler.extend(task, second)
    assert longer.blueprint.predecessors["r1.m0"] == ("r0.m1",)
    assert longer.blueprint.anchors["r1.m0"] == "r0.m1"
    assert sum(m.share for m in longer.blueprint.milestones) == pytest.approx(1.0)
    assert task.blueprint.milestones == longer.blueprint.milestones[: len(task.blueprint.milestones)]
    beyond = compiler.extend(longer, TaskView("t", "Turn the lamp on.", TOOLS, max_requests=2, request_index=2))
    assert sum(m.share for m in beyond.blueprint.milestones) == pytest.approx(1.0)


def test_without_a_valid_candidate_there_is_an_error_or_the_declared_fallback():
    class Broken:
        def candidates(self, catalogue, request):
            return [Candidate("broken", (Node((Operation(OperationKind.CALL, "no_such_tool"),), ""),))] * 3

    with pytest.raises(CompilationError, match="no_such_tool"):
        BlueprintCompiler(CompilerConfig(fallback="error"), Broken()).compile(view("Turn the lamp off."))
    task = BlueprintCompiler(generator=Broken()).compile(view("Turn the lamp off."))
    (compilation,) = task.blueprint.compilations
    assert (compilation.candidates, compilation.valid, compilation.fallback, compilation.low_consensus) == (3, 0, True, True)
    assert names(task.blueprint) == [("report",)]


REQUEST = read_request('Borrow the book "Dune".')


def candidate(*nodes, minefields=()):
    return Candidate("test", tuple(nodes), tuple(minefields))


def call(tool, after=(), **roles):
    return Node((Operation(OperationKind.CALL, tool, tuple(sorted(roles.items()))),), tool, tuple(after))


@pytest.mark.parametrize(
    ("graph", "word"),
    [
        (candidate(call("nothing")), "no tool"),
        (candidate(call("search_books", colour=Role(RoleSource.FREE))), "no parameter"),
        (candidate(call("set_lamp", on=Role(RoleSource.LITERAL, "r0/quoted:0"))), "takes bool"),
        (candidate(call("search_books", (1,)), call("search_books", (0,))), "cycle"),
        (candidate(call("search_books", (7,))), "does not exist"),
        (candidate(call("borrow_book", book_id=Role(RoleSource.PRODUCER, "search_books.book_id"))), "before it"),
        (candidate(call("search_books", title=Role(RoleSource.LITERAL, "r0/quoted:5"))), "does not name"),
        (candidate(call("borrow_book", book_id=Role(RoleSource.USER, "book_id"))), "question"),
        (candidate(), "no nodes"),
    ],
)
def test_contract_validation_names_what_is_broken(graph, word):
    assert word in validate(graph, Catalogue(TOOLS), REQUEST)


def test_a_sound_candidate_is_valid():
    graph = candidate(
        call("search_books", title=Role(RoleSource.LITERAL, "r0/quoted:0")),
        call("borrow_book", (0,), book_id=Role(RoleSource.PRODUCER, "search_books.book_id")),
    )
    assert validate(graph, Catalogue(TOOLS), REQUEST) is None


@pytest.mark.parametrize(("valid", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (7, 4)])
def test_the_majority_is_strict(valid, needed):
    assert majority(valid) == needed


def ops(consensus):
    return [tuple(op.name for op in m.operations) for m in consensus.milestones]


def test_classes_below_the_majority_are_voted_out_and_order_survives():
    three = [
        candidate(call("a"), call("b", (0,)), call("c", (1,))),
        candidate(call("a"), call("c", (0,))),
        candidate(call("a"), call("c", (0,))),
    ]
    agreed = agree(three)
    assert ops(agreed) == [("a",), ("c",)]
    assert agreed.edges == (("m0", "m1"),)
    assert [m.share for m in agreed.milestones] == [0.5, 0.5]
    assert [m.certain for m in agreed.milestones] == [True, True]


def test_edges_are_transitively_reduced():
    agreed = agree([candidate(call("a"), call("b", (0,)), call("c", (0, 1)))] * 3)
    assert set(agreed.edges) == {("m0", "m1"), ("m1", "m2")}


def test_a_majority_cycle_loses_its_weakest_pair():
    def chain(*order):
        return candidate(*(call(name, (place - 1,) if place else ()) for place, name in enumerate(order)))

    agreed = agree([chain("a", "b", "c"), chain("b", "c", "a"), chain("c", "a", "b")])
    assert len(agreed.dropped_cycles) == 1
    assert nx.is_directed_acyclic_graph(nx.DiGraph(agreed.edges))


def test_classes_that_exclude_each_other_become_alternatives():
    ends = [candidate(call(name), call("end", (0,))) for name in ("a", "a", "b", "b", "c")]
    agreed = agree(ends)
    assert ops(agreed) == [("a", "b", "c"), ("end",)]
    assert ops(agree(ends, alternatives=False)) == [("end",)]


def test_a_binding_is_kept_when_most_holders_agree_else_free():
    one, other = Role(RoleSource.PRODUCER, "x.p"), Role(RoleSource.PRODUCER, "y.p")
    agreed = agree([candidate(call("a", p=one)), candidate(call("a", p=one)), candidate(call("a", p=other))])
    assert agreed.milestones[0].operations[0].bindings == (("p", one),)
    assert not agreed.milestones[0].certain
    agreed = agree([candidate(call("a", p=one)), candidate(call("a", p=other))])
    assert agreed.milestones[0].operations[0].bindings == (("p", Role(RoleSource.FREE)),)


def test_equal_operations_are_numbered():
    agreed = agree([candidate(call("a"), call("a", (0,)))] * 3)
    assert ops(agreed) == [("a",), ("a",)]
    assert agreed.edges == (("m0", "m1"),)


def test_minefields_need_the_same_majority():
    mine = Minefield("", MinefieldKind.HAZARD, "a", reason="no")
    assert len(agree([candidate(call("b"), minefields=[mine])] * 2 + [candidate(call("b"))]).minefields) == 1
    assert agree([candidate(call("b"), minefields=[mine])] + [candidate(call("b"))] * 2).minefields == ()


@st.composite
def dags(draw):
    count = draw(st.integers(1, 7))
    pairs = [(i, j) for j in range(count) for i in range(j)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    graph = nx.transitive_reduction(nx.DiGraph(edges)) if edges else nx.DiGraph()
    graph.add_nodes_from(range(count))
    milestones = tuple(Milestone(f"m{i}", (Operation(OperationKind.CALL, "t"),), 1 / count) for i in range(count))
    return Blueprint(milestones, tuple((f"m{i}", f"m{j}") for i, j in graph.edges))


@given(dags())
def test_anchors_are_networkx_dominators(blueprint):
    graph = nx.DiGraph([("s0", m.id) for m in blueprint.milestones if not blueprint.predecessors[m.id]])
    graph.add_edges_from(blueprint.edges)
    expected = nx.immediate_dominators(graph, "s0")
    for milestone in blueprint.milestones:
        assert (blueprint.anchors[milestone.id] or "s0") == expected[milestone.id]


PAIRS = st.lists(st.tuples(st.sampled_from("abcdefg"), st.sampled_from("abcdefg")).filter(lambda pair: pair[0] != pair[1]), max_size=14)


@given(PAIRS)
def test_orders_are_those_of_networkx(pairs):
    graph = nx.DiGraph(sorted(set(pairs)))
    graph.add_nodes_from("abcdefg")
    cycle = find_cycle(pairs)
    assert bool(cycle) != nx.is_directed_acyclic_graph(graph)
    if cycle:
        assert set(cycle) <= set(pairs)
        assert [later for _, later in cycle] == [earlier for earlier, _ in cycle[1:] + cycle[:1]]
        with pytest.raises(ValueError, match="cycle"):
            topological("abcdefg", pairs)
    else:
        order = topological("abcdefg", pairs)
        assert order == list(nx.lexicographical_topological_sort(graph))
        assert transitive_reduction(order, pairs) == sorted(nx.transitive_reduction(graph).edges)


def test_a_blueprint_goes_over_to_networkx():
    blueprint = BlueprintCompiler().compile(view('Borrow the book "Dune".')).blueprint
    graph = blueprint.to_networkx()
    assert set(graph) == set(blueprint.by_id)
    assert tuple(sorted(graph.edges)) == tuple(sorted(blueprint.edges))
    assert graph.nodes[blueprint.milestones[0].id]["share"] == blueprint.milestones[0].share


def test_drawings_name_every_milestone():
    blueprint = BlueprintCompiler().compile(view('Borrow the book "Dune".')).blueprint
    for drawn in (dot(blueprint), svg(blueprint), text(blueprint)):
        assert all(milestone.id in drawn for milestone in blueprint.milestones)


NAMELESS = (
    ToolSpec("function_1", "Search the books of the library by title.", schema(title="string"), ROW),
    ToolSpec(
        "function_2",
        "Borrow a book of the library.",
        {"type": "object", "properties": {"arg_1": {"type": "string", "description": "Id of the book."}}, "required": ["arg_1"]},
        {"type": "boolean"},
    ),
)


def test_a_name_that_tells_nothing_is_read_by_its_description():
    task = BlueprintCompiler().compile(TaskView("t", 'Borrow the book "Dune".', NAMELESS))
    assert names(task.blueprint) == [("function_1",), ("function_2",), ("report",)]
    assert task.blueprint.milestones[1].operations[0].bindings == (("arg_1", Role(RoleSource.PRODUCER, "function_1.book_id")),)


REMIND = ToolSpec(
    "add_reminder",
    "Add a new reminder.",
    {"type": "object", "properties": {"title": {"type": "string"}, "due": {"type": "string", "format": "date-time"}}, "required": ["title", "due"]},
    {"type": "boolean"},
)


@pytest.mark.parametrize(
    ("request_", "source"),
    [
        ('Remind me of "Tea" at 2026-03-10 15:00.', RoleSource.LITERAL),
        ('Remind me of "Tea" tomorrow.', RoleSource.FREE),
        ('Remind me of "Tea" in 20 minutes.', RoleSource.FREE),
        ('Remind me of "Tea" next Friday.', RoleSource.FREE),
        ('Remind me of "Tea".', RoleSource.USER),
    ],
)
def test_a_time_that_is_told_in_its_own_way_is_worked_out_and_not_asked_for(request_, source):
    blueprint = BlueprintCompiler().compile(TaskView("t", request_, (REMIND,))).blueprint
    deed = next(m for m in blueprint.milestones if m.operations[0].name == "add_reminder")
    assert dict(deed.operations[0].bindings)["due"].source == source
    assert bool(blueprint.minefields) == (source == RoleSource.USER)


PREPARE = ToolSpec("prepare_order", "Prepare an order of goods.", schema(("title",), title="string"), ROW["items"] | {"properties": {"order_id": {"type": "string"}}})
CONFIRM = ToolSpec("confirm_order", "Confirm a prepared order. Ask the user before.", schema(("order_id",), order_id="string"), {"type": "boolean"})


def test_what_is_done_in_two_steps_has_both_and_needs_consent_where_the_description_says_so():
    blueprint = BlueprintCompiler().compile(TaskView("t", 'Order the goods "Dune".', (PREPARE, CONFIRM))).blueprint
    assert names(blueprint) == [("prepare_order",), ("confirm_order",), ("report",)]
    assert blueprint.milestones[1].operations[0].bindings == (("order_id", Role(RoleSource.PRODUCER, "prepare_order.order_id")),)
    hazard = next(m for m in blueprint.minefields if m.tool == "confirm_order" and m.kind == MinefieldKind.HAZARD)
    assert hazard.unless_confirmed


def test_of_two_sources_of_an_id_the_one_that_takes_a_value_of_the_request_is_planned_and_the_other_will_do():
    every = ToolSpec("list_books", "List the books of the library.", schema(), ROW)
    blueprint = BlueprintCompiler().compile(TaskView("t", 'Borrow the book "Dune".', (every, *TOOLS))).blueprint
    assert blueprint.milestones[0].operations[0].name == "search_books"
    assert "list_books" in {operation.name for operation in blueprint.milestones[0].operations}


def test_two_values_of_one_type_go_to_the_parameters_whose_words_stand_before_them():
    move = ToolSpec("file_note", "File a note.", schema(("note", "folder"), note="string", folder="string"), {"type": "boolean"})
    for asked in ('File the note "A" in the folder "B".', 'File, in the folder "B", the note "A".'):
        task = BlueprintCompiler().compile(TaskView("t", asked, (move,)))
        bound = dict(task.blueprint.milestones[0].operations[0].bindings)
        assert {name: task.literals[role.key] for name, role in bound.items()} == {"note": "A", "folder": "B"}
