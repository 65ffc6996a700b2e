"""Drawing worlds: names, numbers, titles and rows from a seeded generator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from dynsteer_gym.envs.sandbox.goals import Goal
from dynsteer_gym.envs.sandbox.state import Contact, Event, Happening, Message, Position, Reminder, State
from dynsteer_gym.envs.sandbox.user import Fact

__all__ = ["Draw", "Family", "Found", "Piece", "Plan", "Taken", "references"]

_FIRST = """Ada Bruno Carla Dmitri Elena Farid Greta Hugo Ines Jonas Keiko Liam Mona Nils Olga Pablo Quentin Rosa Samir Tara
Umberto Vera Wanda Xavier Yusuf Zoë Anouk Björn Chloé Dunja""".split()
_LAST = """Berg Castillo Duarte Eriksen Fischer Garcia Hansen Ibrahim Jansen Kowalski Lindqvist Moreau Novak Okafor Petrov
Quinn Rossi Schmidt Tanaka Urban Vasquez Weber Young Zimmermann Núñez Åkesson Müller Dubois Larsen Moretti""".split()
_TITLES = """Dentist;Team lunch;Car inspection;Piano lesson;Book club;Tax papers;Quarterly review;Yoga class;Parent evening;
Flu shot;Haircut;Rent payment;Garden work;Choir practice;Budget talk;Swimming;Library books;Eye test;Chess night;
Wine tasting;Roof repair;Passport renewal;Birthday cake;Vet visit;Salsa course;Project kickoff;House viewing;
Movie night;Bike service;Blood donation;Pottery class;Lease signing;Winter tyres;Math tutoring;Photo shoot;
Board meeting prep;Gift shopping;Plant watering;Window cleaning;Language exam""".replace("\n", "").split(";")
_TEXTS = """Running ten minutes late;See you at the station;The parcel has arrived;Lunch is on me today;
Bring the blue folder please;Happy birthday to you;The keys are under the mat;Practice starts at the gym;
I will pick up the kids;Dinner is in the oven;Good luck for the exam;The train leaves from platform four;
Thanks for the flowers;We won the match;The plumber comes tomorrow;Save me a seat;Call me after work;
The documents are signed;Meet me at the old bridge;The heating works again;Your jacket is in my car;
The tickets are booked;My flight has landed;The cat is fed;Welcome to the team;Tea is ready;
The printer is fixed;Greetings from the lake;The cake was delicious;Traffic is terrible today""".replace("\n", "").split(";")
_PLACES = ("Room 12", "Harbour Cafe", "City Hall", "Online", "Clinic North", "Studio Nine", "Park Gate", "Office Tower")
_STREETS = ("Rosenweg", "Harbour Road", "Via Roma", "Calle Mayor", "Kirkegata", "Elm Street", "Rue Verte", "Linnégatan")
_CITIES = ("Berlin", "Oslo", "Porto", "Turin", "Malmö", "Lyon", "Utrecht", "Graz")
_AREAS = ("415", "212", "312", "206", "617", "305", "702", "503")
_MONDAY = datetime(2026, 1, 5)

Plan = tuple[tuple[str, dict[str, object]] | str, ...]
"""An expert's turns: ``(tool, arguments)`` calls, or a message."""


@dataclass(frozen=True, slots=True)
class Found:
    """Stands in a plan for a value that the last return of a tool holds.

    Attributes:
        tool: The tool.
        field: Field of its return.
    """

    tool: str
    field: str


class Taken(Exception):
    """A piece does not fit into the world drawn so far."""


def references(plan: Plan) -> tuple[tuple[str, dict[str, object]], ...]:
    """Hidden reference milestones: each needed call once, and what is said; ids that the run makes are left out."""
    found: list[tuple[str, dict[str, object]]] = []
    for turn in plan:
        if isinstance(turn, str):
            entry: tuple[str, dict[str, object]] = ("say", {"text": turn})
        else:
            entry = (turn[0], {key: value for key, value in turn[1].items() if not isinstance(value, Found)})
        if entry in found:
            found.remove(entry)  # The first try failed on a precondition; the last one counts.
        found.append(entry)
    return tuple(found)


@dataclass(slots=True)
class Piece:
    """What a family adds to a talk: one request, hidden side included.

    Attributes:
        slots: Values for the request's template.
        goal: What it asks for.
        plan: The expert's turns.
        facts: What the user can be asked for.
        wants_answer: The request is a question.
        routes: Other legal plans.
        checks: What the user asks back when told that it is done.
        confirms: The user wants to be asked before it is done.
        then: Requests that the user brings right afterwards, having changed their mind.
        text: The words of the request where no template gives them.
        without: Tools that are not on offer.
        failing: Tools that fail once.
        happenings: What happens by itself.
        private: Texts that concern nobody else.
    """

    slots: dict[str, str]
    goal: Goal
    plan: Plan
    facts: tuple[Fact, ...] = ()
    wants_answer: bool = False
    routes: tuple[Plan, ...] = ()
    checks: tuple[str, ...] = ()
    confirms: bool = False
    then: tuple[Piece, ...] = ()
    text: str = ""
    without: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    happenings: tuple[Happening, ...] = ()
    private: tuple[str, ...] = ()


@dataclass(frozen=True)
class Family:
    """A family of scenarios: hidden side.

    Attributes:
        name: For operators' eyes only.
        domain: Contacts, messaging, planner or settings.
        templates: Wordings of the request; the last two are kept for the split ``paraphrased``.
        build: Draws one piece into a world.
    """

    name: str
    domain: str
    templates: tuple[str, ...]
    build: Callable[[Any], Piece] = field(repr=False)


class Draw:
    """A world under construction.

    Attributes:
        random: The seeded generator.
        contacts: Rows so far, likewise the other tables.
        switches: Values of the phone's switches.
    """

    def __init__(self, seed: int) -> None:
        """Starts an empty world.

        Args:
            seed: Decides everything.
        """
        self.random = Random(seed)
        self.contacts: list[Contact] = []
        self.messages: list[Message] = []
        self.reminders: list[Reminder] = []
        self.events: list[Event] = []
        self.switches = {"cellular": True, "wifi": True, "location_service": True, "low_battery_mode": False}
        self._claimed = ""
        self._used: set[str] = set()
        self.minute = self.random.randrange(50, 90) * 1440 + self.random.randrange(480, 1200)
        self.position = Position(
            f"{self.pick(_STREETS)} {self.below(90) + 1}, {self.pick(_CITIES)}",
            round(40 + 20 * self.random.random(), 4),
            round(20 * self.random.random(), 4),
        )

    def below(self, count: int) -> int:
        """A number in ``[0, count)``."""
        return int(self.random.random() * count)

    def pick(self, items: Any) -> Any:
        """One of some items."""
        return items[int(self.random.random() * len(items))]

    def chance(self, share: float) -> bool:
        """True in a share of cases."""
        return self.random.random() < share

    def _fresh(self, make: Callable[[], str]) -> str:
        while True:
            item = make()
            if item not in self._used:
                self._used.add(item)
                return item

    def person(self, first: str | None = None) -> str:
        """A name that nobody has yet; with ``first``, a look-alike that shares the first name."""
        return self._fresh(lambda: f"{first or self.pick(_FIRST)} {self.pick(_LAST)}")

    def phone(self) -> str:
        """A number that nobody has yet, E.164."""
        return self._fresh(lambda: f"+1{self.pick(_AREAS)}555{self.below(10000):04d}")

    def said_phone(self, number: str) -> str:
        """A number as people write it."""
        area, rest = number[2:5], number[8:]
        return self.pick((number, f"+1 {area} 555 {rest}", f"+1 {area}-555-{rest}"))

    def title(self) -> str:
        """A title not used yet."""
        return self._fresh(lambda: self.pick(_TITLES))

    def text(self) -> str:
        """A message's text not used yet."""
        return self._fresh(lambda: self.pick(_TEXTS))

    def when(self) -> str:
        """A time in the coming weeks, not used yet."""
        return self._fresh(lambda: self._stamp(self.minute + 1440 * (1 + self.below(25)) + 30 * self.below(30)))

    def _stamp(self, minute: int) -> str:
        moment = _MONDAY + timedelta(minutes=minute - minute % 30)
        return moment.isoformat(sep=" ", timespec="minutes")

    def finish_time(self) -> str:
        """The virtual clock of the finished world."""
        return (_MONDAY + timedelta(minutes=self.minute)).isoformat(sep=" ", timespec="minutes")

    def past(self) -> str:
        """A time in the past weeks, not used yet."""
        return self._fresh(lambda: self._stamp(self.minute - 90 - 30 * self.below(1300)))

    def key(self, prefix: str) -> str:
        """A row key."""
        return self._fresh(lambda: f"{prefix}{self.random.getrandbits(20):05x}")

    def contact(self, name: str | None = None, number: str | None = None) -> Contact:
        """Adds a contact."""
        row = Contact(self.key("c"), name or self.person(), number or self.phone())
        self.contacts.append(row)
        return row

    def message(self, number: str, content: str | None = None, when: str | None = None) -> Message:
        """Adds a received message."""
        row = Message(self.key("m"), number, "+14155550100", content or self.text(), when or self.past())
        self.messages.append(row)
        return row

    def reminder(self, title: str | None = None) -> Reminder:
        """Adds a reminder that is not done."""
        row = Reminder(self.key("r"), title or self.title(), self.when())
        self.reminders.append(row)
        return row

    def event(self, title: str | None = None) -> Event:
        """Adds an event."""
        row = Event(self.key("e"), title or self.title(), self.when(), self.pick(_PLACES))
        self.events.append(row)
        return row

    def claim_switches(self, piece: str) -> bool:
        """Reserves the switches for one piece of the talk; ``False`` where another needs them."""
        if self._claimed:
            return False
        self._claimed = piece
        return True

    def need_switches(self, piece: str) -> None:
        """Relies on services being on, or on an earlier piece of the same kind having seen to it.

        Raises:
            Taken: Another piece has the switches.
        """
        if self._claimed not in ("", "on", piece):
            raise Taken("switches")
        self._claimed = self._claimed or "on"

    def low_battery(self) -> None:
        """Puts the phone into low battery mode, services off."""
        self.switches.update(cellular=False, wifi=False, location_service=False, low_battery_mode=True)

    def finish(self) -> State:
        """Adds rows that no request is about, in an order that says nothing, and closes the world."""
        for _ in range(3 + self.below(3)):
            person = self.contact()
            if self.chance(0.4):
                self.message(person.phone_number)
        for _ in range(1 + self.below(3)):
            self.reminder()
        for _ in range(1 + self.below(3)):
            self.event()
        for rows in (self.contacts, self.messages, self.reminders, self.events):
            rows.sort(key=_row_key)  # Keys are random, so this is a shuffle.
        return State(
            cellular=self.switches["cellular"],
            wifi=self.switches["wifi"],
            location_service=self.switches["location_service"],
            low_battery_mode=self.switches["low_battery_mode"],
            minute=self.minute,
            position=self.position,
            contacts=tuple(self.contacts),
            messages=tuple(self.messages),
            reminders=tuple(self.reminders),
            events=tuple(self.events),
        )


def _row_key(row: Any) -> str:
    return getattr(row, row.__slots__[0])
