"""Contacts and groups. Hidden side."""

from __future__ import annotations

from dataclasses import replace

from dynsteer_gym.envs.sandbox.draw import Found, Piece
from dynsteer_gym.envs.sandbox.goals import Goal, KeyOf
from dynsteer_gym.envs.sandbox.scenarios.common import GROUPS, PHONE, WHICH, WideDraw, call, fact, family
from dynsteer_gym.envs.sandbox.state import Contact


@family(
    "contacts",
    "Who has the number {phone}?",
    "Whose phone number is {phone}?",
    "Tell me which contact the number {phone} belongs to.",
    "Find out who {phone} is.",
)
def whose_number(draw: WideDraw) -> Piece:
    row = draw.contact()
    said = draw.said_phone(row.phone_number)
    return Piece(
        {"phone": said},
        Goal(tells=(row.name,)),
        (call("search_contacts", phone_number=row.phone_number), f"It is the number of {row.name}."),
        wants_answer=True,
        routes=((call("get_canonical_phone_number", text=said), call("search_contacts"), f"That is {row.name}."),),
    )


@family(
    "contacts",
    "Change {first}'s phone number to {phone}.",
    "{first} has a new number, {phone}.",
    "Please update the number of {first}, it is {phone} now.",
    "Correct {first}'s entry, the number is {phone}.",
)
def which_update(draw: WideDraw) -> Piece:
    row, other = draw.namesakes()
    first, number = row.name.split()[0], draw.phone()
    look = call("search_contacts", name=first)
    change = call("update_contact", contact_id=row.contact_id, phone_number=number)
    return Piece(
        {"first": first, "phone": draw.said_phone(number)},
        Goal(changes=(("contacts", row.contact_id, {"phone_number": number}),)),
        (look, "Which one do you mean?", change, "Done."),
        facts=(fact("which", WHICH + f" {other.name.split()[-1]}", f"I mean {row.name}."),),
        routes=((look, "There are several of that name. What is the last name?", change, "It is updated."),),
    )


@family(
    "contacts",
    "Put {name}, {name2} and {name3} into the group {group}.",
    "Make {name}, {name2} and {name3} members of {group}.",
    "Add to the group {group}: {name}, {name2} and {name3}.",
    "{group} gets three new members, {name}, {name2} and {name3}.",
)
def fill_group(draw: WideDraw) -> Piece:
    rows = [draw.contact() for _ in range(3)]
    name = draw._fresh(lambda: draw.pick(GROUPS))
    looks = [call("search_contacts", name=row.name) for row in rows]
    adds = [call("add_to_group", contact_id=row.contact_id, group=name) for row in rows]
    return Piece(
        {"name": rows[0].name, "name2": rows[1].name, "name3": rows[2].name, "group": name},
        Goal(adds=tuple(("members", {"group": name, "contact_id": row.contact_id}) for row in rows)),
        (looks[0], adds[0], looks[1], adds[1], looks[2], adds[2], "Done."),
        routes=((call("search_contacts"), *adds, "All three are in it."), (call("list_contacts"), *looks, *reversed(adds), "Done.")),
    )


@family(
    "contacts",
    "Who is in the group {group}?",
    "List the members of {group}.",
    "Tell me who belongs to the group {group}.",
    "Which people are members of {group}?",
)
def group_members(draw: WideDraw) -> Piece:
    name, rows = draw.group(2 + draw.below(3))
    names = ", ".join(row.name for row in rows)
    return Piece(
        {"group": name},
        Goal(tells=tuple(row.name for row in rows)),
        (call("list_group", group=name), f"The members are {names}."),
        wants_answer=True,
    )


@family(
    "contacts",
    "Delete every contact that is in the group {group}.",
    "Erase all contacts of {group} from my address book.",
    "Remove all the members of {group} from my contacts.",
    "The people of {group} can go, delete their contacts.",
)
def purge_group(draw: WideDraw) -> Piece:
    name, rows = draw.group(10 + draw.below(6))
    deletes = tuple(call("delete_contact", contact_id=row.contact_id) for row in rows)
    return Piece(
        {"group": name},
        Goal(removes=tuple(("contacts", row.contact_id) for row in rows)),
        (call("list_group", group=name), *deletes, "Done."),
        routes=((call("list_group", group=name), *reversed(deletes), "All of them are deleted."),),
    )


@family(
    "contacts",
    "Which of my contacts comes last in the alphabet?",
    "Go through my contacts: who is the last one by name?",
    "Tell me the name at the very end of my address book.",
    "Whose entry stands last in my alphabetical list of contacts?",
)
def last_contact(draw: WideDraw) -> Piece:
    for _ in range(13):
        draw.contact()
    row = draw.contact(f"Я{draw.person().split()[0].lower()} Яшина")
    return Piece(
        {},
        Goal(tells=(row.name,)),
        (call("list_contacts"), call("list_contacts", page=2), f"The last one is {row.name}."),
        wants_answer=True,
        routes=((call("list_contacts", page=2), f"{row.name} comes last."),),
    )


@family(
    "contacts",
    "I have {name} twice: keep the entry with {phone}, move the email there, and delete the other.",
    "Merge the two entries of {name} into the one with {phone}, the email address included.",
    "Put the email of {name} into the entry that has {phone} and delete the second entry.",
    "Of the two {name} entries only the one with {phone} stays; it should get the email of the other.",
)
def merge_twins(draw: WideDraw) -> Piece:
    keep = draw.contact()
    gone = draw.contact(keep.name)
    draw.contacts[-1] = gone = replace(gone, email=draw.mail(keep.name))
    look = call("search_contacts", name=keep.name)
    change = call("update_contact", contact_id=keep.contact_id, email=gone.email)
    delete = call("delete_contact", contact_id=gone.contact_id)
    return Piece(
        {"name": keep.name, "phone": draw.said_phone(keep.phone_number)},
        Goal(changes=(("contacts", keep.contact_id, {"email": gone.email}),), removes=(("contacts", gone.contact_id),)),
        (look, change, delete, "Done."),
        routes=((call("search_contacts"), delete, change, "There is one entry left."),),
    )


@family(
    "contacts",
    "The numbers of {name} and {name2} are mixed up, swap them.",
    "Exchange the phone numbers of {name} and {name2}.",
    "{name} has the number of {name2} and the other way round, correct both.",
    "Swap the numbers in the entries of {name} and {name2}.",
)
def swap_numbers(draw: WideDraw) -> Piece:
    one, other = draw.contact(), draw.contact()
    looks = [call("search_contacts", name=row.name) for row in (one, other)]
    changes = [
        call("update_contact", contact_id=one.contact_id, phone_number=other.phone_number),
        call("update_contact", contact_id=other.contact_id, phone_number=one.phone_number),
    ]
    return Piece(
        {"name": one.name, "name2": other.name},
        Goal(
            changes=(
                ("contacts", one.contact_id, {"phone_number": other.phone_number}),
                ("contacts", other.contact_id, {"phone_number": one.phone_number}),
            ),
            tells=(other.phone_number,),
        ),
        (*looks, *changes, "Done.", f"{one.name} has {other.phone_number} now."),
        checks=(f"Which number does {one.name} have now?",),
        routes=((call("search_contacts"), *reversed(changes), "Both are right now.", f"It is {other.phone_number}."),),
    )


@family(
    "contacts",
    "What is the email address of {name}?",
    "Tell me {name}'s email.",
    "Look up the email of {name}.",
    "At which email address can I write to {name}?",
)
def get_email(draw: WideDraw) -> Piece:
    row = draw.mailed()
    return Piece(
        {"name": row.name},
        Goal(tells=(row.email,)),
        (call("search_contacts", name=row.name), f"It is {row.email}."),
        wants_answer=True,
        routes=((call("search_contacts"), f"The email is {row.email}."),),
    )


@family(
    "contacts",
    "Take {name} out of the group {group}.",
    "{name} has left the group {group}, update it.",
    "Remove {name} from {group}, but keep the contact.",
    "{name} is no member of {group} any more.",
)
def leave_group(draw: WideDraw) -> Piece:
    name, rows = draw.group(3 + draw.below(3))
    row = draw.pick(rows)
    member = next(item for item in draw.members if item.contact_id == row.contact_id)
    leave = call("remove_from_group", contact_id=row.contact_id, group=name)
    return Piece(
        {"name": row.name, "group": name},
        Goal(removes=(("members", member.member_id),)),
        (call("search_contacts", name=row.name), leave, "Done."),
        routes=((call("list_group", group=name), leave, f"{row.name} is out."),),
    )


@family(
    "contacts",
    "Add a new contact {name}.",
    "Make an entry for {name} in my address book.",
    "{name} should be among my contacts, please add that.",
    "I want {name} as a new contact.",
)
def ask_contact(draw: WideDraw) -> Piece:
    name, number = draw.person(), draw.phone()
    add = call("add_contact", name=name, phone_number=number)
    slip = draw.phone()
    answer = f"The number is {draw.said_phone(number)}."
    if draw.chance(0.4):
        answer = f"It is {slip}. Sorry, that was wrong, it is {number}."
    return Piece(
        {"name": name},
        Goal(adds=(("contacts", {"name": name, "phone_number": number}),)),
        ("What is the phone number?", add, "Done."),
        facts=(fact("phone_number", PHONE, answer),),
        routes=((call("search_contacts", name=name), "At which number can I reach them?", add, f"{name} is added."),),
    )


@family(
    "contacts",
    "Delete {first} from my contacts.",
    "I no longer need {first} in the address book.",
    "Remove {first}'s entry.",
    "Erase the contact of {first}.",
)
def which_delete(draw: WideDraw) -> Piece:
    row, other = draw.namesakes()
    first = row.name.split()[0]
    look, delete = call("search_contacts", name=first), call("delete_contact", contact_id=row.contact_id)
    return Piece(
        {"first": first},
        Goal(removes=(("contacts", row.contact_id),)),
        (look, "Which one do you mean?", delete, "Done."),
        facts=(fact("which", WHICH + f" {other.name.split()[-1]}", f"The one called {row.name}."),),
        routes=((call("search_contacts"), "What is the last name?", delete, "The entry is gone."),),
    )


@family(
    "contacts",
    "Store {name} under {phone} and put the new contact into the group {group}.",
    "Create a contact {name} with {phone} who is a member of {group}.",
    "{name}, {phone}, is new in {group}: add the contact and the membership.",
    "Make a contact for {name} with {phone} and add it to {group}.",
)
def new_member(draw: WideDraw) -> Piece:
    (group, _), name, number = draw.group(2), draw.person(), draw.phone()
    add = call("add_contact", name=name, phone_number=number)
    join = call("add_to_group", contact_id=Found("add_contact", "contact_id"), group=group)
    return Piece(
        {"name": name, "phone": draw.said_phone(number), "group": group},
        Goal(
            adds=(
                ("contacts", {"name": name, "phone_number": number}),
                ("members", {"group": group, "contact_id": KeyOf("contacts", (("name", name),))}),
            )
        ),
        (add, join, "Done."),
        routes=((call("list_group", group=group), add, join, f"{name} is in {group}."),),
    )


@family(
    "contacts",
    "Save {name} with {phone}; wait, is there an entry already? If so, only correct its number.",
    "{name} should have the number {phone}: correct the entry, or make one if there is none.",
    "Make sure that my contacts have {name} under {phone}, once.",
    "Enter {phone} for {name}, in the old entry if there is one.",
)
def upsert(draw: WideDraw) -> Piece:
    number, known = draw.phone(), draw.chance(0.5)
    if known:
        row = draw.contact()
        write = call("update_contact", contact_id=row.contact_id, phone_number=number)
        goal = Goal(changes=(("contacts", row.contact_id, {"phone_number": number}),))
    else:
        row = Contact("", draw.person(), number)
        write = call("add_contact", name=row.name, phone_number=number)
        goal = Goal(adds=(("contacts", {"name": row.name, "phone_number": number}),))
    return Piece(
        {"name": row.name, "phone": draw.said_phone(number)},
        goal,
        (call("search_contacts", name=row.name), write, "Done."),
        routes=((call("search_contacts"), write, f"{row.name} has that number."),),
    )
