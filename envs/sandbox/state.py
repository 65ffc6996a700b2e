"""The state of the built-in world: an immutable value with structural sharing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

from dynsteer_gym.events import StateDelta
from dynsteer_gym.task import TableHeader

__all__ = [
    "PHONE_TABLES",
    "SETTINGS",
    "TABLES",
    "Account",
    "Alarm",
    "Contact",
    "Device",
    "Email",
    "Event",
    "Happening",
    "Member",
    "Message",
    "Note",
    "Payee",
    "Position",
    "Reminder",
    "State",
    "Transfer",
    "clock_minute",
    "headers",
    "row_of",
]


@dataclass(frozen=True, slots=True)
class Contact:
    """A person in the address book."""

    contact_id: str
    name: str
    phone_number: str
    email: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A text message, sent or received."""

    message_id: str
    sender_phone_number: str
    recipient_phone_number: str
    content: str
    time: str


@dataclass(frozen=True, slots=True)
class Reminder:
    """Something to be done."""

    reminder_id: str
    title: str
    due: str
    done: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """An entry of the calendar."""

    event_id: str
    title: str
    start: str
    place: str


@dataclass(frozen=True, slots=True)
class Email:
    """An email that was sent."""

    email_id: str
    address: str
    content: str
    time: str


@dataclass(frozen=True, slots=True)
class Member:
    """A contact's place in a group."""

    member_id: str
    group: str
    contact_id: str


@dataclass(frozen=True, slots=True)
class Account:
    """An account of the user at the bank; amounts are in its currency."""

    account_id: str
    name: str
    currency: str
    balance: float
    transfer_limit: float
    card_frozen: bool = False


@dataclass(frozen=True, slots=True)
class Payee:
    """Somebody to whom money can be sent."""

    payee_id: str
    name: str
    iban: str


@dataclass(frozen=True, slots=True)
class Transfer:
    """Money sent, or prepared to be sent: ``draft``, ``sent`` or ``cancelled``."""

    transfer_id: str
    account_id: str
    payee_id: str
    amount: float
    status: str
    time: str


@dataclass(frozen=True, slots=True)
class Note:
    """A note."""

    note_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm of the clock."""

    alarm_id: str
    label: str
    time: str


@dataclass(frozen=True, slots=True)
class Position:
    """Where the phone is."""

    address: str
    latitude: float
    longitude: float


@dataclass(frozen=True, slots=True)
class Happening:
    """A change that the world makes by itself, once.

    Attributes:
        after: The tool after whose first success it comes.
        message: A message that arrives.
    """

    after: str
    message: Message


TABLES: Mapping[str, type[Any]] = {
    "contacts": Contact,
    "messages": Message,
    "reminders": Reminder,
    "events": Event,
    "emails": Email,
    "members": Member,
    "accounts": Account,
    "payees": Payee,
    "transfers": Transfer,
    "notes": Note,
    "alarms": Alarm,
}
"""Row types by table name; the first field of each is its key."""
PHONE_TABLES = ("contacts", "messages", "reminders", "events")
"""The tables of the phone without bank, groups, emails, notes and alarms."""
SETTINGS = ("cellular", "wifi", "location_service", "low_battery_mode")
"""The switches of the phone."""
_FIELDS = {kind: tuple(field.name for field in fields(kind)) for kind in (*TABLES.values(), Position)}
_EPOCH = datetime(2026, 1, 5)


@dataclass(frozen=True, slots=True)
class State:
    """Everything that the world holds; no tool changes one, each makes a new one.

    Attributes:
        cellular: Cellular service is on.
        wifi: Wifi is on.
        location_service: Location service is on.
        low_battery_mode: Low battery mode is on; the three services cannot be switched on in it.
        minute: The virtual clock, minutes after Monday 2026-01-05 00:00 in the phone's zone.
        time_zone: IANA name of the phone's zone.
        own_number: The phone's own number, E.164.
        position: Where it is.
        contacts: Rows in order of creation, likewise the other tables.
        messages: See ``contacts``.
        reminders: See ``contacts``.
        events: See ``contacts``.
        emails: See ``contacts``.
        members: See ``contacts``.
        accounts: See ``contacts``.
        payees: See ``contacts``.
        transfers: See ``contacts``.
        notes: See ``contacts``.
        alarms: See ``contacts``.
        serial: Number of the next id.
        ticking: Each call takes a minute.
        failing: Tools whose next call fails, once.
        pending: What will happen by itself.
    """

    cellular: bool = True
    wifi: bool = True
    location_service: bool = True
    low_battery_mode: bool = False
    minute: int = 0
    time_zone: str = "Europe/Berlin"
    own_number: str = "+14155550100"
    position: Position = Position("Unter den Linden 1, Berlin", 52.5163, 13.3777)
    contacts: tuple[Contact, ...] = ()
    messages: tuple[Message, ...] = ()
    reminders: tuple[Reminder, ...] = ()
    events: tuple[Event, ...] = ()
    emails: tuple[Email, ...] = ()
    members: tuple[Member, ...] = ()
    accounts: tuple[Account, ...] = ()
    payees: tuple[Payee, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    notes: tuple[Note, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    serial: int = 100
    ticking: bool = False
    failing: tuple[str, ...] = ()
    pending: tuple[Happening, ...] = ()

    @property
    def now(self) -> str:
        """The virtual clock as ``YYYY-MM-DD HH:MM``."""
        return (_EPOCH + timedelta(minutes=self.minute)).strftime("%Y-%m-%d %H:%M")


def row_of(row: Any) -> dict[str, Any]:
    """A row as JSON data."""
    return {name: getattr(row, name) for name in _FIELDS[type(row)]}


def clock_minute(time: str) -> int:
    """A local time, ``YYYY-MM-DD HH:MM``, on the virtual clock."""
    return int((datetime.fromisoformat(time[:16]) - _EPOCH).total_seconds()) // 60


def headers(state: State, tables: Sequence[str] = PHONE_TABLES) -> tuple[TableHeader, ...]:
    """Public metadata of the tables: names, columns and row counts."""
    found = [TableHeader("settings", (*SETTINGS, "time_zone"), 1)]
    for name in tables:
        found.append(TableHeader(name, _FIELDS[TABLES[name]], len(getattr(state, name))))
    return tuple(found)


class Device:
    """The phone while a call runs: holds the state, takes writes, and keeps what they changed.

    Attributes:
        state: The state as it now stands.
        writes: Rows changed since the call began.
    """

    __slots__ = ("state", "writes")

    def __init__(self, state: State) -> None:
        """Starts from a state."""
        self.state = state
        self.writes: list[StateDelta] = []

    def insert(self, table: str, prefix: str, **values: Any) -> Any:
        """Adds a row with a fresh key and returns it."""
        state = self.state
        row = TABLES[table](f"{prefix}{state.serial}", **values)
        self.state = replace(state, **{table: (*getattr(state, table), row), "serial": state.serial + 1})
        self.writes.append(StateDelta(table, _key(row), None, row_of(row)))
        return row

    def change(self, table: str, row: Any, **values: Any) -> Any:
        """Changes fields of a row and returns the new one."""
        new = replace(row, **values)
        if new != row:
            rows = tuple(new if item is row else item for item in getattr(self.state, table))
            self.state = replace(self.state, **{table: rows})
            self.writes.append(StateDelta(table, _key(row), row_of(row), row_of(new)))
        return new

    def remove(self, table: str, row: Any) -> None:
        """Takes a row out."""
        rows = tuple(item for item in getattr(self.state, table) if item is not row)
        self.state = replace(self.state, **{table: rows})
        self.writes.append(StateDelta(table, _key(row), row_of(row), None))

    def switch(self, **values: bool) -> None:
        """Sets switches of the phone."""
        before = {name: getattr(self.state, name) for name in values}
        if before != values:
            self.state = replace(self.state, **values)
            self.writes.append(StateDelta("settings", "phone", before, dict(values)))

    def find(self, table: str, key: str) -> Any | None:
        """The row with a key, or ``None``."""
        for row in getattr(self.state, table):
            if _key(row) == key:
                return row
        return None


def _key(row: Any) -> str:
    return getattr(row, _FIELDS[type(row)][0])
