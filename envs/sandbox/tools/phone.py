"""The tools of the phone: settings, clock, contacts, messages, reminders, calendar."""

from __future__ import annotations

from typing import Any, NamedTuple

from dynsteer_gym.envs.sandbox.state import SETTINGS, Contact, Device, Event, Message, Position, Reminder, row_of
from dynsteer_gym.envs.sandbox.tooling import Email, Id, Name, PhoneNumber, Text, Time, ToolError, local_time
from dynsteer_gym.events import ErrorKind

__all__ = ["FUNCTIONS", "matching", "needed"]


class Settings(NamedTuple):
    """For the return schema of ``get_settings``."""

    cellular: bool
    wifi: bool
    location_service: bool
    low_battery_mode: bool


def get_settings(device: Device) -> Settings:
    """Get the settings of the phone: whether cellular service, wifi, location service and low battery mode are on."""
    return {name: getattr(device.state, name) for name in SETTINGS}  # type: ignore[return-value]


def _service(device: Device, name: str, title: str, on: bool) -> bool:
    if on and device.state.low_battery_mode:
        raise ToolError(ErrorKind.PRECONDITION, f"{title} cannot be turned on in low battery mode.")
    device.switch(**{name: on})
    return on


def set_cellular_service(device: Device, on: bool) -> bool:
    """Turn cellular service (mobile data) on or off.

    Args:
        on: Whether it is to be on.
    """
    return _service(device, "cellular", "Cellular service", on)


def set_wifi(device: Device, on: bool) -> bool:
    """Turn wifi on or off.

    Args:
        on: Whether it is to be on.
    """
    return _service(device, "wifi", "Wifi", on)


def set_location_service(device: Device, on: bool) -> bool:
    """Turn location service (GPS) on or off.

    Args:
        on: Whether it is to be on.
    """
    return _service(device, "location_service", "Location service", on)


def set_low_battery_mode(device: Device, on: bool) -> bool:
    """Turn low battery mode (power saving) on or off. Turning it on turns cellular service, wifi and location service off.

    Args:
        on: Whether it is to be on.
    """
    if on and not device.state.low_battery_mode:
        device.switch(low_battery_mode=True, cellular=False, wifi=False, location_service=False)
    else:
        device.switch(low_battery_mode=on)
    return on


class Clock(NamedTuple):
    """For the return schema of ``get_current_time``."""

    time: str
    time_zone: str


def get_current_time(device: Device) -> Clock:
    """Get the current date and time of the phone."""
    return {"time": device.state.now, "time_zone": device.state.time_zone}  # type: ignore[return-value]


def get_current_position(device: Device) -> Position:
    """Get the current position of the phone: address and coordinates. Needs location service."""
    if not device.state.location_service:
        raise ToolError(ErrorKind.PRECONDITION, "Location service is turned off.")
    return row_of(device.state.position)  # type: ignore[return-value]


def matching(rows: tuple[Any, ...], **wanted: str | None) -> list[dict[str, Any]]:
    """Rows whose fields hold the wanted texts, as JSON data; fields with ``None`` are not looked at."""
    given = [(name, text.casefold()) for name, text in wanted.items() if text is not None]
    return [row_of(row) for row in rows if all(text in getattr(row, name).casefold() for name, text in given)]


def needed(device: Device, table: str, key: str, word: str) -> Any:
    """The row of a key.

    Raises:
        ToolError: There is none.
    """
    row = device.find(table, key)
    if row is None:
        raise ToolError(ErrorKind.NOT_FOUND, f"No {word} has the id {key[:40]!r}; search for its id first.")
    return row


def search_contacts(device: Device, name: Name | None = None, phone_number: PhoneNumber | None = None) -> list[Contact]:
    """Search the contacts of the address book by name or phone number.

    Args:
        name: Name or part of a name.
        phone_number: Phone number of the contact.
    """
    return matching(device.state.contacts, name=name, phone_number=phone_number)  # type: ignore[return-value]


def add_contact(device: Device, name: Name, phone_number: PhoneNumber) -> Contact:
    """Add a new contact to the address book.

    Args:
        name: Name of the new contact.
        phone_number: Phone number of the new contact.
    """
    return row_of(device.insert("contacts", "c", name=name, phone_number=phone_number))  # type: ignore[return-value]


def update_contact(
    device: Device, contact_id: Id, name: Name | None = None, phone_number: PhoneNumber | None = None, email: Email | None = None
) -> Contact:
    """Update an existing contact: change its name, phone number or email.

    Args:
        contact_id: Id of the contact.
        name: New name.
        phone_number: New phone number.
        email: New email address.
    """
    row = needed(device, "contacts", contact_id, "contact")
    given = {"name": name, "phone_number": phone_number, "email": email}
    return row_of(device.change("contacts", row, **{key: item for key, item in given.items() if item is not None}))  # type: ignore[return-value]


def delete_contact(device: Device, contact_id: Id) -> bool:
    """Delete a contact from the address book. This cannot be undone.

    Args:
        contact_id: Id of the contact.
    """
    device.remove("contacts", needed(device, "contacts", contact_id, "contact"))
    return True


def send_message(device: Device, phone_number: PhoneNumber, content: Text) -> Message:
    """Send a text message to a phone number. Needs cellular service. This cannot be undone.

    Args:
        phone_number: Phone number of the recipient.
        content: Text of the message.
    """
    state = device.state
    if not state.cellular:
        raise ToolError(ErrorKind.PRECONDITION, "Cellular service is turned off; a message cannot be sent.")
    row = device.insert(
        "messages",
        "m",
        sender_phone_number=state.own_number,
        recipient_phone_number=phone_number,
        content=content,
        time=state.now,
    )
    return row_of(row)  # type: ignore[return-value]


def search_messages(device: Device, phone_number: PhoneNumber | None = None, content: Text | None = None) -> list[Message]:
    """Search the text messages by phone number of the other side or by content; the latest come first.

    Args:
        phone_number: Phone number of the sender or recipient.
        content: Text or part of the text.
    """
    rows = matching(device.state.messages, content=content)
    if phone_number is not None:
        ends = ("sender_phone_number", "recipient_phone_number")
        rows = [row for row in rows if phone_number in (row[ends[0]], row[ends[1]])]
    rows.sort(key=lambda row: row["time"], reverse=True)
    return rows  # type: ignore[return-value]


def delete_message(device: Device, message_id: Id) -> bool:
    """Delete a text message. This cannot be undone.

    Args:
        message_id: Id of the message.
    """
    device.remove("messages", needed(device, "messages", message_id, "message"))
    return True


def search_reminders(device: Device, title: Text | None = None) -> list[Reminder]:
    """Search the reminders by title.

    Args:
        title: Title or part of the title.
    """
    return matching(device.state.reminders, title=title)  # type: ignore[return-value]


def add_reminder(device: Device, title: Text, due: Time) -> Reminder:
    """Add a new reminder.

    Args:
        title: Title of the reminder: what to remind of.
        due: Time at which to remind.
    """
    return row_of(device.insert("reminders", "r", title=title, due=local_time(device, due)))  # type: ignore[return-value]


def move_reminder(device: Device, reminder_id: Id, due: Time) -> Reminder:
    """Move an existing reminder to another time.

    Args:
        reminder_id: Id of the reminder.
        due: New time at which to remind.
    """
    row = needed(device, "reminders", reminder_id, "reminder")
    return row_of(device.change("reminders", row, due=local_time(device, due)))  # type: ignore[return-value]


def complete_reminder(device: Device, reminder_id: Id) -> Reminder:
    """Complete a reminder: mark it as done.

    Args:
        reminder_id: Id of the reminder.
    """
    row = needed(device, "reminders", reminder_id, "reminder")
    return row_of(device.change("reminders", row, done=True))  # type: ignore[return-value]


def delete_reminder(device: Device, reminder_id: Id) -> bool:
    """Delete a reminder. This cannot be undone.

    Args:
        reminder_id: Id of the reminder.
    """
    device.remove("reminders", needed(device, "reminders", reminder_id, "reminder"))
    return True


def search_events(device: Device, title: Text | None = None) -> list[Event]:
    """Search the events of the calendar by title.

    Args:
        title: Title or part of the title.
    """
    return matching(device.state.events, title=title)  # type: ignore[return-value]


def add_event(device: Device, title: Text, start: Time) -> Event:
    """Add a new event to the calendar.

    Args:
        title: Title of the event.
        start: Time at which the event starts.
    """
    return row_of(device.insert("events", "e", title=title, start=local_time(device, start), place=""))  # type: ignore[return-value]


def move_event(device: Device, event_id: Id, start: Time) -> Event:
    """Move an existing event of the calendar to another time.

    Args:
        event_id: Id of the event.
        start: New time at which the event starts.
    """
    row = needed(device, "events", event_id, "event")
    return row_of(device.change("events", row, start=local_time(device, start)))  # type: ignore[return-value]


def cancel_event(device: Device, event_id: Id) -> bool:
    """Cancel an event: take it off the calendar. This cannot be undone.

    Args:
        event_id: Id of the event.
    """
    device.remove("events", needed(device, "events", event_id, "event"))
    return True


FUNCTIONS = (
    get_settings,
    set_cellular_service,
    set_wifi,
    set_location_service,
    set_low_battery_mode,
    get_current_time,
    get_current_position,
    search_contacts,
    add_contact,
    update_contact,
    delete_contact,
    send_message,
    search_messages,
    delete_message,
    search_reminders,
    add_reminder,
    move_reminder,
    complete_reminder,
    delete_reminder,
    search_events,
    add_event,
    move_event,
    cancel_event,
)
"""The phone's tools, in order."""
