"""More tools of the phone: days, dates, long lists by page, groups, emails, forwarding."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal, NamedTuple
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field

from dynsteer_gym.envs.sandbox.state import Contact, Device, Email, Event, Member, Message, Reminder, row_of
from dynsteer_gym.envs.sandbox.tooling import Email as EmailAddress
from dynsteer_gym.envs.sandbox.tooling import Id, Name, PhoneNumber, Text, Time, ToolError, local_time
from dynsteer_gym.envs.sandbox.tools.phone import needed
from dynsteer_gym.events import ErrorKind

__all__ = ["FUNCTIONS", "Day", "Page", "Zone", "cut"]

PAGE = 10
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _day(text: str) -> str:
    try:
        return datetime.strptime(text, "%Y-%m-%d").date().isoformat()
    except ValueError:
        raise ValueError("a day such as 2026-03-12 is expected") from None


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise ValueError("a time zone such as Europe/Berlin or Asia/Tokyo is expected") from None
    return text


Day = Annotated[str, Field(max_length=20, json_schema_extra={"format": "date"}), AfterValidator(_day)]
Zone = Annotated[str, Field(max_length=40), AfterValidator(_zone)]
Page = Annotated[int, Field(ge=1, le=1000)]
Weekday = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def cut(rows: list[object], page: int, name: str, size: int = PAGE) -> dict[str, object]:
    """One page of a long list, with its number and how many there are."""
    pages = max(1, -(-len(rows) // size))
    if page > pages:
        raise ToolError(ErrorKind.NOT_FOUND, f"There is no page {page}; the last page is {pages}.")
    return {name: rows[(page - 1) * size : page * size], "page": page, "pages": pages}


def list_events(device: Device, day: Day) -> list[Event]:
    """List the events of the calendar on a day, the earliest first. An event lasts one hour.

    Args:
        day: The day.
    """
    rows = sorted((row for row in device.state.events if row.start.startswith(day)), key=lambda row: row.start)
    return [row_of(row) for row in rows]  # type: ignore[misc]


def set_event_place(device: Device, event_id: Id, place: Text) -> Event:
    """Set the place of an existing event of the calendar.

    Args:
        event_id: Id of the event.
        place: Where the event is.
    """
    return row_of(device.change("events", needed(device, "events", event_id, "event"), place=place))  # type: ignore[return-value]


class ReminderPage(NamedTuple):
    """For the return schema of ``list_reminders``."""

    reminders: list[Reminder]
    page: int
    pages: int


def list_reminders(device: Device, page: Page = 1) -> ReminderPage:
    """List all reminders by due time, the earliest first, ten a page.

    Args:
        page: Number of the page.
    """
    rows = sorted(device.state.reminders, key=lambda row: (row.due, row.reminder_id))
    return cut([row_of(row) for row in rows], page, "reminders")  # type: ignore[return-value]


def find_weekday(device: Device, weekday: Weekday, weeks: Annotated[int, Field(ge=0, le=52)] = 0) -> str:
    """Get the date of the next given weekday after today, such as next Friday.

    Args:
        weekday: Name of the weekday.
        weeks: How many weeks later than the next one.
    """
    today = datetime.strptime(device.state.now[:10], "%Y-%m-%d")
    ahead = (_WEEKDAYS.index(weekday) - today.weekday() - 1) % 7 + 1
    return (today + timedelta(days=ahead + 7 * weeks)).date().isoformat()


def shift_time(device: Device, time: Time, minutes: Annotated[int, Field(ge=-1_000_000, le=1_000_000)]) -> str:
    """Get the time that is some minutes later than a given time.

    Args:
        time: The time to start from.
        minutes: How many minutes later; negative for earlier.
    """
    moment = datetime.fromisoformat(local_time(device, time))
    try:
        return (moment + timedelta(minutes=minutes)).strftime("%Y-%m-%d %H:%M")
    except OverflowError:
        raise ToolError(ErrorKind.RUNTIME, "That is outside the calendar.") from None


def convert_time(device: Device, time: Time, from_zone: Zone, to_zone: Zone) -> str:
    """Convert a local time of one time zone to the local time of another.

    Args:
        time: The local time in the first zone.
        from_zone: IANA name of the first time zone.
        to_zone: IANA name of the second time zone.
    """
    moment = datetime.fromisoformat(time[:16]).replace(tzinfo=ZoneInfo(from_zone))
    return moment.astimezone(ZoneInfo(to_zone)).strftime("%Y-%m-%d %H:%M")


class MessagePage(NamedTuple):
    """For the return schema of ``list_messages``."""

    messages: list[Message]
    page: int
    pages: int


def list_messages(device: Device, phone_number: PhoneNumber | None = None, page: Page = 1) -> MessagePage:
    """List text messages page by page, the latest first, ten a page.

    Args:
        phone_number: Phone number of the sender or recipient.
        page: Number of the page.
    """
    rows = [
        row
        for row in device.state.messages
        if phone_number is None or phone_number in (row.sender_phone_number, row.recipient_phone_number)
    ]
    rows.sort(key=lambda row: (row.time, row.message_id), reverse=True)
    return cut([row_of(row) for row in rows], page, "messages")  # type: ignore[return-value]


def forward_message(device: Device, message_id: Id, phone_number: PhoneNumber) -> Message:
    """Forward a text message to a phone number. Needs cellular service. This cannot be undone.

    Args:
        message_id: Id of the message.
        phone_number: Phone number of the recipient.
    """
    row = needed(device, "messages", message_id, "message")
    state = device.state
    if not state.cellular:
        raise ToolError(ErrorKind.PRECONDITION, "Cellular service is turned off; a message cannot be forwarded.")
    new = device.insert(
        "messages",
        "m",
        sender_phone_number=state.own_number,
        recipient_phone_number=phone_number,
        content=row.content,
        time=state.now,
    )
    return row_of(new)  # type: ignore[return-value]


def send_email(device: Device, address: EmailAddress, content: Text) -> Email:
    """Send an email to an email address. Needs cellular service or wifi. This cannot be undone.

    Args:
        address: Email address of the recipient.
        content: Text of the email.
    """
    state = device.state
    if not (state.cellular or state.wifi):
        raise ToolError(ErrorKind.PRECONDITION, "Cellular service and wifi are turned off; an email cannot be sent.")
    return row_of(device.insert("emails", "m", address=address, content=content, time=state.now))  # type: ignore[return-value]


class ContactPage(NamedTuple):
    """For the return schema of ``list_contacts``."""

    contacts: list[Contact]
    page: int
    pages: int


def list_contacts(device: Device, page: Page = 1) -> ContactPage:
    """List the contacts of the address book by name, ten a page.

    Args:
        page: Number of the page.
    """
    rows = sorted(device.state.contacts, key=lambda row: (row.name, row.contact_id))
    return cut([row_of(row) for row in rows], page, "contacts")  # type: ignore[return-value]


def list_group(device: Device, group: Name) -> list[Contact]:
    """List the contacts that are members of a group.

    Args:
        group: Name of the group.
    """
    keys = [row.contact_id for row in device.state.members if row.group.casefold() == group.casefold()]
    return [row_of(row) for row in device.state.contacts if row.contact_id in keys]  # type: ignore[misc]


def add_to_group(device: Device, contact_id: Id, group: Name) -> Member:
    """Add a contact to a group.

    Args:
        contact_id: Id of the contact.
        group: Name of the group.
    """
    needed(device, "contacts", contact_id, "contact")
    if any(row.contact_id == contact_id and row.group == group for row in device.state.members):
        raise ToolError(ErrorKind.PRECONDITION, "The contact is in that group already.")
    return row_of(device.insert("members", "g", group=group, contact_id=contact_id))  # type: ignore[return-value]


def remove_from_group(device: Device, contact_id: Id, group: Name) -> bool:
    """Take a contact out of a group; the contact stays in the address book.

    Args:
        contact_id: Id of the contact.
        group: Name of the group.
    """
    for row in device.state.members:
        if row.contact_id == contact_id and row.group.casefold() == group.casefold():
            device.remove("members", row)
            return True
    raise ToolError(ErrorKind.NOT_FOUND, f"No member of {group[:40]!r} has that contact id; list the group first.")


def get_canonical_phone_number(device: Device, text: PhoneNumber) -> str:
    """Get the canonical international form of a phone number, such as +14155550142.

    Args:
        text: Phone number as somebody wrote it.
    """
    return text


FUNCTIONS = (
    list_events,
    set_event_place,
    list_reminders,
    find_weekday,
    shift_time,
    convert_time,
    list_messages,
    forward_message,
    send_email,
    list_contacts,
    list_group,
    add_to_group,
    remove_from_group,
    get_canonical_phone_number,
)
"""These tools, in order."""
