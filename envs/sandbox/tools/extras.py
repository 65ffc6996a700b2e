"""Tools that no request needs, each working on its own small table: they stand beside the ones that are needed."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dynsteer_gym.envs.sandbox.state import Alarm, Device, Note, row_of
from dynsteer_gym.envs.sandbox.tooling import Id, PhoneNumber, Text, Time, local_time
from dynsteer_gym.envs.sandbox.tools.phone import matching, needed

__all__ = ["FUNCTIONS"]


def set_calendar_alarm(device: Device, title: Text, time: Time) -> Alarm:
    """Set an alarm of the clock that rings at a time. It is no reminder and no event of the calendar.

    Args:
        title: What the alarm shows.
        time: Time at which it rings.
    """
    return row_of(device.insert("alarms", "a", label=title, time=local_time(device, time)))  # type: ignore[return-value]


def delete_alarm(device: Device, alarm_id: Id) -> bool:
    """Delete an alarm of the clock.

    Args:
        alarm_id: Id of the alarm.
    """
    device.remove("alarms", needed(device, "alarms", alarm_id, "alarm"))
    return True


def set_timer(device: Device, minutes: Annotated[int, Field(ge=1, le=1440)]) -> Alarm:
    """Set a timer that rings after some minutes.

    Args:
        minutes: How many minutes.
    """
    return row_of(device.insert("alarms", "a", label="timer", time=f"in {minutes} minutes"))  # type: ignore[return-value]


def add_note(device: Device, text: Text) -> Note:
    """Add a note to the notebook.

    Args:
        text: Text of the note.
    """
    return row_of(device.insert("notes", "n", text=text))  # type: ignore[return-value]


def search_notes(device: Device, text: Text | None = None) -> list[Note]:
    """Search the notes of the notebook.

    Args:
        text: Text or part of the text.
    """
    return matching(device.state.notes, text=text)  # type: ignore[return-value]


def draft_message(device: Device, phone_number: PhoneNumber, content: Text) -> Note:
    """Write a draft of a text message into the notebook. Nothing is sent.

    Args:
        phone_number: Phone number of the recipient.
        content: Text of the draft.
    """
    return row_of(device.insert("notes", "n", text=f"To {phone_number}: {content}"))  # type: ignore[return-value]


def draft_payment(device: Device, payee: Text, amount: Annotated[float, Field(gt=0)]) -> Note:
    """Write a memo of a payment into the notebook. No money is sent.

    Args:
        payee: Whom to pay.
        amount: How much.
    """
    return row_of(device.insert("notes", "n", text=f"Pay {amount} to {payee}"))  # type: ignore[return-value]


FUNCTIONS = (set_calendar_alarm, delete_alarm, set_timer, add_note, search_notes, draft_message, draft_payment)
"""These tools, in order."""
