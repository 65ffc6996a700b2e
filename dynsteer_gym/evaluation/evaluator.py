"""Algorithm 1 as a stream: each event is seen once, and a step costs the same at step 1000 as at step 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from dynsteer_gym.blueprint.compiler import BlueprintCompiler
from dynsteer_gym.blueprint.graph import CompiledTask, Milestone, MinefieldKind, OperationKind
from dynsteer_gym.evaluation.config import EvaluatorConfig
from dynsteer_gym.evaluation.evidence import Ledger, options_of
from dynsteer_gym.evaluation.matching import Match, match, partial, possible
from dynsteer_gym.evaluation.policy import UNIFORM, base_tier, next_tiers, paid_quality, stage_score, update_weights
from dynsteer_gym.evaluation.stopping import Criterion, StopConfig, StopRecord
from dynsteer_gym.evaluation.windows import window
from dynsteer_gym.events import STRUCTURAL_ERRORS, ActionKind, ClosedAction, ErrorKind, Event, EventKind
from dynsteer_gym.judges.base import DIMENSIONS, Defect, Dimension, DimensionScore, Review, ReviewRequest, Tier
from dynsteer_gym.task import TaskView

if TYPE_CHECKING:
    from dynsteer_gym.evaluation.report import EvaluationReport

__all__ = ["StageEvaluator", "StageRecord"]

_LATCHED = 32
"""Closed actions looked back on when a milestone becomes ready."""
_RISE = 0.05
_MANY = 3
"""So many times in a row, a deed done to one thing after the other is taken for what the request is about."""


class StageRecord(NamedTuple):
    """A settled and reviewed stage.

    Attributes:
        milestone: Its id.
        t: Closed step at which it settled.
        event: Raw event that closed that step.
        anchor: Its immediate dominator, or ``None`` for ``s0``.
        steps: The closed steps of its evidence window.
        share: ``share(m)``, its part of the dense return.
        scores: By dimension.
        score: ``S_t`` with the moving weights of equation 7.
        fixed: ``S0`` with fixed uniform weights.
        quality: ``q(m) = min(S0, s_correctness)``, what rewards pay.
        weights: The weights that ``score`` used.
        asked: Tier that the policy asked for, by dimension; ``scores`` tell the tier that was served.
        operation: Which of the milestone's alternatives settled it.
        used: What the settlement was decided on.
        satisfied: The judge's verdict, or ``None``.
        reviewed: How often it was reviewed.
    """

    milestone: str
    t: int
    event: int
    anchor: str | None
    steps: tuple[int, ...]
    share: float
    scores: Mapping[Dimension, DimensionScore]
    score: float
    fixed: float
    quality: float
    weights: Mapping[Dimension, float]
    asked: Mapping[Dimension, Tier]
    operation: int
    used: str
    satisfied: bool | None
    reviewed: int


class _Pending(NamedTuple):
    milestone: Milestone
    action: ClosedAction
    found: Match
    request: ReviewRequest
    reviews: int


_CHEAP: Mapping[Dimension, Tier] = dict.fromkeys(DIMENSIONS, Tier.CHEAP)


class StageEvaluator:
    """Evaluates one episode from its public task view and its events.

    It has no way to reach the scenario: it is given the view, and sees what the world emits.
    """

    def __init__(
        self,
        task: CompiledTask,
        view: TaskView,
        config: EvaluatorConfig | None = None,
        *,
        compiler: BlueprintCompiler | None = None,
        max_turns: int | None = None,
    ) -> None:
        """Starts at the first event.

        Args:
            task: The compiled blueprint of the view's first request.
            view: The public task view.
            config: The settings.
            compiler: Compiles the requests that the user brings later.
            max_turns: The episode's budget of assistant turns, for the budget stop.
        """
        self.task = task
        self.config = config if config is not None else EvaluatorConfig()
        self._view = view
        self._compiler = compiler
        self._max_turns = max_turns
        self._ledger = Ledger()
        options = options_of(view.tools)
        if options:
            self._ledger.offer(options)
        self.k = 0
        self.t = 0
        self._turn = 0
        self._actions: list[ClosedAction] = []
        self._open: tuple[Event, int] | None = None
        self._tried: dict[int, str] = {}
        self._defects: list[Defect] = []
        self._charged = 0
        self._repaired: set[int] = set()
        self._fixable: dict[str, list[int]] = {}
        self._unclear: dict[int, int] = {}
        self._settled: dict[str, int] = {}
        self._reviewed: list[StageRecord] = []
        self._fresh: list[StageRecord] = []
        self._due: list[_Pending] = []
        self._given: list[_Pending] = []
        self._done: set[str] = set()
        self._possibly: set[str] = set()
        self._deeds: set[tuple[object, ...]] = set()
        self._latched: dict[str, tuple[ClosedAction, Match]] = {}
        self._weights: Mapping[Dimension, float] = UNIFORM
        self._tiers: Mapping[Dimension, Tier] = _CHEAP
        self._score = 0.0
        self._coverage = 0.0
        self._ready: list[Milestone] = []
        self._missing: dict[str, int] = {}
        self._request_start = 0
        self._provisional: dict[str, float] = {}
        self._idle = 0
        self._malformed = 0
        self._same_error: dict[str, int] = {}
        self._low = 0
        self._stop: StopRecord | None = None
        self._fatal: StopRecord | None = None
        self._hit = False
        self._unreachable: str | None = None
        self._enter(task.blueprint.by_request.get(view.request_index, ()))

    # What is read off.

    @property
    def stop(self) -> StopRecord | None:
        """The stop that has fired, or ``None``."""
        return self._stop

    @property
    def settled(self) -> Mapping[str, int]:
        """Closed step of each settled milestone."""
        return self._settled

    @property
    def score(self) -> float:
        """``Q = sum_m share(m) * S0(m)`` over settled milestones, in [0, 1]."""
        return min(self._score, 1.0)

    @property
    def coverage(self) -> float:
        """Sum of the settled milestones' shares, in [0, 1]."""
        return min(self._coverage, 1.0)

    @property
    def actions(self) -> Sequence[ClosedAction]:
        """The closed actions so far."""
        return self._actions

    @property
    def stages(self) -> Sequence[StageRecord]:
        """The reviewed stages so far."""
        return self._reviewed

    @property
    def defects(self) -> Sequence[Defect]:
        """What rules found wrong so far, in order."""
        return self._defects

    @property
    def repaired(self) -> frozenset[int]:
        """Places among ``defects`` of those that were made good later."""
        return frozenset(self._repaired)

    def frontier(self) -> tuple[str, ...]:
        """The ready frontier ``F_t`` (equation 4)."""
        return tuple(milestone.id for milestone in self._ready)

    @property
    def provisional(self) -> Mapping[str, float]:
        """Best partial match so far of each ready milestone, in [0, 1)."""
        return {milestone.id: self._provisional.get(milestone.id, 0.0) for milestone in self._ready}

    # The stream.

    def observe(self, event: Event) -> bool:
        """Takes in one event.

        Args:
            event: The next event of the episode. A ``TOOL_CALL`` comes before the tool runs.

        Returns:
            Whether the episode must be halted here, at a compiled minefield.
        """
        self.k += 1
        self._turn = event.turn
        kind = event.kind
        if kind == EventKind.TOOL_CALL:
            self._open = (event, self.k)
            return self._screen(event)
        if kind == EventKind.TOOL_RETURN:
            self._close_call(event)
        elif kind == EventKind.ASSISTANT_MESSAGE:
            self._open = (event, self.k)
        elif kind == EventKind.USER_MESSAGE:
            if self._open is None:
                self._ledger.request(event.text)
            else:
                self._close_message(event)
        elif kind == EventKind.TASK_CHANGE and isinstance(event.value, TaskView):
            self._view = event.value
        return False

    def _screen(self, event: Event) -> bool:
        """The raw clock's check: compiled minefields, before the tool runs."""
        screens = self.task.blueprint.screens.get(self._view.request_index)
        if not screens or event.tool is None or event.tool not in screens or event.arguments is None:
            return False
        for minefield in screens[event.tool]:
            if minefield.unless_confirmed and self._ledger.confirmed:
                continue
            if minefield.kind == MinefieldKind.UNSUPPORTED_CALL:
                guessed = [
                    name
                    for name in minefield.ungrounded
                    if name in event.arguments and self._ledger.grounded(event.arguments[name]) is not True
                ]
                if not guessed:
                    continue
                evidence = f"{event.tool} was called with {guessed[0]}={str(event.arguments[guessed[0]])[:60]!r}; {minefield.reason}"
            else:
                evidence = minefield.reason
            self._hit = True
            self._charge(Defect(self.t + 1, str(minefield.kind), Dimension.SAFETY, evidence, critical=True), ())
            if self.config.stop.minefield:
                self._fatal = self._record(Criterion.MINEFIELD, Dimension.SAFETY, evidence)
                return True
        return False

    def _close_call(self, event: Event) -> None:
        opened, start = self._open if self._open is not None else (event, self.k)
        self._open = None
        self.t += 1
        action = ClosedAction(
            self.t,
            event.turn,
            ActionKind.CALL,
            start,
            self.k,
            opened.text,
            opened.tool,
            opened.arguments,
            event.value,
            event.error,
            event.text if event.error is not None else "",
            event.writes,
        )
        ledger = self._ledger
        found, unclear = ledger.inspect(action, self._expected, False)
        if unclear:
            self._unclear[self.t] = unclear
        ledger.closed(action, self._expected)
        self._actions.append(action)
        for defect in found:
            self._charge(defect, (action.tool or "",))
        if action.error is None and action.tool in self._fixable:
            self._repaired.update(self._fixable.pop(action.tool))
        self._structure(action)
        self._settle(action)

    def _close_message(self, event: Event) -> None:
        assert self._open is not None
        opened, start = self._open
        self._open = None
        self.t += 1
        action = ClosedAction(
            self.t,
            event.turn,
            ActionKind.MESSAGE,
            start,
            self.k,
            opened.text,
            reply=event.text,
            new_request=event.new_request,
            ends=event.ends,
        )
        over = event.new_request or event.ends
        fresh = True if over else self._ledger.reply(opened.text, event.text)
        self._actions.append(action)
        self._malformed = 0
        settled = self._settle(action, fresh)
        if not settled:
            found, _ = self._ledger.inspect(action, self._expected, fresh)
            for defect in found:
                self._charge(defect, ())
        if over:
            self._end_request()
        if event.new_request:
            self._view = replace(self._view, request=event.text, request_index=self._view.request_index + 1)
            self._ledger.request(event.text)
            if self._compiler is not None:
                self.task = self._compiler.extend(self.task, self._view)
            self._enter(self.task.blueprint.by_request.get(self._view.request_index, ()))

    # Settlement.

    def _enter(self, milestones: Sequence[Milestone]) -> None:
        """Begins a request: its tools are expected, its sources are ready once all before it is settled."""
        blueprint = self.task.blueprint
        self._current = milestones
        self._expected = frozenset(
            operation.name for m in milestones for operation in m.operations if operation.kind == OperationKind.CALL
        )
        self._lookups = frozenset(
            role.key.partition(".")[0] for m in milestones for op in m.operations for _, role in op.bindings if role.source == "producer"
        )
        self._request_start = self.t
        self._deeds = set()
        self._latched = {}
        for milestone in milestones:
            self._missing[milestone.id] = sum(key not in self._settled for key in blueprint.predecessors[milestone.id])
            if not self._missing[milestone.id]:
                self._ready.append(milestone)

    def _settle(self, action: ClosedAction, fresh: bool = False) -> bool:
        """At most one milestone per closed action; returns whether one settled or came nearer."""
        ledger, literals = self._ledger, self.task.literals
        best: tuple[Milestone, Match] | None = None
        for milestone in self._ready:
            found = match(milestone.operations, action, ledger, literals)
            if found is not None and (best is None or found.bound > best[1].bound):
                best = (milestone, found)
        self._watch(action)
        if best is None and self._latched:
            key = next(iter(self._latched))
            _, found = self._latched.pop(key)
            milestone = self.task.blueprint.by_id[key]
            if milestone in self._ready:
                self._settles(milestone, action, found)
                self._stagnates(action, True, fresh)
                return False
        if best is not None:
            self._settles(best[0], action, best[1])
            if action.new_request or action.ends:
                self._settle_rest(action)
            self._stagnates(action, True, fresh)
            return True
        risen = self._provide(action)
        self._stagnates(action, risen or self._another(action), fresh)
        return risen

    def _another(self, action: ClosedAction) -> bool:
        """Whether what a settled milestone asks for was done to one more entity: a request may be about many."""
        if not action.writes:
            return False
        deed = (action.tool, *sorted((name, str(value)) for name, value in (action.arguments or {}).items()))
        if deed in self._deeds:
            return False
        self._deeds.add(deed)
        if any(
            milestone.id in self._settled and match(milestone.operations[:1], action, self._ledger, self.task.literals)
            for milestone in self._current
        ):
            return True
        alike = all(step.tool == action.tool and step.error is None for step in self._actions[-_MANY:])
        return alike and self.t >= _MANY and all(self._ledger.grounded(value) for value in (action.arguments or {}).values())

    def _settle_rest(self, action: ClosedAction) -> None:
        """The action that ends a request settles what it also meets: there is no later one."""
        again = True
        while again:
            again = False
            for milestone in list(self._ready):
                found = match(milestone.operations, action, self._ledger, self.task.literals)
                if found is None and milestone.id in self._latched:
                    found = self._latched[milestone.id][1]
                if found is not None:
                    self._settles(milestone, action, found)
                    again = True
                    break

    def _watch(self, action: ClosedAction) -> None:
        """Notes which milestones' plain operation has been done, whether or not it was their turn, and which was undone."""
        for milestone in self._current:
            plain = milestone.operations[0]
            if milestone.id in self._done:
                if action.writes and action.tool == plain.name and not match((plain,), action, self._ledger, self.task.literals):
                    self._done.discard(milestone.id)
                    detail = f"{action.tool} was called again and changed what had been done"
                    self._charge(Defect(self.t, "deed undone", Dimension.CORRECTNESS, detail, critical=True), ())
            elif match((plain,), action, self._ledger, self.task.literals):
                self._done.add(milestone.id)
            elif milestone.id not in self._possibly and possible(plain, action, self._ledger, self.task.literals):
                self._possibly.add(milestone.id)

    def _settles(self, milestone: Milestone, action: ClosedAction, found: Match) -> None:
        blueprint = self.task.blueprint
        self._settled[milestone.id] = self.t
        self._tried[self.t] = milestone.id
        self._ready.remove(milestone)
        self._coverage += milestone.share
        self._latched.pop(milestone.id, None)
        for key in blueprint.successors[milestone.id]:
            if key not in self._missing:
                continue
            self._missing[key] -= 1
            if not self._missing[key]:
                successor = blueprint.by_id[key]
                self._ready.append(successor)
                if self.config.latch:
                    self._latch(successor)
        self._due.append(self._stage(milestone, action, found))

    def _latch(self, milestone: Milestone) -> None:
        """An earlier closed look-up of this request may settle what has just become ready."""
        if milestone.operations[0].kind != OperationKind.CALL:
            return
        anchor = self.task.blueprint.anchors[milestone.id]
        start = max(self._settled.get(anchor, 0) if anchor else 0, self._request_start, self.t - _LATCHED)
        for earlier in reversed(self._actions[start : self.t - 1]):
            if earlier.writes or earlier.t in self._tried:
                continue
            found = match(milestone.operations, earlier, self._ledger, self.task.literals)
            if found is not None:
                self._latched[milestone.id] = (earlier, found)
                return

    def _stage(self, milestone: Milestone, action: ClosedAction, found: Match) -> _Pending:
        """Cuts out the evidence of a settled milestone and asks for its review."""
        blueprint = self.task.blueprint
        anchor, steps = window(
            blueprint, milestone.id, self._settled, self._actions, self._tried, self.t, branches=self.config.branches
        )
        own = {step.t for step in steps}
        charged = tuple(d for d in self._defects[self._charged :] if d.t in own)
        if len(charged) == len(self._defects) - self._charged:
            self._charged = len(self._defects)
        else:  # Defects of parallel branches stay for the stage that they belong to.
            rest = [d for d in self._defects[self._charged :] if d.t not in own]
            self._defects[self._charged :] = [*charged, *rest]
            self._charged += len(charged)
        right, reason = self._judged(milestone, found)
        request = ReviewRequest(
            milestone.id,
            self._view.request,
            milestone.goal,
            self._tiers,
            steps,
            anchor,
            charged,
            right,
            found.undecided,
            reason,
            sum(self._unclear.get(step.t, 0) for step in steps) if self._unclear else 0,
        )
        return _Pending(milestone, action, found, request, 0)

    def _judged(self, milestone: Milestone, found: Match) -> tuple[float, str]:
        """Whether what a message claims is so: a report needs the deed, a refusal or a question needs its ground."""
        operation = milestone.operations[found.operation]
        if operation.kind != OperationKind.MESSAGE or operation.name == "answer":
            return found.right, found.reason
        if operation.name == "report":
            undone = [
                m
                for m in self._current
                if m.operations[0].kind == OperationKind.CALL and m.id not in self._done and self._needed(m)
            ]
            return (0.0, "it claims what was not done") if undone else (1.0, "")
        lacking = any(self._ledger.came_empty(tool) for tool in self._lookups)
        if operation.name == "question":
            return (1.0, "") if found.operation == 0 or lacking else (0.0, "a tool could have told it")
        asks = any(op.name == "question" for m in self._current for op in m.operations)
        grounded = bool(self._ledger.unanswered) if asks else lacking
        return (1.0, "") if grounded else (0.0, "nothing shows that it cannot be done")

    def _provide(self, action: ClosedAction) -> bool:
        """Provisional scores of the ready milestones; returns whether the best one rose by more than 0.05."""
        before = max((self._provisional.get(m.id, 0.0) for m in self._ready), default=0.0)
        after = before
        for milestone in self._ready:
            near = partial(milestone.operations, action, self._ledger, self.task.literals)
            if near > 0:
                self._tried.setdefault(self.t, milestone.id)
            if near > self._provisional.get(milestone.id, 0.0):
                self._provisional[milestone.id] = near
                after = max(after, near)
        return after > before + _RISE

    def _charge(self, defect: Defect, tools: tuple[str, ...]) -> None:
        self._defects.append(defect)
        for tool in tools:
            self._fixable.setdefault(tool, []).append(len(self._defects) - 1)

    # Reviews.

    def reviews(self) -> list[ReviewRequest]:
        """The reviews that are due; each is given once."""
        if not self._due:
            return []
        self._given, self._due = self._due, []
        return [pending.request for pending in self._given]

    def apply(self, reviews: Sequence[Review]) -> None:
        """Takes in the answers to the last :meth:`reviews`, in order.

        Raises:
            ValueError: There are more or fewer of them.
        """
        given, self._given = self._given, []
        for pending, review in zip(given, reviews, strict=True):
            self._apply(pending, review)

    def _apply(self, pending: _Pending, review: Review) -> None:
        config = self.config
        scores = review.scores
        if review.satisfied is False and Dimension.CORRECTNESS in scores:
            capped = scores[Dimension.CORRECTNESS]
            scores = {**scores, Dimension.CORRECTNESS: capped._replace(score=min(capped.score, config.theta_fail))}
        request = pending.request
        value = stage_score(scores, self._weights)
        base = base_tier(value, scores, self._hit, config)
        tiers, raised = next_tiers(scores, request.due, base, config)
        if raised and config.escalate == "same" and pending.reviews == 0:
            # The failing stage is reviewed again at once, and sees what the lower tier found.
            again = request._replace(due=tiers, previous=review)
            self._due.append(pending._replace(request=again, reviews=1))
            return
        fixed = stage_score(scores, UNIFORM)
        milestone = pending.milestone
        record = StageRecord(
            milestone.id,
            pending.action.t,
            pending.action.last_event,
            self.task.blueprint.anchors[milestone.id],
            tuple(step.t for step in request.steps),
            milestone.share,
            scores,
            value,
            fixed,
            paid_quality(fixed, scores),
            self._weights,
            request.due,
            pending.found.operation,
            pending.found.used,
            review.satisfied,
            pending.reviews + 1,
        )
        self._weights = update_weights(self._weights, scores, config.alpha, config.beta)
        self._tiers = tiers
        self._score += milestone.share * fixed
        self._reviewed.append(record)
        self._fresh.append(record)
        self._low = self._low + 1 if record.quality < config.theta_fail else 0

    def take_stages(self) -> list[StageRecord]:
        """The stages reviewed since the last call."""
        fresh, self._fresh = self._fresh, []
        return fresh

    # Stops.

    def close_turn(self) -> StopRecord | None:
        """The stop criteria, after a turn's actions are closed and its stages reviewed."""
        if self._stop is None:
            self._stop = self._fatal or self._criteria()
        return self._stop

    def lift_stop(self) -> None:
        """Forgets a stop that has fired, and watches for no further one: for the control arm that plays on."""
        self._stop = self._fatal = None
        self.config = self.config.model_copy(update={"stop": StopConfig.preset_named("none")})

    def _criteria(self) -> StopRecord | None:
        stop = self.config.stop
        if stop.structural:
            if self._malformed >= stop.structural:
                return self._record(
                    Criterion.STRUCTURAL, Dimension.TOOL_COMPLIANCE, f"{self._malformed} malformed calls in a row"
                )
            again = max(self._same_error.items(), key=lambda item: item[1], default=("", 0))
            if again[1] >= stop.structural:
                return self._record(Criterion.STRUCTURAL, Dimension.TOOL_COMPLIANCE, f"{again[1]} times: {again[0]}")
        if stop.provable:
            if self._unreachable is not None:
                evidence = f"the request was ended, and {self._unreachable} was never done"
                return self._record(Criterion.UNREACHABLE, Dimension.CORRECTNESS, evidence)
            if self._max_turns is not None:
                left, needed = self._max_turns - self._turn, self._remaining()
                if left < needed:
                    return self._record(Criterion.BUDGET, Dimension.EFFICIENCY, f"{left} turns are left, {needed} are needed")
        if stop.low_quality and self._reviewed:
            last = self._reviewed[-1]
            broken = last.quality < self.config.theta_fail and last.scores.get(Dimension.CORRECTNESS, _WHOLE).score == 0.0
            if broken or self._low >= stop.low_quality:
                worst = min(last.scores.items(), key=lambda item: item[1].score)
                evidence = f"stage {last.milestone} has quality {last.quality:.2f}: {worst[1].reason or worst[0]}"
                return self._record(Criterion.LOW_QUALITY, worst[0], evidence)
        if stop.stagnation and self._idle >= stop.stagnation:
            evidence = f"{self._idle} closed actions without progress towards {', '.join(self.frontier()) or 'anything'}"
            return self._record(Criterion.STAGNATION, Dimension.EFFICIENCY, evidence)
        return None

    def _record(self, criterion: Criterion, dimension: Dimension | None, evidence: str) -> StopRecord:
        anchor = max(self._settled, key=lambda key: self._settled[key], default=None)
        return StopRecord(criterion, self.k, self.t, self._turn, anchor, None if dimension is None else str(dimension), evidence)

    def _structure(self, action: ClosedAction) -> None:
        if action.error in STRUCTURAL_ERRORS:
            self._malformed += 1
            if action.error == ErrorKind.SCHEMA:
                self._same_error[action.error_text] = self._same_error.get(action.error_text, 0) + 1
        else:
            self._malformed = 0

    def _stagnates(self, action: ClosedAction, progress: bool, fresh: bool) -> None:
        if progress or action.new_request:
            self._idle = 0
        elif not (action.kind == ActionKind.MESSAGE and fresh):
            self._idle += 1

    def _end_request(self) -> None:
        """A request is over: an operation that it certainly needs and that was never done can never be done."""
        if self._unreachable is not None or not self._current:
            return
        for milestone in self._current:
            plain = len(milestone.operations) == 1 and milestone.operations[0].kind == OperationKind.CALL
            undone = milestone.id not in self._done and milestone.id not in self._possibly
            if milestone.certain and plain and undone and self._needed(milestone):
                self._unreachable = f"{milestone.operations[0].name} ({milestone.id})"
                return

    def _needed(self, milestone: Milestone) -> bool:
        """Whether a call is a deed and not a look-up: look-ups can be made in other ways."""
        tool = self._view.tool(milestone.operations[0].name)
        return tool is not None and tool.name not in self._lookups

    def _remaining(self) -> int:
        """Turns that the rest of the talk needs at least: one for each request to come, and one to end this one."""
        ended = self._actions[-1].ends if self._actions else False
        to_come = max(self._view.max_requests - self._view.request_index - 1, 0)
        return 0 if ended else 1 + to_come

    def report(self) -> EvaluationReport:
        """The auditable report of the episode so far."""
        from dynsteer_gym.evaluation.report import build

        return build(self, self._view)

    def fork(self) -> StageEvaluator:
        """An independent copy of the evaluation; immutable parts are shared."""
        other = object.__new__(StageEvaluator)
        state = self.__dict__
        own = other.__dict__
        own.update(state)
        for name in _LISTS:
            own[name] = state[name].copy()
        own["_ledger"] = self._ledger.fork()
        own["_fixable"] = {key: list(value) for key, value in self._fixable.items()}
        return other


_WHOLE = DimensionScore(1.0)
_LISTS = (
    "_actions",
    "_tried",
    "_defects",
    "_repaired",
    "_unclear",
    "_settled",
    "_reviewed",
    "_fresh",
    "_due",
    "_given",
    "_done",
    "_deeds",
    "_possibly",
    "_latched",
    "_ready",
    "_missing",
    "_provisional",
    "_same_error",
)


