"""Scenario families, hidden side: requests, worlds, goals, experts.

Families share signatures (which kinds of values a request names), so that an agent that sees no words cannot tell them
apart; look-alikes and equal titles across tables see to it that a lookup does not either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynsteer_gym.envs.sandbox.draw import Draw, Family, Piece, Plan, Taken
from dynsteer_gym.envs.sandbox.goals import Goal
from dynsteer_gym.envs.sandbox.user import Fact
from dynsteer_gym.language import stem

__all__ = ["FAMILIES", "HELD_OUT"]

FAMILIES: dict[str, Family] = {}
"""All families by name."""
HELD_OUT = ("move_event", "delete_message", "set_email")
"""Families that are never trained on; the tool ``move_event`` is on no training catalogue."""

_PHONE_WORDS = frozenset(stem(word) for word in ("phone", "number", "telephone", "mobile", "reach"))
_DUE_WORDS = frozenset(stem(word) for word in ("due", "time", "when", "date", "day", "start", "schedule"))
_TOLD_PHONE = ("The number is {}.", "It's {}.", "You can use {}.")
_TOLD_TIME = ("At {}.", "It is for {}.", "{} would be good.")


def _family(domain: str, *templates: str) -> Callable[[Callable[[Draw], Piece]], Callable[[Draw], Piece]]:
    def register(build: Callable[[Draw], Piece]) -> Callable[[Draw], Piece]:
        name = build.__name__.strip("_")
        FAMILIES[name] = Family(name, domain, templates, build)
        return build

    return register


def _call(name: str, /, **arguments: Any) -> tuple[str, dict[str, object]]:
    return name, arguments


def _named(draw: Draw) -> Any:
    """A contact with, at times, a look-alike that shares the first name."""
    row = draw.contact()
    if draw.chance(0.4):
        draw.contact(draw.person(row.name.split()[0]))
    return row


def _confuse(draw: Draw, title: str, *, event: bool = False, reminder: bool = False) -> None:
    """Puts rows of the same title into other tables at times, so that a lookup does not tell families apart."""
    if event and draw.chance(0.6):
        draw.event(title)
    if reminder and draw.chance(0.6):
        draw.reminder(title)
    if draw.chance(0.3):
        draw.message(draw.phone(), title)


# One name and one phone number.


@_family(
    "contacts",
    "Please add {name} to my contacts, the number is {phone}.",
    "Create a contact for {name} with the phone number {phone}.",
    "I met {name} today, put the number {phone} into my address book as a new contact.",
    "Save {name} with {phone} as a new contact.",
    "Store {name} under {phone} in my contacts.",
    "Make a new entry for {name}, {phone}, in my phonebook.",
)
def _add_contact(draw: Draw) -> Piece:
    name, number = draw.person(), draw.phone()
    if draw.chance(0.3):
        draw.contact(draw.person(name.split()[0]))
    return Piece(
        {"name": name, "phone": draw.said_phone(number)},
        Goal(adds=(("contacts", {"name": name, "phone_number": number}),)),
        (_call("add_contact", name=name, phone_number=number), "Done."),
    )


@_family(
    "contacts",
    "Change the phone number of {name} to {phone}.",
    "The number of {name} has changed, please update it to {phone}.",
    "Please correct the entry of my contact {name}, the right number is {phone}.",
    "Update {name}'s phone number to {phone}.",
    "Edit the contact {name}, the number is now {phone}.",
    "Replace the phone number of {name} by {phone}.",
)
def _update_phone(draw: Draw) -> Piece:
    row, number = _named(draw), draw.phone()
    change = _call("update_contact", contact_id=row.contact_id, phone_number=number)
    return Piece(
        {"name": row.name, "phone": draw.said_phone(number)},
        Goal(changes=(("contacts", row.contact_id, {"phone_number": number}),)),
        (_call("search_contacts", name=row.name), change, "Done."),
        routes=((_call("search_contacts"), change, "The contact is updated."),),
    )


@_family(
    "contacts",
    "There are two entries for {name}, delete the contact with the number {phone}.",
    "Remove the {name} contact whose number is {phone}.",
    "Please delete the contact {name} that has the number {phone}, keep the other one.",
    "Erase the duplicate entry of {name} with {phone} from my contacts.",
    "Drop the contact {name} with phone number {phone}.",
    "Get rid of the {name} entry that has {phone}.",
)
def _delete_twin(draw: Draw) -> Piece:
    row = draw.contact()
    draw.contact(row.name)
    delete = _call("delete_contact", contact_id=row.contact_id)
    return Piece(
        {"name": row.name, "phone": draw.said_phone(row.phone_number)},
        Goal(removes=(("contacts", row.contact_id),)),
        (_call("search_contacts", name=row.name), delete, "Done."),
        routes=((_call("search_contacts", phone_number=row.phone_number), delete, "It is gone."),),
    )


# One title.


@_family(
    "planner",
    "Cancel the event {title}.",
    "Please cancel my appointment {title}.",
    "Call off the meeting {title}.",
    "Take the appointment {title} off my calendar, it is cancelled.",
    "Scrap the event {title}.",
    "Remove the meeting {title} from my calendar.",
)
def _cancel_event(draw: Draw) -> Piece:
    row = draw.event()
    _confuse(draw, row.title, reminder=True)
    cancel = _call("cancel_event", event_id=row.event_id)
    return Piece(
        {"title": row.title},
        Goal(removes=(("events", row.event_id),)),
        (_call("search_events", title=row.title), cancel, "Done."),
        routes=((_call("search_events"), cancel, "It is cancelled."),),
    )


@_family(
    "planner",
    "Delete the reminder {title}.",
    "Remove my reminder {title}, please.",
    "I no longer need the reminder {title}, erase it.",
    "Please get rid of the reminder {title}.",
    "Discard the reminder {title}.",
    "Clear the {title} reminder from my list.",
)
def _delete_reminder(draw: Draw) -> Piece:
    row = draw.reminder()
    _confuse(draw, row.title, event=True)
    delete = _call("delete_reminder", reminder_id=row.reminder_id)
    return Piece(
        {"title": row.title},
        Goal(removes=(("reminders", row.reminder_id),)),
        (_call("search_reminders", title=row.title), delete, "Done."),
        routes=((_call("search_reminders"), delete, "It is deleted."),),
    )


@_family(
    "planner",
    "Mark the reminder {title} as done.",
    "I have finished {title}, check the reminder off.",
    "Complete the reminder {title}.",
    "Tick off my reminder {title}.",
    "Finish the reminder {title}, it is done.",
    "The task {title} is done, mark it as complete.",
)
def _complete_reminder(draw: Draw) -> Piece:
    row = draw.reminder()
    _confuse(draw, row.title, event=True)
    complete = _call("complete_reminder", reminder_id=row.reminder_id)
    return Piece(
        {"title": row.title},
        Goal(changes=(("reminders", row.reminder_id, {"done": True}),)),
        (_call("search_reminders", title=row.title), complete, "Done."),
        routes=((_call("search_reminders"), complete, "It is marked as done."),),
    )


@_family(
    "planner",
    "When is the event {title}?",
    "What time does my appointment {title} start?",
    "Tell me when the meeting {title} begins.",
    "At what time is the event {title} on my calendar?",
    "When does the meeting {title} start?",
    "On which day and at what time is my appointment {title}?",
)
def _event_time(draw: Draw) -> Piece:
    row = draw.event()
    _confuse(draw, row.title, reminder=True)
    return Piece(
        {"title": row.title},
        Goal(tells=(row.start,)),
        (_call("search_events", title=row.title), f"The start is {row.start}."),
        wants_answer=True,
        routes=((_call("search_events"), f"{row.title} starts at {row.start}."),),
    )


_REMIND = (
    "Remind me of {title}.",
    "Set a reminder {title}.",
    "Please create a reminder called {title}.",
    "Add a reminder {title}.",
    "I need a new reminder {title}.",
    "Make a reminder for {title}.",
)


@_family("planner", *_REMIND)
def _ask_reminder(draw: Draw) -> Piece:
    title, due = draw.title(), draw.when()
    _confuse(draw, title, event=True)
    answer = draw.pick(_TOLD_TIME).format(due)
    return Piece(
        {"title": title},
        Goal(adds=(("reminders", {"title": title, "due": due, "done": False}),)),
        ("What is the due?", _call("add_reminder", title=title, due=due), "Done."),
        facts=(Fact("due", _DUE_WORDS, answer),),
        routes=(("When shall I remind you?", _call("add_reminder", title=title, due=due), "The reminder is set."),),
    )


@_family("planner", *_REMIND)
def _ask_reminder_in_vain(draw: Draw) -> Piece:
    title = draw.title()
    _confuse(draw, title, event=True)
    return Piece(
        {"title": title},
        Goal(declines="due"),
        ("What is the due?", "I cannot do that."),
        facts=(Fact("due", _DUE_WORDS),),
        routes=(("At what time should I remind you?", "Without a time I am unable to set the reminder."),),
    )


# One name and one text.

_SEND = (
    "Send {name} the message {text}.",
    "Text {name} {text}.",
    "Please write {text} to {name} in a message.",
    "Send a text to {name} that says {text}.",
    "Send the words {text} to {name} by message.",
    "Message {name} with the text {text}.",
)


def _maybe_offline(draw: Draw) -> tuple[Plan, tuple[str, ...]]:
    """Cellular service off at times: what the expert does about it, and which switches may change."""
    if not draw.chance(0.35) or not draw.claim_switches("send"):
        draw.need_switches("send")
        return (), ()
    on = _call("set_cellular_service", on=True)
    if draw.chance(0.4):
        draw.low_battery()
        return (_call("set_low_battery_mode", on=False), on), ("cellular", "low_battery_mode")
    draw.switches["cellular"] = False
    return (on,), ("cellular",)


def _sending(draw: Draw, name: str, number: str, lookup: Plan, facts: tuple[Fact, ...]) -> Piece:
    content = draw.text()
    before, tolerated = _maybe_offline(draw)
    send = _call("send_message", phone_number=number, content=content)
    plan = (*lookup, *((send, *before, send) if before else (send,)), "Done.")
    return Piece(
        {"name": name, "text": content},
        Goal(adds=(("messages", {"recipient_phone_number": number, "content": content}),), tolerated=tolerated),
        plan,
        facts=facts,
        routes=((*lookup, *before, send, "The message is sent."),),
    )


@_family("messaging", *_SEND)
def _send_message(draw: Draw) -> Piece:
    row = _named(draw)
    return _sending(draw, row.name, row.phone_number, (_call("search_contacts", name=row.name),), ())


@_family("messaging", *_SEND)
def _send_to_stranger(draw: Draw) -> Piece:
    name, number = draw.person(), draw.phone()
    answer = draw.pick(_TOLD_PHONE).format(draw.said_phone(number))
    lookup = (_call("search_contacts", name=name), "What is the phone number?")
    return _sending(draw, name, number, lookup, (Fact("phone_number", _PHONE_WORDS, answer),))


@_family("messaging", *_SEND)
def _send_in_vain(draw: Draw) -> Piece:
    name, content = draw.person(), draw.text()
    return Piece(
        {"name": name, "text": content},
        Goal(declines="phone_number"),
        (_call("search_contacts", name=name), "What is the phone number?", "I cannot do that."),
        facts=(Fact("phone_number", _PHONE_WORDS),),
        routes=((_call("search_contacts"), f"Which number can I reach {name} at?", "I am unable to send it."),),
    )


@_family(
    "messaging",
    "Delete the message from {name} that says {text}.",
    "Remove the message {text} that {name} sent me.",
    "Erase {name}'s message {text}.",
    "Please delete the message {text} by {name}.",
    "Get rid of the message {text} from {name}.",
    "Discard the text message {text} that I got from {name}.",
)
def _delete_from(draw: Draw) -> Piece:
    person = _named(draw)
    row = draw.message(person.phone_number)
    if draw.chance(0.5):
        draw.message(person.phone_number)
    if draw.chance(0.5):
        other = draw.contact()
        draw.message(other.phone_number, row.content)
    delete = _call("delete_message", message_id=row.message_id)
    lookup = _call("search_contacts", name=person.name)
    return Piece(
        {"name": person.name, "text": row.content},
        Goal(removes=(("messages", row.message_id),)),
        (lookup, _call("search_messages", phone_number=person.phone_number), delete, "Done."),
        routes=((lookup, _call("search_messages", content=row.content), delete, "The message is gone."),),
    )


# One name.


@_family(
    "contacts",
    "What is {name}'s phone number?",
    "Tell me the phone number of {name}.",
    "Look up the number of {name}.",
    "Which phone number does {name} have?",
    "Please find the telephone number of {name}.",
    "Give me the number of my contact {name}.",
)
def _get_number(draw: Draw) -> Piece:
    row = _named(draw)
    if draw.chance(0.5):
        draw.message(row.phone_number)
    return Piece(
        {"name": row.name},
        Goal(tells=(row.phone_number,)),
        (_call("search_contacts", name=row.name), f"The phone number is {row.phone_number}."),
        wants_answer=True,
        routes=((_call("search_contacts"), f"It is {row.phone_number}."),),
    )


@_family(
    "contacts",
    "Delete the contact {name}.",
    "Remove {name} from my contacts.",
    "Please erase {name} from my address book.",
    "I no longer need the contact {name}, delete it.",
    "Drop {name} from my contacts.",
    "Get rid of the contact {name}.",
)
def _remove_contact(draw: Draw) -> Piece:
    row = _named(draw)
    if draw.chance(0.5):
        draw.message(row.phone_number)
    delete = _call("delete_contact", contact_id=row.contact_id)
    return Piece(
        {"name": row.name},
        Goal(removes=(("contacts", row.contact_id),)),
        (_call("search_contacts", name=row.name), delete, "Done."),
        routes=((_call("search_contacts"), delete, "The contact is gone."),),
    )


@_family(
    "messaging",
    "What did {name} write in the last message?",
    "Show me the text of the latest message from {name}.",
    "What does the last message from {name} say?",
    "Tell me the content of the newest message that {name} sent.",
    "Read me the latest message of {name}.",
    "What was the last text message that {name} wrote?",
)
def _last_message(draw: Draw) -> Piece:
    person = _named(draw)
    rows = [draw.message(person.phone_number) for _ in range(1 + draw.below(3))]
    last = max(rows, key=lambda row: row.time)
    return Piece(
        {"name": person.name},
        Goal(tells=(last.content,)),
        (
            _call("search_contacts", name=person.name),
            _call("search_messages", phone_number=person.phone_number),
            f"The content is {last.content}.",
        ),
        wants_answer=True,
        routes=(
            (
                _call("search_contacts"),
                _call("search_messages", phone_number=person.phone_number),
                f"{person.name} wrote: {last.content}.",
            ),
        ),
    )


# No value at all.


def _switching(draw: Draw, switch: str, tool: str) -> Piece:
    if not draw.claim_switches(switch):
        raise Taken(switch)
    on = draw.chance(0.5)
    before: Plan = ()
    tolerated: tuple[str, ...] = ()
    goal = {switch: on}
    call = _call(tool, on=on)
    if switch == "low_battery_mode":
        if on:
            goal = {"low_battery_mode": True, "cellular": False, "wifi": False, "location_service": False}
        else:
            draw.low_battery()
    elif on and draw.chance(0.35):
        draw.low_battery()
        before, tolerated = (call, _call("set_low_battery_mode", on=False)), ("low_battery_mode",)
    else:
        draw.switches[switch] = not on
        for other in ("cellular", "wifi", "location_service"):
            if other != switch and draw.chance(0.3):
                draw.switches[other] = False
    direct: Plan = (*before[1:], call, "It is done.")
    return Piece(
        {"state": "on" if on else "off"},
        Goal(settings=goal, tolerated=tolerated),
        (*before, call, "Done."),
        routes=((_call("get_settings"), *direct),),
    )


@_family(
    "settings",
    "Turn {state} wifi.",
    "Switch the wifi {state}.",
    "Please turn the wifi of my phone {state}.",
    "Set wifi to {state}.",
    "Put the wifi {state}, please.",
    "I want the wireless network {state}.",
)
def _switch_wifi(draw: Draw) -> Piece:
    return _switching(draw, "wifi", "set_wifi")


@_family(
    "settings",
    "Turn {state} cellular service.",
    "Switch the cellular service {state}.",
    "Please turn mobile data {state}.",
    "Set cellular service to {state}.",
    "Put cellular service {state}, please.",
    "I want mobile data {state}.",
)
def _switch_cellular(draw: Draw) -> Piece:
    return _switching(draw, "cellular", "set_cellular_service")


@_family(
    "settings",
    "Turn {state} location service.",
    "Switch the location service {state}.",
    "Please turn the GPS {state}.",
    "Set location service to {state}.",
    "Put location service {state}, please.",
    "I want the location service {state}.",
)
def _switch_location(draw: Draw) -> Piece:
    return _switching(draw, "location_service", "set_location_service")


@_family(
    "settings",
    "Turn {state} low battery mode.",
    "Switch the low battery mode {state}.",
    "Please turn power saving {state}.",
    "Set low battery mode to {state}.",
    "Put low battery mode {state}, please.",
    "I want the power saving mode {state}.",
)
def _switch_battery(draw: Draw) -> Piece:
    return _switching(draw, "low_battery_mode", "set_low_battery_mode")


_THINGS = {
    "wifi": "wifi",
    "cellular": "cellular service",
    "location_service": "location service",
    "low_battery_mode": "low battery mode",
}


@_family(
    "settings",
    "Is {thing} on?",
    "Tell me whether {thing} is on.",
    "Check if {thing} is turned on.",
    "Is {thing} switched on at the moment?",
    "Can you see whether {thing} is on?",
    "What is the status of {thing}, is it on?",
)
def _is_on(draw: Draw) -> Piece:
    if not draw.claim_switches("is_on"):
        raise Taken("switches")
    if draw.chance(0.3):
        draw.low_battery()
    else:
        for name in ("cellular", "wifi", "location_service"):
            draw.switches[name] = draw.chance(0.5)
    switch = draw.pick(tuple(_THINGS))
    value = draw.switches[switch]
    return Piece(
        {"thing": _THINGS[switch]},
        Goal(tells=(value,)),
        (_call("get_settings"), f"The {switch.replace('_', ' ')} is {str(value).lower()}."),
        wants_answer=True,
        routes=((_call("get_settings"), "Yes, it is on." if value else "It is off."),),
    )


@_family(
    "settings",
    "Where am I?",
    "What is my current position?",
    "Tell me the address where I am.",
    "Which address am I at right now?",
    "What is the address of my current position?",
    "Tell me where I am, please.",
)
def _where(draw: Draw) -> Piece:
    locate = _call("get_current_position")
    before: Plan = ()
    tolerated: tuple[str, ...] = ()
    if draw.chance(0.5) and draw.claim_switches("where"):
        on = _call("set_location_service", on=True)
        if draw.chance(0.35):
            draw.low_battery()
            before = (locate, _call("set_low_battery_mode", on=False), on)
            tolerated = ("location_service", "low_battery_mode")
        else:
            draw.switches["location_service"] = False
            before, tolerated = (locate, on), ("location_service",)
    else:
        draw.need_switches("where")
    address = draw.position.address
    return Piece(
        {},
        Goal(tells=(address,), tolerated=tolerated),
        (*before, locate, f"The address is {address}."),
        wants_answer=True,
        routes=((*before[1:], locate, f"You are at {address}."),),
    )


@_family(
    "settings",
    "What time is it?",
    "Tell me the current time.",
    "What is the time and date now?",
    "Please check the time for me.",
    "How late is it, what time do you have?",
    "I need the current date and time.",
)
def _what_time(draw: Draw) -> Piece:
    now = draw.finish_time()
    return Piece(
        {},
        Goal(tells=(now,)),
        (_call("get_current_time"), f"The time is {now}."),
        wants_answer=True,
    )


# One title and one time.


@_family(
    "planner",
    "Remind me of {title} at {when}.",
    "Add a reminder {title} for {when}.",
    "Please set a reminder {title} at {when}.",
    "Create a new reminder called {title}, due {when}.",
    "Make a reminder {title} for {when}.",
    "I need a new reminder {title} at {when}.",
)
def _add_reminder(draw: Draw) -> Piece:
    title, due = draw.title(), draw.when()
    _confuse(draw, title, event=True)
    return Piece(
        {"title": title, "when": due},
        Goal(adds=(("reminders", {"title": title, "due": due, "done": False}),)),
        (_call("add_reminder", title=title, due=due), "Done."),
    )


@_family(
    "planner",
    "Move the reminder {title} to {when}.",
    "Postpone my reminder {title} to {when}.",
    "Change the time of the reminder {title} to {when}.",
    "Please shift the reminder {title} to {when}.",
    "Reschedule the reminder {title} to {when}.",
    "Push my reminder {title} to {when}.",
)
def _move_reminder(draw: Draw) -> Piece:
    row, due = draw.reminder(), draw.when()
    _confuse(draw, row.title, event=True)
    move = _call("move_reminder", reminder_id=row.reminder_id, due=due)
    return Piece(
        {"title": row.title, "when": due},
        Goal(changes=(("reminders", row.reminder_id, {"due": due}),)),
        (_call("search_reminders", title=row.title), move, "Done."),
        routes=((_call("search_reminders"), move, "It is moved."),),
    )


@_family(
    "planner",
    "Put the event {title} on my calendar for {when}.",
    "Schedule a new event {title} at {when}.",
    "Add an appointment {title} at {when}.",
    "Please create the event {title} at {when}.",
    "Make an appointment {title} for {when} in my calendar.",
    "Enter the meeting {title} at {when} into my calendar.",
)
def _add_event(draw: Draw) -> Piece:
    title, start = draw.title(), draw.when()
    _confuse(draw, title, reminder=True)
    return Piece(
        {"title": title, "when": start},
        Goal(adds=(("events", {"title": title, "start": start}),)),
        (_call("add_event", title=title, start=start), "Done."),
    )


# Never trained on.


@_family(
    "planner",
    "Move the event {title} to {when}.",
    "Postpone my appointment {title} to {when}.",
    "Change the time of the meeting {title} to {when}.",
    "Please shift the event {title} to {when}.",
    "Reschedule the event {title} to {when}.",
    "Push the meeting {title} to {when}.",
)
def _move_event(draw: Draw) -> Piece:
    row, start = draw.event(), draw.when()
    _confuse(draw, row.title, reminder=True)
    move = _call("move_event", event_id=row.event_id, start=start)
    return Piece(
        {"title": row.title, "when": start},
        Goal(changes=(("events", row.event_id, {"start": start}),)),
        (_call("search_events", title=row.title), move, "Done."),
        routes=((_call("search_events"), move, "It is moved."),),
    )


@_family(
    "messaging",
    "Delete the message {text}.",
    "Remove the text message {text}.",
    "Please erase the message that says {text}.",
    "I no longer need the message {text}, delete it.",
    "Get rid of the message {text}.",
    "Discard the message {text}.",
)
def _delete_message(draw: Draw) -> Piece:
    row = draw.message(draw.contact().phone_number)
    delete = _call("delete_message", message_id=row.message_id)
    return Piece(
        {"text": row.content},
        Goal(removes=(("messages", row.message_id),)),
        (_call("search_messages", content=row.content), delete, "Done."),
        routes=((_call("search_messages"), delete, "It is deleted."),),
    )


@_family(
    "contacts",
    "Set the email of {name} to {email}.",
    "The email address of {name} is {email}, please update the contact.",
    "Change {name}'s email to {email}.",
    "Please add the email {email} to the contact {name}.",
    "Update the contact {name} with the email {email}.",
    "Put the email {email} into the entry of {name}.",
)
def _set_email(draw: Draw) -> Piece:
    row = _named(draw)
    email = f"{row.name.split()[0].lower()}{draw.below(100)}@example.org".replace("ë", "e").replace("é", "e").replace("ö", "o")
    change = _call("update_contact", contact_id=row.contact_id, email=email)
    return Piece(
        {"name": row.name, "email": email},
        Goal(changes=(("contacts", row.contact_id, {"email": email}),)),
        (_call("search_contacts", name=row.name), change, "Done."),
        routes=((_call("search_contacts"), change, "The email is set."),),
    )
