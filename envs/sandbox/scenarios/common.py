"""What the scenario families of the five domains are written with. Hidden side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from dynsteer_gym.envs.sandbox.draw import Draw, Family, Piece, Taken
from dynsteer_gym.envs.sandbox.state import Account, Contact, Email, Event, Member, Message, Payee, State, Transfer, clock_minute
from dynsteer_gym.envs.sandbox.user import Fact
from dynsteer_gym.language import stem

__all__ = ["DUE", "FAMILIES", "GROUPS", "PHONE", "PLACES", "WHICH", "WideDraw", "call", "fact", "family", "later", "message_from", "spelled"]

FAMILIES: dict[str, Family] = {}
"""The families of these modules by name."""
GROUPS = ("Book Circle", "Hiking Friends", "Choir", "Neighbours", "Tennis Team", "Project Atlas", "Parents Class 3", "Old School")
PLACES = ("Room 7", "Lakeside Hall", "Bakery Corner", "Studio Blue", "Library Annex", "Gate Four", "Pier Two", "Mill Yard")
_WIDE_FIRST = """Aino Bartosz Chiara Désirée Emre Fatima Gábor Hanako Ilse João Kofi Léa Matthias Noor Øyvind Priya Rania Sören Thuy
Ulrike Viktor Wen Ximena Yara Zdeněk Олег София Νίκος 李娜 王伟""".split()
_WIDE_LAST = """Abebe Bianchi Černý D'Angelo Egger Fernández Grünwald Horváth Ito Jørgensen Kaya Łukasz Mbeki Nguyen O'Brien
Papadakis Quist Rácz Silva Tremblay Uzun Virtanen Wójcik Yılmaz Zhang Петров Иванова""".split()
_BANKS = (("DE", 18), ("NL", 14), ("AT", 16), ("ES", 20))
_ACCOUNTS = ("Everyday", "Savings", "Household", "Travel", "Holiday Fund")
_FIRMS = (
    "Blue River Energy;City Waterworks;Maple Rentals;Nordic Telecom;Green Grocers;Sunrise Gym;Pixel Print;Harbour Ferries;"
    "Oak Furniture;Quiet Books;Rapid Repairs;Silver Dental;Tall Trees Nursery;Union Insurance;Velo Works;White Laundry"
).split(";")


def family(domain: str, *templates: str) -> Callable[[Callable[[WideDraw], Piece]], Callable[[WideDraw], Piece]]:
    """Registers a family under its builder's name; its last two templates are kept for unseen wordings."""

    def register(build: Callable[[WideDraw], Piece]) -> Callable[[WideDraw], Piece]:
        name = build.__name__
        FAMILIES[name] = Family(name, domain, templates, build)
        return build

    return register


def call(name: str, /, **arguments: Any) -> tuple[str, dict[str, object]]:
    """A call of a plan."""
    return name, arguments


def fact(topic: str, keywords: str, answer: str, *more: str) -> Fact:
    """Something that the user tells when a question holds one of the keywords."""
    return Fact(topic, frozenset(stem(word) for word in keywords.split()), answer, more)


WHICH = "which who whom both two several first last surname"
"""Words of a question for one of several."""
DUE = "due time when date day start schedule clock"
"""Words of a question for a time."""
PHONE = "phone number telephone mobile reach"
"""Words of a question for a phone number."""


def later(time: str, minutes: int) -> str:
    """A time some minutes later."""
    return (datetime.fromisoformat(time) + timedelta(minutes=minutes)).strftime("%Y-%m-%d %H:%M")


def spelled(day: str) -> str:
    """A day as people write it: ``12 March 2026``."""
    moment = datetime.fromisoformat(day)
    return f"{moment.day} {moment:%B %Y}"


class WideDraw(Draw):
    """A world under construction for all five domains.

    Attributes:
        emails: Rows so far, likewise the other tables.
        complete: No payees may be added any more.
    """

    def __init__(self, seed: int) -> None:
        """Starts an empty world.

        Args:
            seed: Decides everything.
        """
        super().__init__(seed)
        self.emails: list[Email] = []
        self.members: list[Member] = []
        self.accounts: list[Account] = []
        self.payees: list[Payee] = []
        self.transfers: list[Transfer] = []
        self.complete = False
        self._taken: list[int] = []
        self._balances: dict[str, float] = {}

    def person(self, first: str | None = None) -> str:
        """A name that nobody has yet, at times one that is not written in ASCII."""
        if self.chance(0.6):
            return super().person(first)
        return self._fresh(lambda: f"{first or self.pick(_WIDE_FIRST)} {self.pick(_WIDE_LAST)}")

    def _numbered(self, make: Callable[[], str]) -> str:
        for _ in range(20):
            item = make()
            if item not in self._used:
                self._used.add(item)
                return item
        return self._fresh(lambda: f"{make()} {2 + self.below(60)}")

    def title(self) -> str:
        """A title not used yet."""
        from dynsteer_gym.envs.sandbox import draw

        return self._numbered(lambda: self.pick(draw._TITLES))

    def text(self) -> str:
        """A message's text not used yet."""
        from dynsteer_gym.envs.sandbox import draw

        return self._numbered(lambda: self.pick(draw._TEXTS))

    def when(self) -> str:
        """A time in the coming weeks, at least an hour from all others drawn."""
        while True:
            time = super().when()
            if time[:10] not in self._used and self.take(time):
                return time

    def take(self, time: str) -> bool:
        """Keeps an hour free for one event; ``False`` where it is taken."""
        minute = clock_minute(time)
        if any(abs(minute - other) < 60 for other in self._taken):
            return False
        self._taken.append(minute)
        return True

    def day(self) -> str:
        """A coming day on which nothing is yet."""
        while True:
            day = (datetime(2026, 1, 5) + timedelta(minutes=self.minute + 1440 * (2 + self.below(40)))).date().isoformat()
            noon = clock_minute(f"{day} 12:00")
            if day not in self._used and not any(abs(minute - noon) <= 800 for minute in self._taken):
                self._used.add(day)
                return day

    def at(self, day: str, hour: int, title: str | None = None) -> Event:
        """Adds an event at a full hour of a day."""
        self.take(f"{day} {hour:02d}:00")
        row = Event(self.key("e"), title or self.title(), f"{day} {hour:02d}:00", self.pick(PLACES))
        self.events.append(row)
        return row

    def mail(self, name: str) -> str:
        """An email address not used yet."""
        plain = "".join(letter for letter in name.split()[0].lower() if letter.isascii() and letter.isalpha()) or "user"
        return self._fresh(lambda: f"{plain}{self.below(1000)}@example.org")

    def mailed(self) -> Contact:
        """Adds a contact with an email address."""
        row = replace(self.contact(), email=None)
        self.contacts[-1] = row = replace(row, email=self.mail(row.name))
        return row

    def namesakes(self) -> tuple[Contact, Contact]:
        """Adds two contacts with one first name, in either order."""
        one = self.contact()
        other = self.contact(self.person(one.name.split()[0]))
        return (one, other) if self.chance(0.5) else (other, one)

    def group(self, size: int) -> tuple[str, list[Contact]]:
        """Adds a group of new contacts."""
        name = self._fresh(lambda: self.pick(GROUPS))
        rows = [self.contact() for _ in range(size)]
        self.members.extend(Member(self.key("g"), name, row.contact_id) for row in rows)
        return name, rows

    def account(self, low: int = 800, limit: float = 2000.0, currency: str = "EUR") -> Account:
        """Adds an account."""
        name = self._fresh(lambda: self.pick(_ACCOUNTS))
        row = Account(self.key("a"), name, currency, float(low + 10 * self.below(300)), limit)
        self.accounts.append(row)
        return row

    def main(self) -> Account:
        """The account that money is paid from; the first one drawn."""
        return self.accounts[0] if self.accounts else self.account(low=1500)

    def pays(self, account: Account, payee_id: str, amount: float) -> dict[str, Any]:
        """What a goal holds when an amount has been sent: keyword arguments of ``Goal``; the next payment starts there."""
        row = {"account_id": account.account_id, "payee_id": payee_id, "amount": amount, "status": "sent"}
        balance = round(self._balances.get(account.account_id, account.balance) - amount, 2)
        self._balances[account.account_id] = balance
        return {"adds": (("transfers", row),), "changes": (("accounts", account.account_id, {"balance": balance}),)}

    def balance(self, account: Account) -> float:
        """What an account will hold after the requests so far."""
        return self._balances.get(account.account_id, account.balance)

    def moves(self, account: Account, amount: float) -> float:
        """What an account will hold once an amount more (or less) is on it."""
        self._balances[account.account_id] = round(self.balance(account) + amount, 2)
        return self._balances[account.account_id]

    def iban(self) -> str:
        """An IBAN not used yet."""
        country, length = self.pick(_BANKS)
        return self._fresh(lambda: f"{country}{10 + self.below(90)}" + "".join(str(self.below(10)) for _ in range(length)))

    def firm(self) -> str:
        """A firm's name not used yet."""
        return self._fresh(lambda: self.pick(_FIRMS))

    def payee(self, name: str | None = None) -> Payee:
        """Adds a payee.

        Raises:
            Taken: An earlier request is about all payees.
        """
        if self.complete:
            raise Taken("payees")
        row = Payee(self.key("p"), name or self.firm(), self.iban())
        self.payees.append(row)
        return row

    def amount(self) -> float:
        """An amount not used yet."""
        return float(self._fresh(lambda: f"{20 + self.below(400)}.{self.pick(('00', '50', '25', '75'))}"))

    def paid(self, payee: Payee, amount: float | None = None, status: str = "sent") -> Transfer:
        """Adds an earlier transfer."""
        row = Transfer(self.key("t"), self.main().account_id, payee.payee_id, amount or self.amount(), status, self.past())
        self.transfers.append(row)
        return row

    def finish(self) -> State:
        """Adds rows that no request is about, and closes the world."""
        if self.accounts:
            while len(self.accounts) < 2:
                self.account()
            for _ in range(2):
                self.paid(self.payee() if not self.complete else self.pick(self.payees))
        state = super().finish()
        return replace(
            state,
            emails=tuple(self.emails),
            members=_sorted(self.members),
            accounts=_sorted(self.accounts),
            payees=_sorted(self.payees),
            transfers=_sorted(self.transfers),
            ticking=True,
        )


def _sorted(rows: list[Any]) -> tuple[Any, ...]:
    """In the order of their random keys, which is a shuffle."""
    return tuple(sorted(rows, key=lambda row: getattr(row, row.__slots__[0])))


def message_from(draw: WideDraw, number: str, content: str, when: str) -> Message:
    """A message that is not in the phone yet."""
    return Message(draw.key("m"), number, "+14155550100", content, when)
