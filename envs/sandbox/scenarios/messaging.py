"""Messages, emails, notifications. Hidden side."""

from __future__ import annotations

from dynsteer_gym.envs.sandbox.draw import Found, Piece
from dynsteer_gym.envs.sandbox.goals import Goal
from dynsteer_gym.envs.sandbox.scenarios.common import PHONE, WHICH, WideDraw, call, fact, family, message_from
from dynsteer_gym.envs.sandbox.state import Happening


def _sent(number: str, content: str) -> tuple[str, dict[str, object]]:
    return "messages", {"recipient_phone_number": number, "content": content}


@family(
    "messaging",
    "Send {first} the message {text}.",
    "Text {first}: {text}.",
    "Write {text} to {first} in a message.",
    "Message {first} that {text}.",
)
def which_person(draw: WideDraw) -> Piece:
    row, other = draw.namesakes()
    first, content = row.name.split()[0], draw.text()
    draw.need_switches("send")
    look, send = call("search_contacts", name=first), call("send_message", phone_number=row.phone_number, content=content)
    return Piece(
        {"first": first, "text": content},
        Goal(adds=(_sent(row.phone_number, content),)),
        (look, "Which one do you mean?", send, "Done."),
        facts=(fact("which", WHICH + f" {other.name.split()[-1]} {row.name.split()[-1]}", f"I mean {row.name}."),),
        routes=(("What is the last name?", call("search_contacts", name=row.name), send, "It is sent."),),
    )


@family(
    "messaging",
    "Forward the message {text} to {name}.",
    "Please pass the message {text} on to {name}.",
    "Forward to {name} what somebody wrote me: {text}.",
    "The message {text} should go to {name} too, forward it.",
)
def forward(draw: WideDraw) -> Piece:
    row, person = draw.message(draw.contact().phone_number), draw.contact()
    draw.need_switches("send")
    pass_on = call("forward_message", message_id=row.message_id, phone_number=person.phone_number)
    find, look = call("search_messages", content=row.content), call("search_contacts", name=person.name)
    send = call("send_message", phone_number=person.phone_number, content=row.content)
    return Piece(
        {"text": row.content, "name": person.name},
        Goal(adds=(_sent(person.phone_number, row.content),), tells=(person.phone_number,)),
        (find, look, pass_on, "Done.", f"It went to {person.phone_number}."),
        checks=("To which number did it go?",),
        routes=((look, find, pass_on, f"Forwarded to {person.phone_number}.", f"To {person.phone_number}."), (look, find, send, "Done.", f"It went to {person.phone_number}.")),
    )


@family(
    "messaging",
    "Send everybody in the group {group} the message {text}.",
    "Text the whole group {group}: {text}.",
    "All members of {group} should get the message {text}.",
    "Write {text} to each member of the group {group}.",
)
def send_to_group(draw: WideDraw) -> Piece:
    (name, rows), content = draw.group(10 + draw.below(6)), draw.text()
    draw.need_switches("send")
    sends = tuple(call("send_message", phone_number=row.phone_number, content=content) for row in rows)
    return Piece(
        {"group": name, "text": content},
        Goal(adds=tuple(_sent(row.phone_number, content) for row in rows)),
        (call("list_group", group=name), *sends, "Done."),
        routes=((call("list_group", group=name), *reversed(sends), "All have it."),),
    )


@family(
    "messaging",
    "Delete all messages from {name}.",
    "Erase every message that {name} sent me.",
    "Remove all of {name}'s messages.",
    "Get rid of each message I got from {name}.",
)
def purge_messages(draw: WideDraw) -> Piece:
    person = draw.contact()
    rows = [draw.message(person.phone_number) for _ in range(40 + draw.below(15))]
    deletes = tuple(call("delete_message", message_id=row.message_id) for row in rows)
    look = call("search_contacts", name=person.name)
    return Piece(
        {"name": person.name},
        Goal(removes=tuple(("messages", row.message_id) for row in rows)),
        (look, call("search_messages", phone_number=person.phone_number), *deletes, "Done."),
    )


@family(
    "messaging",
    "What did {name} write in the very first message?",
    "Find the oldest message from {name} and read it to me.",
    "What does the earliest message of {name} say?",
    "Tell me the content of the oldest message that {name} sent.",
)
def oldest_message(draw: WideDraw) -> Piece:
    person = draw.contact()
    rows = [draw.message(person.phone_number) for _ in range(12 + draw.below(8))]
    first = min(rows, key=lambda row: (row.time, row.message_id))
    look = call("search_contacts", name=person.name)
    pages = tuple(call("list_messages", phone_number=person.phone_number, page=page) for page in (1, 2))
    return Piece(
        {"name": person.name},
        Goal(tells=(first.content,)),
        (look, *pages, f"The content is {first.content}."),
        wants_answer=True,
        routes=((look, pages[1], f"The oldest one says: {first.content}."), (look, call("search_messages", phone_number=person.phone_number), f"It says: {first.content}.")),
    )


@family(
    "messaging",
    "Ask {name} {text} by message and tell me the answer.",
    "Send {name} the message {text}, wait for the reply and read it to me.",
    "Text {name} {text} and let me know what comes back.",
    "Write {text} to {name} and report the answer.",
)
def ask_and_report(draw: WideDraw) -> Piece:
    person, content, reply = draw.contact(), draw.text(), draw.text()
    draw.need_switches("send")
    look = call("search_contacts", name=person.name)
    send = call("send_message", phone_number=person.phone_number, content=content)
    message = message_from(draw, person.phone_number, reply, draw.when())
    return Piece(
        {"name": person.name, "text": content},
        Goal(adds=(_sent(person.phone_number, content),), tells=(reply,)),
        (look, send, call("search_messages", phone_number=person.phone_number), f"The answer is {reply}."),
        wants_answer=True,
        happenings=(Happening("send_message", message),),
        routes=((look, send, call("list_messages"), f"{person.name} answers: {reply}."),),
    )


@family(
    "messaging",
    "Let {name} know {text}, by message or by email.",
    "Tell {name} {text}; a message or an email will do.",
    "{text} is what {name} should hear from me, by email or message.",
    "Get the words {text} to {name}, whether by email or message.",
)
def message_or_email(draw: WideDraw) -> Piece:
    person, content = draw.mailed(), draw.text()
    draw.need_switches("send")
    look = call("search_contacts", name=person.name)
    return Piece(
        {"name": person.name, "text": content},
        Goal(
            adds=(_sent(person.phone_number, content),),
            others=(Goal(adds=(("emails", {"address": person.email, "content": content}),)),),
        ),
        (look, call("send_message", phone_number=person.phone_number, content=content), "Done."),
        routes=((look, call("send_email", address=person.email, content=content), "The email is on its way."),),
    )


@family(
    "messaging",
    "Email {name} the words {text}.",
    "Send {name} an email that says {text}.",
    "Write an email to {name}: {text}.",
    "Mail {text} to {name}.",
)
def email(draw: WideDraw) -> Piece:
    person, content = draw.mailed(), draw.text()
    draw.need_switches("send")
    look, send = call("search_contacts", name=person.name), call("send_email", address=person.email, content=content)
    return Piece(
        {"name": person.name, "text": content},
        Goal(adds=(("emails", {"address": person.email, "content": content}),), tells=(person.email,)),
        (look, send, "Done.", f"I used {person.email}."),
        checks=("Which address did you use?",),
        routes=((call("search_contacts"), send, f"Sent to {person.email}.", f"{person.email}."),),
    )


@family(
    "messaging",
    "Save the sender of the message {text} as {name}.",
    "Whoever wrote {text} is {name}; make a contact.",
    "Add the one who sent me {text} to my contacts as {name}.",
    "The message {text} came from {name}, store that number as a new contact.",
)
def save_sender(draw: WideDraw) -> Piece:
    number, name = draw.phone(), draw.person()
    row = draw.message(number)
    add = call("add_contact", name=name, phone_number=number)
    return Piece(
        {"text": row.content, "name": name},
        Goal(adds=(("contacts", {"name": name, "phone_number": number}),)),
        (call("search_messages", content=row.content), add, "Done."),
        routes=((call("search_messages"), add, f"{name} is a contact now."),),
    )


@family(
    "messaging",
    "Reply {text2} to the message {text}.",
    "Answer the message {text} with {text2}.",
    "Write back {text2} to whoever sent {text}.",
    "The message {text} wants an answer: {text2}.",
)
def reply(draw: WideDraw) -> Piece:
    row, content = draw.message(draw.contact().phone_number), draw.text()
    draw.need_switches("send")
    send = call("send_message", phone_number=row.sender_phone_number, content=content)
    return Piece(
        {"text": row.content, "text2": content},
        Goal(adds=(_sent(row.sender_phone_number, content),)),
        (call("search_messages", content=row.content), send, "Done."),
        routes=((call("search_messages"), send, "The answer is sent."),),
    )


@family(
    "messaging",
    "Send a message for me.",
    "I want to text somebody.",
    "Please write a message.",
    "There is a message to be sent.",
)
def ask_message(draw: WideDraw) -> Piece:
    person, content = draw.contact(), draw.text()
    draw.need_switches("send")
    look = call("search_contacts", name=person.name)
    send = call("send_message", phone_number=person.phone_number, content=content)
    return Piece(
        {},
        Goal(adds=(_sent(person.phone_number, content),)),
        ("To whom, and what shall it say?", look, send, "Done."),
        facts=(
            fact("name", "whom who recipient person name", f"It is for {person.name}."),
            fact("text", "say text content words write", f'The text is "{content}".'),
        ),
        routes=(("Who is it for?", look, "What is the text?", send, "It is sent."),),
    )


@family(
    "messaging",
    "Text {name} the words {text}; the address book does not open today.",
    "My contacts cannot be searched, still send {name} the message {text}.",
    "Without the address book, please message {text} to {name}.",
    "Send {text} to {name}, although you cannot look into my contacts.",
)
def no_address_book(draw: WideDraw) -> Piece:
    person, content = draw.contact(), draw.text()
    draw.need_switches("send")
    send = call("send_message", phone_number=person.phone_number, content=content)
    return Piece(
        {"name": person.name, "text": content},
        Goal(adds=(_sent(person.phone_number, content),)),
        ("What is the phone number?", send, "Done."),
        facts=(fact("phone_number", PHONE, f"The number is {draw.said_phone(person.phone_number)}."),),
        routes=(("At which number can I reach them?", send, "It is sent."),),
        without=("search_contacts", "list_contacts"),
    )


@family(
    "messaging",
    "Send {name} {text}, and the same words to {name2}.",
    "Both {name} and {name2} should get the message {text}.",
    "Text {text} to {name} as well as to {name2}.",
    "Message the words {text} to {name} and to {name2}.",
)
def send_to_two(draw: WideDraw) -> Piece:
    one, other, content = draw.contact(), draw.contact(), draw.text()
    draw.need_switches("send")
    looks = [call("search_contacts", name=row.name) for row in (one, other)]
    sends = [call("send_message", phone_number=row.phone_number, content=content) for row in (one, other)]
    return Piece(
        {"name": one.name, "name2": other.name, "text": content},
        Goal(adds=(_sent(one.phone_number, content), _sent(other.phone_number, content))),
        (looks[0], sends[0], looks[1], sends[1], "Done."),
        routes=((call("search_contacts"), sends[1], sends[0], "Both have it."),),
    )


@family(
    "messaging",
    "Send {name} {text}, then delete that message from my phone.",
    "Message {name} {text} and leave no copy of it on the phone.",
    "Text {name} {text}; once sent, erase it here.",
    "After sending {name} the words {text}, remove the message.",
)
def send_then_delete(draw: WideDraw) -> Piece:
    person, content = draw.contact(), draw.text()
    draw.message(draw.contact().phone_number)
    draw.need_switches("send")
    look = call("search_contacts", name=person.name)
    send = call("send_message", phone_number=person.phone_number, content=content)
    delete = call("delete_message", message_id=Found("send_message", "message_id"))
    return Piece(
        {"name": person.name, "text": content},
        Goal(adds=(_sent(person.phone_number, content),)),
        (look, send, "It is sent."),
        then=(
            Piece(
                {},
                Goal(removes=(("messages", {"recipient_phone_number": person.phone_number, "content": content}),)),
                (delete, "Done."),
                text="Good. Now delete the message that you sent.",
            ),
        ),
    )
