"""Calendar and scheduling. Hidden side."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from dynsteer_gym.envs.sandbox.draw import Found, Piece
from dynsteer_gym.envs.sandbox.goals import Goal, Span
from dynsteer_gym.envs.sandbox.scenarios.common import DUE, PLACES, WHICH, WideDraw, call, fact, family, later, spelled
from dynsteer_gym.envs.sandbox.state import Event, Reminder, clock_minute

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ZONES = {"Tokyo": "Asia/Tokyo", "New York": "America/New_York", "London": "Europe/London", "Sydney": "Australia/Sydney"}


@family(
    "calendar",
    "Where does {title} take place?",
    "At which place is the event {title}?",
    "Tell me the place of my appointment {title}.",
    "What is the location of the meeting {title}?",
)
def event_place(draw: WideDraw) -> Piece:
    row = draw.event()
    return Piece(
        {"title": row.title},
        Goal(tells=(row.place,)),
        (call("search_events", title=row.title), f"The place is {row.place}."),
        wants_answer=True,
        routes=((call("search_events"), f"It is at {row.place}."),),
    )


@family(
    "calendar",
    "Change the place of the event {title} to {place}.",
    "The meeting {title} will be at {place}, please update its place.",
    "Set the location of my appointment {title} to {place}.",
    "My event {title} takes place at {place} now, correct that.",
)
def set_place(draw: WideDraw) -> Piece:
    row = draw.event()
    place = draw.pick([name for name in PLACES if name != row.place])
    change = call("set_event_place", event_id=row.event_id, place=place)
    return Piece(
        {"title": row.title, "place": place},
        Goal(changes=(("events", row.event_id, {"place": place}),), tells=(place,)),
        (call("search_events", title=row.title), change, "Done.", f"It is at {place} now."),
        checks=("Where is it now?",),
        routes=((call("search_events"), change, f"The place is {place}.", f"At {place}."),),
    )


@family(
    "calendar",
    "Put {title} on my calendar for next {weekday} at {clock}.",
    "Schedule the event {title} next {weekday} at {clock}.",
    "Add an appointment {title} for next {weekday}, {clock}.",
    "Please enter the meeting {title} for next {weekday} at {clock}.",
)
def next_weekday_event(draw: WideDraw) -> Piece:
    weekday = draw.pick(_WEEKDAYS)
    today = datetime(2026, 1, 5) + timedelta(days=draw.minute // 1440)
    ahead = (_WEEKDAYS.index(weekday) - today.weekday() - 1) % 7 + 1
    day = (today + timedelta(days=ahead)).date().isoformat()
    start = f"{day} {8 + draw.below(12):02d}:00"
    while not draw.take(start):
        start = f"{day} {8 + draw.below(12):02d}:00"
    title = draw.title()
    add = call("add_event", title=title, start=start)
    return Piece(
        {"title": title, "weekday": weekday, "clock": start[11:]},
        Goal(adds=(("events", {"title": title, "start": start}),)),
        (call("find_weekday", weekday=weekday), add, "Done."),
        routes=((call("get_current_time"), add, f"{title} is on {start}."),),
    )


@family(
    "calendar",
    "Remind me tomorrow at {clock} of {title}.",
    "Set a reminder {title} for tomorrow at {clock}.",
    "I need a reminder {title} tomorrow, {clock}.",
    "Tomorrow at {clock} I want to be reminded of {title}.",
)
def tomorrow_reminder(draw: WideDraw) -> Piece:
    day = (datetime(2026, 1, 5) + timedelta(days=draw.minute // 1440 + 1)).date().isoformat()
    due, title = f"{day} {7 + draw.below(14):02d}:{draw.pick(('00', '30', '15'))}", draw.title()
    add = call("add_reminder", title=title, due=due)
    return Piece(
        {"title": title, "clock": due[11:]},
        Goal(adds=(("reminders", {"title": title, "due": due, "done": False}),)),
        (call("get_current_time"), add, "Done."),
        routes=((call("get_current_time"), call("shift_time", time=draw.finish_time(), minutes=1440), add, "It is set."),),
    )


@family(
    "calendar",
    "Remind me of {title} in {minutes} minutes.",
    "In {minutes} minutes I must think of {title}, set a reminder.",
    "Set a reminder {title} that is due {minutes} minutes from now.",
    "Add a reminder {title} for {minutes} minutes from now.",
)
def soon_reminder(draw: WideDraw) -> Piece:
    minutes, title = 20 + 5 * draw.below(20), draw.title()
    now = draw.finish_time()
    due = later(now, minutes + 1)
    add = call("add_reminder", title=title, due=due)
    goal = Goal(adds=(("reminders", {"title": title, "due": Span(later(now, minutes), later(now, minutes + 40))}),))
    return Piece(
        {"title": title, "minutes": str(minutes)},
        goal,
        (call("get_current_time"), add, "Done."),
        routes=((call("get_current_time"), call("shift_time", time=later(now, 1), minutes=minutes), add, "It is set."),),
    )


@family(
    "calendar",
    "Put {title} on {day} at 10:00, or at 14:00 if there is something already.",
    "I need an hour for {title} on {day}: at 10:00 if that is free, otherwise at 14:00.",
    "Schedule {title} on {day}, 10:00 when nothing is there, else 14:00.",
    "Book {title} for {day}, preferably at 10:00, or at 14:00 if I am busy then.",
)
def free_hour(draw: WideDraw) -> Piece:
    day, title, busy = draw.day(), draw.title(), draw.chance(0.6)
    if busy:
        draw.at(day, 10)
    draw.at(day, 17)
    start = f"{day} {'14' if busy else '10'}:00"
    draw.take(start)
    add = call("add_event", title=title, start=start)
    return Piece(
        {"title": title, "day": day},
        Goal(adds=(("events", {"title": title, "start": start}),), tells=(start[11:],)),
        (call("list_events", day=day), add, f"It is at {start[11:]}."),
        wants_answer=True,
        routes=((call("search_events"), add, f"{title} is on your calendar at {start[11:]}."),),
    )


@family(
    "calendar",
    "Cancel one of the two events {title}.",
    "Please cancel my appointment {title}, I have it twice.",
    "Call off the meeting {title}; there are two of that name.",
    "One of the events {title} has to go, cancel it.",
)
def which_event(draw: WideDraw) -> Piece:
    row = draw.event()
    twin = Event(draw.key("e"), row.title, draw.when(), draw.pick(PLACES))
    draw.events.append(twin)
    goal_row = draw.pick((row, twin))
    cancel = call("cancel_event", event_id=goal_row.event_id)
    return Piece(
        {"title": row.title},
        Goal(removes=(("events", goal_row.event_id),)),
        (call("search_events", title=row.title), "Which one do you mean?", cancel, "Done."),
        facts=(fact("which", WHICH + " one start day date", f"The one on {goal_row.start}."),),
        routes=((call("search_events"), "On which day is the one to cancel?", cancel, "It is cancelled."),),
    )


@family(
    "calendar",
    "Add the call {title} on {day} at {clock} {city} time to my calendar.",
    "Put the call {title} on my calendar, it is on {day} at {clock} in {city}.",
    "The call {title} starts on {day} at {clock} local time in {city}; schedule it as an event.",
    "Schedule an event {title} for {day}, {clock} as the clock shows it in {city}.",
)
def zone_event(draw: WideDraw) -> Piece:
    city = draw.pick(tuple(_ZONES))
    while True:
        there = f"{draw.day()} {10 + draw.below(8):02d}:00"
        moment = datetime.fromisoformat(there).replace(tzinfo=ZoneInfo(_ZONES[city]))
        start = moment.astimezone(ZoneInfo("Europe/Berlin")).strftime("%Y-%m-%d %H:%M")
        if clock_minute(start) > draw.minute and draw.take(start):
            break
    title = draw.title()
    add = call("add_event", title=title, start=start)
    return Piece(
        {"title": title, "day": there[:10], "clock": there[11:], "city": city},
        Goal(adds=(("events", {"title": title, "start": start}),)),
        (call("convert_time", time=there, from_zone=_ZONES[city], to_zone="Europe/Berlin"), add, "Done."),
        routes=((call("get_current_time"), call("add_event", title=title, start=moment.isoformat(sep=" ", timespec="minutes")), "Done."),),
    )


@family(
    "calendar",
    "Cancel everything on {day}.",
    "I am ill on {day}, call off all my events of that day.",
    "Clear my calendar on {day}: cancel every event.",
    "Take all appointments of {day} off my calendar.",
)
def clear_day(draw: WideDraw) -> Piece:
    day = draw.day()
    rows = [draw.at(day, 7 + hour) for hour in range(10 + draw.below(5))]
    cancels = tuple(call("cancel_event", event_id=row.event_id) for row in rows)
    return Piece(
        {"day": day},
        Goal(removes=tuple(("events", row.event_id) for row in rows)),
        (call("list_events", day=day), *cancels, "Done."),
        routes=((call("search_events"), *reversed(cancels), "All of them are cancelled."),),
    )


@family(
    "calendar",
    "What is my first event on {day}?",
    "Which event comes first on my calendar on {day}?",
    "On {day}, what do I have first?",
    "Tell me the earliest appointment of {day}.",
)
def first_of_day(draw: WideDraw) -> Piece:
    day = draw.day()
    rows = [draw.at(day, hour) for hour in draw.random.sample(range(8, 20), 2 + draw.below(3))]
    first = min(rows, key=lambda row: row.start)
    return Piece(
        {"day": draw.pick((day, spelled(day)))},
        Goal(tells=(first.title,)),
        (call("list_events", day=day), f"The first one is {first.title}."),
        wants_answer=True,
        routes=((call("search_events"), f"{first.title} comes first."),),
    )


@family(
    "calendar",
    "Push the event {title} back by {hours} hours.",
    "Let my appointment {title} start {hours} hours later.",
    "Move the meeting {title} {hours} hours later.",
    "Delay the event {title} by {hours} hours.",
)
def delay_event(draw: WideDraw) -> Piece:
    row, hours = draw.event(), 2 + draw.below(4)
    start = later(row.start, 60 * hours)
    while not draw.take(start):
        hours += 1
        start = later(row.start, 60 * hours)
    look, move = call("search_events", title=row.title), call("move_event", event_id=row.event_id, start=start)
    return Piece(
        {"title": row.title, "hours": str(hours)},
        Goal(changes=(("events", row.event_id, {"start": start}),), tells=(start,)),
        (look, move, "Done.", f"It starts at {start} now."),
        checks=("When does it start now?",),
        routes=((look, call("shift_time", time=row.start, minutes=60 * hours), move, f"It starts at {start}.", f"At {start}."),),
    )


@family(
    "calendar",
    "See to it that I think of {title} at {when}: a reminder or an event, as you like.",
    "I must not miss {title} at {when}, put it into the calendar or the reminders.",
    "Note {title} for {when}, as an event or as a reminder.",
    "Whether reminder or event, get me {title} down for {when}.",
)
def either_entry(draw: WideDraw) -> Piece:
    title, when = draw.title(), draw.when()
    return Piece(
        {"title": title, "when": when},
        Goal(
            adds=(("reminders", {"title": title, "due": when, "done": False}),),
            others=(Goal(adds=(("events", {"title": title, "start": when}),)),),
        ),
        (call("add_reminder", title=title, due=when), "Done."),
        routes=((call("add_event", title=title, start=when), "It is on the calendar."),),
    )


@family(
    "calendar",
    "Move all my reminders {title} to {when}.",
    "Every reminder called {title} is to be due at {when}.",
    "Shift each of the reminders {title} to {when}.",
    "Reschedule all the reminders {title}, they are due at {when} now.",
)
def move_all_reminders(draw: WideDraw) -> Piece:
    title = draw.title()
    rows = [draw.reminder(title) for _ in range(9 + draw.below(8))]
    due = draw.when()
    moves = tuple(call("move_reminder", reminder_id=row.reminder_id, due=due) for row in rows)
    return Piece(
        {"title": title, "when": due},
        Goal(changes=tuple(("reminders", row.reminder_id, {"due": due}) for row in rows)),
        (call("search_reminders", title=title), *moves, "Done."),
        routes=((call("search_reminders"), *reversed(moves), "All are moved."),),
    )


@family(
    "calendar",
    "Delete all {count} reminders {title}.",
    "I have {count} reminders {title}, remove every one.",
    "Erase each of my {count} reminders {title}.",
    "Get rid of all the {count} reminders called {title}.",
)
def purge_reminders(draw: WideDraw) -> Piece:
    title = draw.title()
    rows = [draw.reminder(title) for _ in range(40 + draw.below(20))]
    deletes = tuple(call("delete_reminder", reminder_id=row.reminder_id) for row in rows)
    return Piece(
        {"title": title, "count": str(len(rows))},
        Goal(removes=tuple(("reminders", row.reminder_id) for row in rows)),
        (call("search_reminders", title=title), *deletes, "Done."),
    )


@family(
    "calendar",
    "Add an event {title}.",
    "I need a new event {title} on my calendar.",
    "Please create the appointment {title}.",
    "Enter a meeting {title} into my calendar.",
)
def ask_event(draw: WideDraw) -> Piece:
    title, start = draw.title(), draw.when()
    half = draw.chance(0.5)
    add = call("add_event", title=title, start=start)
    asked = fact("start", DUE, f"On {start[:10]}." if half else f"On {start}.", *((f"At {start[11:]}.",) if half else ()))
    plan = ("When does it start?", *(("At what time?",) if half else ()), add, "Done.")
    return Piece(
        {"title": title},
        Goal(adds=(("events", {"title": title, "start": start}),)),
        plan,
        facts=(asked,),
        routes=((*plan[:-1], f"{title} is on your calendar."),),
    )


@family(
    "calendar",
    "Move the event {title}.",
    "My appointment {title} has to be moved.",
    "Reschedule the meeting {title}, please.",
    "Shift the event {title} for me.",
)
def ask_move(draw: WideDraw) -> Piece:
    row, start = draw.event(), draw.when()
    wrong = draw.when()
    corrected = draw.chance(0.5)
    answer = f"To {wrong}. No, sorry, to {start}." if corrected else f"To {start}, please."
    look, move = call("search_events", title=row.title), call("move_event", event_id=row.event_id, start=start)
    return Piece(
        {"title": row.title},
        Goal(changes=(("events", row.event_id, {"start": start}),)),
        ("To what time?", look, move, "Done."),
        facts=(fact("start", DUE, answer),),
        routes=((look, "When is it to start?", move, f"{row.title} is moved."),),
    )


@family(
    "calendar",
    "Schedule the event {title} at {when} and tell me when it is done.",
    "Enter {title} at {when} into my calendar; I may change my mind.",
    "Book {title} for {when} as an event.",
    "Reserve {when} for {title} on my calendar.",
)
def second_thoughts(draw: WideDraw) -> Piece:
    title, start, better = draw.title(), draw.when(), draw.when()
    move = call("move_event", event_id=Found("add_event", "event_id"), start=better)
    return Piece(
        {"title": title, "when": start},
        Goal(adds=(("events", {"title": title, "start": start}),)),
        (call("add_event", title=title, start=start), "Done."),
        then=(
            Piece(
                {},
                Goal(changes=(("events", {"title": title, "start": start}, {"start": better}),)),
                (move, "Done."),
                text=f'I have changed my mind, move the event "{title}" to {better}.',
            ),
        ),
    )


@family(
    "calendar",
    "Plan a visit for me: an event and a reminder.",
    "I want a visit on my calendar and a reminder for it.",
    "Set up a visit: put it on the calendar, and remind me of it.",
    "A visit is coming: add it as an event, with a reminder.",
)
def visit(draw: WideDraw) -> Piece:
    title, start = draw.title(), draw.when()
    due = later(start, -60)
    add, remind = call("add_event", title=title, start=start), call("add_reminder", title=title, due=due)
    ask = "What is its title, and when does it start?"
    return Piece(
        {},
        Goal(adds=(("events", {"title": title, "start": start}), ("reminders", {"title": title, "due": due, "done": False}))),
        (ask, "When is the reminder due?", add, remind, "Done."),
        facts=(
            fact("title", "title name call called", f'It is called "{title}".'),
            fact("start", "start begin calendar event", f"It starts at {start}."),
            fact("due", "reminder remind due", f"Remind me at {due}."),
        ),
        routes=((ask, "For what time do you want the reminder?", remind, add, "Both are set."),),
    )


@family(
    "calendar",
    "Do I have anything on {day} at {clock}?",
    "Am I free on {day} at {clock}?",
    "Is there an event in my calendar on {day} at {clock}?",
    "What is on my calendar on {day} at {clock}?",
)
def busy_at(draw: WideDraw) -> Piece:
    day = draw.day()
    hours = draw.random.sample(range(8, 20), 3)
    rows = [draw.at(day, hour) for hour in hours]
    row = draw.pick(rows)
    return Piece(
        {"day": day, "clock": row.start[11:]},
        Goal(tells=(row.title,)),
        (call("list_events", day=day), f"There is {row.title}."),
        wants_answer=True,
        routes=((call("search_events"), f"You have {row.title} then."),),
    )


@family(
    "calendar",
    "Which of my reminders is due last?",
    "Tell me the reminder with the latest due time.",
    "What is the very last of all my reminders?",
    "Look for the reminder that comes last of all.",
)
def last_reminder(draw: WideDraw) -> Piece:
    for _ in range(11 + draw.below(5)):
        draw.reminder()
    end = max(row.due for row in draw.reminders)
    row = Reminder(draw.key("r"), draw.title(), later(end, 60 * 24 * 60))
    draw.reminders.append(row)
    return Piece(
        {},
        Goal(tells=(row.title,)),
        (call("list_reminders"), call("list_reminders", page=2), f"The last one is {row.title}."),
        wants_answer=True,
        routes=((call("search_reminders"), f"{row.title} is due last."),),
    )
