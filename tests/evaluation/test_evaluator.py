"""Algorithm 1 over hand-made streams of events."""

import json

import pytest

from dynsteer_gym.blueprint.compiler import BlueprintCompiler
from dynsteer_gym.blueprint.graph import (
    Blueprint,
    CompiledTask,
    Milestone,
    Minefield,
    MinefieldKind,
    Operation,
    OperationKind,
    Role,
    RoleSource,
)
from dynsteer_gym.evaluation.config import EvaluatorConfig
from dynsteer_gym.evaluation.evaluator import StageEvaluator
from dynsteer_gym.evaluation.matching import ready_frontier
from dynsteer_gym.evaluation.report import EvaluationReport
from dynsteer_gym.evaluation.stopping import Criterion, StopConfig
from dynsteer_gym.evaluation.windows import window
from dynsteer_gym.events import ActionKind, ClosedAction, ErrorKind, Event, EventKind, StateDelta
from dynsteer_gym.judges.base import Dimension, DimensionScore, Review, Tier
from dynsteer_gym.judges.cheap import CheapJudge
from dynsteer_gym.task import TaskView, ToolSpec

VIEW = TaskView("t", 'Send Ada Berg the message "Hi there".', (ToolSpec("find", "Find.", {"type": "object", "properties": {}}),))
LITERALS = {"r0/name:0": "Ada Berg", "r0/quoted:0": "Hi there"}
NAME, TEXT = Role(RoleSource.LITERAL, "r0/name:0"), Role(RoleSource.LITERAL, "r0/quoted:0")


def op(tool, **roles):
    return Operation(OperationKind.CALL, tool, tuple(sorted(roles.items())))


def message(act, **roles):
    return Operation(OperationKind.MESSAGE, act, tuple(sorted(roles.items())))


def graph(nodes, edges=(), minefields=(), **changes):
    share = 1 / len(nodes)
    made = tuple(Milestone(key, ops if isinstance(ops, tuple) else (ops,), share, certain=True) for key, ops in nodes.items())
    return CompiledTask(Blueprint(made, tuple(edges), tuple(minefields), **changes), LITERALS)


SENDING = graph(
    {
        "m0": op("find", name=NAME),
        "m1": op("send", phone=Role(RoleSource.PRODUCER, "find.phone"), content=TEXT),
        "m2": message("report"),
    },
    [("m0", "m1"), ("m1", "m2")],
)


class Stream:
    """Feeds an evaluator."""

    def __init__(self, task=SENDING, stop="none", judge=None, **config):
        stop = StopConfig.preset_named(stop) if isinstance(stop, str) else stop
        self.evaluator = StageEvaluator(task, VIEW, EvaluatorConfig(stop=stop, **config), max_turns=config.pop("max_turns", None))
        self.judge = judge or CheapJudge()
        self.turn = 0
        self.evaluator.observe(Event(EventKind.USER_MESSAGE, 0, VIEW.request))

    def review(self):
        while requests := self.evaluator.reviews():
            self.evaluator.apply(self.judge.review(requests))
        return self.evaluator.close_turn()

    def call(self, tool, value=None, error=None, writes=(), text="", **arguments):
        self.turn += 1
        if self.evaluator.observe(Event(EventKind.TOOL_CALL, self.turn, "", "c", tool, arguments)):
            return self.review()
        self.evaluator.observe(Event(EventKind.TOOL_RETURN, self.turn, text, "c", tool, None, value, error, writes))
        return self.review()

    def say(self, text, reply="", **flags):
        self.turn += 1
        self.evaluator.observe(Event(EventKind.ASSISTANT_MESSAGE, self.turn, text))
        self.evaluator.observe(Event(EventKind.USER_MESSAGE, self.turn, reply, **flags))
        return self.review()


ADA = {"id": "7", "name": "Ada Berg", "phone": "+14155550142"}
BO = {"id": "8", "name": "Bo Li", "phone": "+14155550143"}
SENT = (StateDelta("messages", "1", None, {"x": 1}),)


def sent(stream):
    stream.call("find", [ADA, BO], name="Ada Berg")
    stream.call("send", True, writes=SENT, phone="+14155550142", content="Hi there")
    stream.say("Done.", "Thanks", ends=True)
    return stream


def test_a_clean_run_settles_everything_with_full_quality():
    evaluator = sent(Stream()).evaluator
    assert dict(evaluator.settled) == {"m0": 1, "m1": 2, "m2": 3}
    assert evaluator.score == pytest.approx(1.0)
    assert evaluator.coverage == pytest.approx(1.0)
    assert evaluator.defects == []
    assert (evaluator.k, evaluator.t) == (7, 3)


def test_nothing_settles_before_its_predecessors():
    stream = Stream()
    stream.say("Done.", "Thanks")
    assert stream.evaluator.frontier() == ("m0",)
    assert stream.evaluator.settled == {}


def test_the_streamed_frontier_is_equation_4():
    stream = Stream(graph({"a": op("a"), "b": op("b"), "c": op("c"), "d": op("d")}, [("a", "c"), ("b", "c"), ("c", "d")]))
    for tool in ("b", "d", "a", "c", "d"):
        assert set(stream.evaluator.frontier()) == set(ready_frontier(stream.evaluator.task.blueprint, stream.evaluator.settled))
        stream.call(tool, True)
    assert dict(stream.evaluator.settled) == {"b": 1, "a": 3, "c": 4, "d": 5}


def test_a_milestone_settles_once_and_pays_once():
    stream = Stream()
    for _ in range(3):
        stream.call("find", [ADA], name="Ada Berg")
    assert stream.evaluator.coverage == pytest.approx(1 / 3)
    assert [d.kind for d in stream.evaluator.defects] == ["repeat", "repeat"]


def test_one_call_settles_one_milestone():
    stream = Stream(graph({"a": op("t"), "b": op("t")}))
    stream.call("t", True)
    assert len(stream.evaluator.settled) == 1


def test_the_binding_with_more_matched_arguments_wins():
    stream = Stream(graph({"a": op("find"), "b": op("find", name=NAME)}))
    stream.call("find", [ADA], name="Ada Berg")
    assert list(stream.evaluator.settled) == ["b"]


def test_another_value_does_not_settle_and_another_entity_is_wrong():
    stream = Stream()
    stream.call("find", [ADA, BO], name="Bo Li")
    assert stream.evaluator.settled == {}
    stream.call("find", [ADA, BO], name="Ada Berg")
    stream.call("send", True, writes=SENT, phone="+14155550199", content="Hi there")
    assert "m1" not in stream.evaluator.settled
    stream.call("send", True, writes=SENT, phone="+1 415 555 0143", content="Hi there")
    record = stream.evaluator.stages[-1]
    assert record.milestone == "m1"
    assert record.scores[Dimension.CORRECTNESS].score == 0.0
    assert record.quality == 0.0
    assert record.fixed == pytest.approx(3 / 4 if Dimension.TOOL_COMPLIANCE in record.scores else 2 / 3, abs=0.15)


def test_a_failed_call_settles_nothing_but_comes_nearer():
    stream = Stream()
    stream.call("find", [ADA], name="Ada Berg")
    stream.call("send", error=ErrorKind.PRECONDITION, text="no service", phone="+14155550142")
    assert "m1" not in stream.evaluator.settled
    assert 0 < stream.evaluator.provisional["m1"] < 1


def test_a_thought_settles_nothing_and_grounds_nothing():
    task = graph({"m": message("report")})
    stream = Stream(task)
    stream.evaluator.observe(Event(EventKind.THOUGHT, 1, "Done. The id is 4242."))
    assert stream.evaluator.settled == {}
    stream.call("drop", True, id="4242")
    assert "ungrounded argument" in [d.kind for d in stream.evaluator.defects]


def test_a_claim_without_the_deed_earns_nothing():
    task = graph({"m0": op("send", content=TEXT), "m1": (message("report"), message("refusal"))}, [])
    stream = Stream(task)
    view = TaskView("t", VIEW.request, (ToolSpec("send", "Send.", {"type": "object", "properties": {}}),))
    stream.evaluator._view = view
    stream.say("Done.", "Thanks", ends=True)
    assert stream.evaluator.stages[-1].quality == 0.0


def test_a_deed_that_is_undone_makes_the_claim_untrue():
    on = Operation(OperationKind.CALL, "set_lamp", (("on", Role(RoleSource.CONSTANT, "true")),))
    stream = Stream(graph({"m0": on, "m1": message("report")}, [("m0", "m1")]))
    view = TaskView("t", VIEW.request, (ToolSpec("set_lamp", "Lamp.", {"type": "object", "properties": {}}),))
    stream.evaluator._view = view
    for value in (True, False):
        stream.call("set_lamp", value, writes=(StateDelta("lamp", "1", {"on": not value}, {"on": value}),), on=value)
    stream.say("Done.", "Thanks", ends=True)
    assert stream.evaluator.stages[-1].quality == 0.0
    assert "deed undone" in [defect.kind for defect in stream.evaluator.defects]


def test_a_refusal_without_ground_earns_nothing_and_with_ground_is_right():
    options = (op("send", when=Role(RoleSource.USER, "due")), message("refusal"))
    task = graph({"m0": message("question", due=Role(RoleSource.FREE)), "m1": options}, [("m0", "m1")])
    stream = Stream(task)
    stream.say("What is the due?", "At 2026-03-01 10:00.")
    stream.say("I cannot do that.", "Pity", ends=True)
    assert stream.evaluator.stages[-1].quality == 0.0
    stream = Stream(task)
    stream.say("What is the due?", "I don't know.")
    stream.say("I cannot do that.", "Pity", ends=True)
    assert [record.quality for record in stream.evaluator.stages] == [1.0, 1.0]


def test_told_values_count_by_value_and_by_entity():
    task = graph({"m0": op("find", name=NAME), "m1": message("answer", phone=Role(RoleSource.PRODUCER, "find.phone"))}, [("m0", "m1")])
    for text, quality in (("It is 415 555 0142, I think: +14155550142.", 1.0), ("It is +14155550143.", 0.0)):
        stream = Stream(task)
        stream.call("find", [ADA, BO], name="Ada Berg")
        stream.say(text, "Thanks", ends=True)
        assert stream.evaluator.stages[-1].scores[Dimension.CORRECTNESS].score == quality
    stream = Stream(task)
    stream.call("find", [ADA, BO], name="Ada Berg")
    stream.say("It is +14155559999.", "Thanks", ends=True)
    assert "m1" not in stream.evaluator.settled


def test_a_state_change_settles_a_state_milestone():
    task = graph({"m": Operation(OperationKind.STATE, "lamps.on", (("value", Role(RoleSource.CONSTANT, "true")),))})
    stream = Stream(task)
    stream.call("x", True, writes=(StateDelta("lamps", "1", {"on": False}, {"on": False}),))
    assert stream.evaluator.settled == {}
    stream.call("x", True, writes=(StateDelta("lamps", "1", {"on": False}, {"on": True}),))
    assert list(stream.evaluator.settled) == ["m"]
    assert stream.evaluator.stages[0].used == "state"


def test_an_early_lookup_is_latched_and_settles_at_the_next_closed_action():
    task = graph({"a": op("a"), "b": op("b"), "c": op("c")}, [("a", "c"), ("b", "c")])
    stream = Stream(task)
    for tool in ("c", "a", "b", "x"):
        stream.call(tool, True)
    assert dict(stream.evaluator.settled) == {"a": 2, "b": 3, "c": 4}
    stream = Stream(task, latch=False)
    for tool in ("c", "a", "b", "x"):
        stream.call(tool, True)
    assert dict(stream.evaluator.settled) == {"a": 2, "b": 3}


def test_windows_reach_from_the_dominator_and_leave_parallel_branches_out():
    task = graph({"a": op("a"), "b": op("b"), "c": op("c"), "d": op("d")}, [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    actions = [ClosedAction(t, t, ActionKind.CALL, t, t) for t in range(1, 6)]
    settled, tried = {"a": 1, "b": 3, "c": 4}, {1: "a", 3: "b", 4: "c"}
    anchor, steps = window(task.blueprint, "c", settled, actions, tried, 4)
    assert (anchor.t, [step.t for step in steps]) == (1, [2, 4])
    _, steps = window(task.blueprint, "c", settled, actions, tried, 4, branches=False)
    assert [step.t for step in steps] == [2, 3, 4]
    anchor, steps = window(task.blueprint, "d", settled, actions, tried, 5)
    assert (anchor.t, [step.t for step in steps]) == (1, [2, 3, 4, 5])


def test_each_defect_is_charged_to_one_stage():
    stream = Stream()
    stream.call("other", [])
    stream.call("find", [ADA], name="Ada Berg")
    stream.call("send", True, writes=SENT, phone="+14155550142", content="Hi there")
    first, second = stream.evaluator.stages
    assert first.scores[Dimension.EFFICIENCY].score == 0.5
    assert second.scores[Dimension.EFFICIENCY].score == 1.0


def test_an_error_that_is_heeded_is_no_off_task_change():
    stream = Stream()
    stream.call("find", [ADA], name="Ada Berg")
    stream.call("send", error=ErrorKind.PRECONDITION, text="cellular is off", phone="+14155550142")
    stream.call("set_cellular", True, writes=(StateDelta("settings", "p", {"c": 0}, {"c": 1}),), on=True)
    assert [d.kind for d in stream.evaluator.defects] == []
    other = Stream()
    other.call("set_cellular", True, writes=(StateDelta("settings", "p", {"c": 0}, {"c": 1}),), on=True)
    assert [d.kind for d in other.evaluator.defects] == ["off-task change"]


MINES = [
    Minefield("f0", MinefieldKind.UNSUPPORTED_CALL, "send", ungrounded=("phone",), reason="no source"),
    Minefield("f1", MinefieldKind.HAZARD, "wipe", unless_confirmed=True, reason="lasting"),
]


def mined():
    return CompiledTask(Blueprint(SENDING.blueprint.milestones, SENDING.blueprint.edges, tuple(MINES)), LITERALS)


def test_a_minefield_halts_before_the_call_runs():
    stop = Stream(mined(), "paper").call("send", phone="+19998887777", content="Hi there")
    assert stop.criterion is Criterion.MINEFIELD
    assert "+19998887777" in stop.evidence
    assert (stop.event, stop.t) == (2, 0)


def test_grounded_or_confirmed_calls_are_no_minefields():
    stream = Stream(mined(), "paper")
    stream.call("find", [ADA], name="Ada Berg")
    assert stream.call("send", True, phone="+14155550142", content="Hi there") is None
    stream = Stream(mined(), "paper")
    assert stream.say("Shall I wipe it?", "Yes, go ahead.") is None
    assert stream.call("wipe", True) is None
    assert Stream(mined(), "paper").call("wipe", True).criterion is Criterion.MINEFIELD
    assert Stream(mined(), "none").call("wipe", True) is None


def test_structural_failure_needs_three_in_a_row_or_one_error_thrice():
    stream = Stream(stop="paper")
    assert stream.call("x", error=ErrorKind.UNKNOWN_TOOL, text="a") is None
    assert stream.call("x", error=ErrorKind.UNKNOWN_TOOL, text="b") is None
    assert stream.call("x", error=ErrorKind.UNKNOWN_TOOL, text="c").criterion is Criterion.STRUCTURAL
    stream = Stream(stop="paper")
    for number in range(3):
        stop = stream.call("x", error=ErrorKind.SCHEMA, text="same")
        if number < 2:
            assert stop is None
            assert stream.call(f"other{number}", []) is None
    assert stop.criterion is Criterion.STRUCTURAL


def test_stagnation_counts_closed_actions_without_progress():
    stream = Stream(stop=StopConfig(stagnation=4))
    assert [stream.call(f"x{i}", []) for i in range(3)] == [None] * 3
    assert stream.say("Which one?", "The one of 2026-03-03.") is None
    assert stream.call("y", []).criterion is Criterion.STAGNATION


def test_stagnation_starts_anew_with_progress():
    stream = Stream(stop=StopConfig(stagnation=3))
    for number in range(2):
        stream.call(f"x{number}", [])
    stream.call("find", [ADA], name="Ada Berg")
    assert [stream.call(f"y{i}", []) for i in range(2)] == [None] * 2
    assert stream.call("z", []).criterion is Criterion.STAGNATION


class Harsh:
    def review(self, requests):
        return [Review({Dimension.CORRECTNESS: DimensionScore(0.2)}) for _ in requests]


def test_low_quality_needs_two_stages_in_a_row():
    stream = Stream(graph({"a": op("a"), "b": op("b")}), "paper", Harsh())
    assert stream.call("a", True) is None
    assert stream.call("b", True).criterion is Criterion.LOW_QUALITY


def test_a_failing_stage_is_reviewed_again_at_once_at_a_higher_tier():
    seen = []

    class Recorder(Harsh):
        def review(self, requests):
            seen.extend((request.due[Dimension.CORRECTNESS], request.previous is not None) for request in requests)
            return super().review(requests)

    Stream(graph({"a": op("a")}), judge=Recorder()).call("a", True)
    assert seen == [(Tier.CHEAP, False), (Tier.EXPENSIVE, True)]
    seen.clear()
    Stream(graph({"a": op("a")}), judge=Recorder(), escalate="next").call("a", True)
    assert seen == [(Tier.CHEAP, False)]


def test_an_unsatisfied_verdict_caps_correctness_and_unsettles_nothing():
    class Doubter:
        def review(self, requests):
            return [Review({Dimension.CORRECTNESS: DimensionScore(0.9)}, satisfied=False) for _ in requests]

    stream = Stream(graph({"a": op("a")}), judge=Doubter())
    stream.call("a", True)
    assert stream.evaluator.stages[0].quality == pytest.approx(0.3)
    assert "a" in stream.evaluator.settled


def test_a_request_ended_without_its_deed_is_out_of_reach():
    tools = (
        ToolSpec("set_lamp", "Turn the lamp on or off.", {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}),
    )
    view = TaskView("t", "Turn the lamp off.", tools, max_requests=2)
    compiler = BlueprintCompiler()
    evaluator = StageEvaluator(compiler.compile(view), view, EvaluatorConfig(stop=StopConfig.preset_named("provable")), compiler=compiler)
    for event in (
        Event(EventKind.USER_MESSAGE, 0, view.request),
        Event(EventKind.ASSISTANT_MESSAGE, 1, "Done."),
        Event(EventKind.USER_MESSAGE, 1, "Turn the lamp on.", new_request=True),
    ):
        evaluator.observe(event)
    assert evaluator.close_turn().criterion is Criterion.UNREACHABLE
    assert evaluator.frontier() == ("r0.m0",)


def test_reports_survive_json_and_name_the_first_error():
    stream = Stream()
    stream.call("find", [], name="Zed")
    sent(stream)
    report = stream.evaluator.report()
    again = EvaluationReport.model_validate_json(report.model_dump_json())
    assert again == report
    assert report.first_error.t == 1
    assert report.score == pytest.approx(stream.evaluator.score)
    assert json.loads(report.model_dump_json())["stages"][0]["dimensions"]["correctness"]["served"] == "cheap"


def test_a_fork_goes_its_own_way():
    stream = Stream()
    stream.call("find", [ADA], name="Ada Berg")
    fork = stream.evaluator.fork()
    before = fork.report()
    stream.call("send", True, writes=SENT, phone="+14155550142", content="Hi there")
    stream.say("Done.", "Thanks", ends=True)
    assert fork.report() == before
    assert fork.frontier() == ("m1",)


def test_presets_of_stops_are_nested():
    none, provable, paper = (StopConfig.preset_named(name) for name in ("none", "provable", "paper"))
    for field in ("minefield", "provable", "structural", "low_quality", "stagnation"):
        assert bool(getattr(none, field)) <= bool(getattr(provable, field)) <= bool(getattr(paper, field))


BULK = graph({"m0": op("drop", id=Role(RoleSource.PRODUCER, "find.id")), "m1": message("report")}, [("m0", "m1")])


def dropped(key):
    return (StateDelta("things", key, {"id": key}, None),)


def test_a_deed_done_to_one_thing_after_the_other_is_progress_and_the_same_again_is_not():
    rows = [{"id": f"k{number}", "name": "Ada Berg"} for number in range(9)]
    stream = Stream(BULK, stop=StopConfig(stagnation=3))
    stream.call("find", rows, name="Ada Berg")
    assert [stream.call("drop", True, writes=dropped(row["id"]), id=row["id"]) for row in rows] == [None] * 9
    ends = [stream.call("drop", True, writes=dropped("k8"), id="k8") for _ in range(3)]
    assert ends[:2] == [None, None]
    assert ends[2].criterion is Criterion.STAGNATION


def test_many_alike_deeds_that_the_blueprint_does_not_know_are_progress_only_with_grounded_arguments():
    def run(source):
        stream = Stream(SENDING, stop=StopConfig(stagnation=5))
        stream.call("list", [{"id": f"k{number}"} for number in range(9)])
        return [stream.call("tag", True, writes=dropped(f"{source}{number}"), id=f"{source}{number}") for number in range(9)]

    assert run("k") == [None] * 9
    assert any(stop is not None and stop.criterion is Criterion.STAGNATION for stop in run("made_up_"))


@pytest.mark.parametrize(
    ("wanted", "given", "fits"),
    [
        ("2026-03-10", "2026-03-10 15:00", True),
        ("15:00", "2026-03-10 15:00", True),
        ("9:00", "2026-03-10 09:00", True),
        ("2026-03-11", "2026-03-10 15:00", False),
        ("16:00", "2026-03-10 15:00", False),
        ("228.00", 228.0, True),
        ("17.50", 17.5, True),
        ("17.50", 17.05, False),
        ("DE44 5001 0517 5407 3249 31", "DE44500105175407324931", True),
    ],
)
def test_a_value_of_the_request_is_met_by_what_means_the_same(wanted, given, fits):
    task = graph({"m0": op("put", it=NAME)})
    stream = Stream(CompiledTask(task.blueprint, {"r0/name:0": wanted}))
    stream.call("put", True, writes=SENT, it=given)
    assert bool(stream.evaluator.settled) == fits


def test_a_day_and_an_hour_told_one_after_the_other_ground_a_moment():
    stream = Stream()
    ledger = stream.evaluator._ledger
    ledger.reply("When?", "On 2026-03-10.")
    assert ledger.grounded("2026-03-10 15:00") is False
    ledger.reply("At what time?", "At 15:00.")
    assert ledger.grounded("2026-03-10 15:00") is True


def test_an_id_is_as_good_from_another_look_up_but_not_from_what_the_agent_made():
    for tool, writes, settles in (("browse", (), True), ("make", SENT, False)):
        stream = Stream(graph({"m0": op("drop", id=Role(RoleSource.PRODUCER, "find.id"))}))
        stream.call(tool, [{"id": "k1", "name": "Ada Berg"}], writes=writes)
        stream.call("drop", True, writes=dropped("k1"), id="k1")
        assert bool(stream.evaluator.settled) == settles


@pytest.mark.parametrize(("value", "stopped"), [("k1", False), ("made_up", True)])
def test_nothing_is_out_of_reach_that_a_call_with_grounded_arguments_may_have_done(value, stopped):
    task = graph({"m0": op("drop", id=Role(RoleSource.PRODUCER, "find.id")), "m1": message("report")}, [("m0", "m1")])
    tools = (ToolSpec("drop", "Drop.", {"type": "object", "properties": {"id": {"type": "string"}}}),)
    view = TaskView("t", "Drop it.", tools, max_requests=2)
    evaluator = StageEvaluator(task, view, EvaluatorConfig(stop=StopConfig.preset_named("provable")))
    for event in (
        Event(EventKind.USER_MESSAGE, 0, view.request),
        Event(EventKind.TOOL_CALL, 1, "", "a", "make", {}),
        Event(EventKind.TOOL_RETURN, 1, "", "a", "make", None, {"id": "k1"}, None, SENT),
        Event(EventKind.TOOL_CALL, 2, "", "b", "drop", {"id": value}),
        Event(EventKind.TOOL_RETURN, 2, "", "b", "drop", None, True, None, dropped(value)),
        Event(EventKind.ASSISTANT_MESSAGE, 3, "Done."),
        Event(EventKind.USER_MESSAGE, 3, "Next.", new_request=True),
    ):
        evaluator.observe(event)
    stop = evaluator.close_turn()
    assert (stop is not None and stop.criterion is Criterion.UNREACHABLE) == stopped
