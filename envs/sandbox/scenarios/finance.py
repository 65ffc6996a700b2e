"""Accounts, payees, transfers, cards. Hidden side."""

from __future__ import annotations

from dataclasses import replace

from dynsteer_gym.envs.sandbox.draw import Found, Piece, Plan, Taken
from dynsteer_gym.envs.sandbox.goals import Goal, KeyOf
from dynsteer_gym.envs.sandbox.scenarios.common import WHICH, WideDraw, call, fact, family
from dynsteer_gym.envs.sandbox.state import Account
from dynsteer_gym.envs.sandbox.tools.finance import RATES, converted

_ASK = "Shall I go ahead?"


def _plain(amount: float) -> str:
    return f"{amount:.2f}"


def _transfer(account: Account, payee: str | Found, amount: float, again: int = 1) -> Plan:
    """Prepared, asked for, confirmed (more than once where the bank fails)."""
    confirm = call("confirm_transfer", transfer_id=Found("prepare_transfer", "transfer_id"))
    prepare = call("prepare_transfer", account_id=account.account_id, payee_id=payee, amount=amount)
    return (prepare, _ASK, *([confirm] * again))


@family(
    "finance",
    "Pay {amount} EUR to {firm}.",
    "Transfer {amount} EUR to {firm}, please.",
    "{firm} gets {amount} EUR from me, send it.",
    "Send {amount} EUR to my payee {firm}.",
)
def pay_firm(draw: WideDraw) -> Piece:
    account, payee, amount = draw.main(), draw.payee(), draw.amount()
    look, money = call("search_payees", name=payee.name), _transfer(account, payee.payee_id, amount)
    return Piece(
        {"amount": _plain(amount), "firm": payee.name},
        Goal(**draw.pays(account, payee.payee_id, amount)),
        (call("list_accounts"), look, *money, "Done."),
        confirms=True,
        routes=((look, call("list_accounts"), _ASK, money[0], money[2], "It is paid."),),
    )


@family(
    "finance",
    "Pay {amount} EUR to {name}, a new payee.",
    "{name} is no payee yet and gets {amount} EUR, send them.",
    "Send {amount} EUR to {name}; you have to add the payee first.",
    "Add {name} as a payee and transfer {amount} EUR.",
)
def pay_new(draw: WideDraw) -> Piece:
    account, name, iban, amount = draw.main(), draw.person(), draw.iban(), draw.amount()
    add = call("add_payee", name=name, iban=iban)
    money = _transfer(account, Found("add_payee", "payee_id"), amount)
    paid = draw.pays(account, "", amount)
    row = {**paid["adds"][0][1], "payee_id": KeyOf("payees", (("iban", iban),))}
    return Piece(
        {"amount": _plain(amount), "name": name},
        Goal(adds=(("payees", {"name": name, "iban": iban}), ("transfers", row)), changes=paid["changes"]),
        (call("list_accounts"), "What is the IBAN?", add, *money, "Done."),
        facts=(fact("iban", "iban bank details", f"The IBAN is {' '.join(iban[i : i + 4] for i in range(0, len(iban), 4))}."),),
        confirms=True,
        routes=(("Which bank details does the payee have?", add, call("list_accounts"), *money, f"{name} has been paid."),),
    )


@family(
    "finance",
    "How much money is in my account {account}?",
    "What is the balance of the account {account}?",
    "Tell me what I have on my account {account}.",
    "Check the balance of my {account} account.",
)
def balance(draw: WideDraw) -> Piece:
    draw.main()
    row = draw.account()
    return Piece(
        {"account": row.name},
        Goal(tells=(draw.balance(row),)),
        (call("list_accounts"), f"The balance is {draw.balance(row)}."),
        wants_answer=True,
        routes=((call("list_accounts"), call("get_account", account_id=row.account_id), f"There are {draw.balance(row)} on it."),),
    )


@family(
    "finance",
    "How much was my latest payment to {firm}?",
    "What amount did I last pay to {firm}?",
    "Look up the most recent transfer to {firm}, how much was it?",
    "Tell me the amount of the last payment to {firm}.",
)
def last_payment(draw: WideDraw) -> Piece:
    draw.main()
    payee = draw.payee()
    rows = [draw.paid(payee) for _ in range(2 + draw.below(4))]
    last = max(rows, key=lambda row: (row.time, row.transfer_id))
    look, show = call("search_payees", name=payee.name), call("list_transfers", payee_id=payee.payee_id)
    return Piece(
        {"firm": payee.name},
        Goal(tells=(last.amount,)),
        (look, show, f"It was {last.amount}."),
        wants_answer=True,
        routes=((look, call("list_transfers"), show, f"The amount is {last.amount}."),),
    )


@family(
    "finance",
    "What was my first payment ever to {firm}?",
    "Find the oldest transfer to {firm} and tell me the amount.",
    "How much did I pay to {firm} the very first time?",
    "Go back to the earliest payment to {firm}: how much was it?",
)
def first_payment(draw: WideDraw) -> Piece:
    draw.main()
    payee = draw.payee()
    rows = [draw.paid(payee) for _ in range(12 + draw.below(8))]
    first = min(rows, key=lambda row: (row.time, row.transfer_id))
    look = call("search_payees", name=payee.name)
    pages = [call("list_transfers", payee_id=payee.payee_id, page=page) for page in (1, 2)]
    return Piece(
        {"firm": payee.name},
        Goal(tells=(first.amount,)),
        (look, *pages, f"It was {first.amount}."),
        wants_answer=True,
        routes=((look, pages[1], f"The first one was {first.amount}."),),
    )


@family(
    "finance",
    "Pay {firm} the equivalent of {amount} {currency}.",
    "{firm} charges {amount} {currency}; pay it from my euro account.",
    "Transfer {amount} {currency} to {firm}, converted to euros.",
    "The bill of {firm} is {amount} {currency}, pay that.",
)
def pay_foreign(draw: WideDraw) -> Piece:
    account, payee, currency = draw.main(), draw.payee(), draw.pick([name for name in RATES if name not in ("EUR", "JPY")])
    foreign = draw.amount()
    amount = converted(foreign, currency, "EUR")
    look, money = call("search_payees", name=payee.name), _transfer(account, payee.payee_id, amount)
    change = call("convert_currency", amount=foreign, from_currency=currency, to_currency="EUR")
    return Piece(
        {"amount": _plain(foreign), "currency": currency, "firm": payee.name},
        Goal(**draw.pays(account, payee.payee_id, amount)),
        (call("list_accounts"), look, change, *money, "Done."),
        confirms=True,
        routes=(
            (call("get_exchange_rate", from_currency=currency, to_currency="EUR"), look, call("list_accounts"), *money, "It is paid."),
        ),
    )


@family(
    "finance",
    "Pay {amount} EUR to {firm}; if the limit is too low, raise it to {limit} EUR.",
    "{firm} gets {amount} EUR. You may set my transfer limit to {limit} EUR for that.",
    "Transfer {amount} EUR to {firm}, with the limit raised to {limit} EUR where it is needed.",
    "Send {firm} {amount} EUR; a limit of {limit} EUR is all right.",
)
def over_limit(draw: WideDraw) -> Piece:
    if draw.accounts:
        account = draw.main()
        raise_needed = False
    else:
        account, raise_needed = draw.account(low=2500, limit=300.0), True
    payee, amount = draw.payee(), float(310 + 10 * draw.below(20))
    limit = amount + 200
    look, money = call("search_payees", name=payee.name), _transfer(account, payee.payee_id, amount)
    lift = call("set_transfer_limit", account_id=account.account_id, limit=limit)
    goal = draw.pays(account, payee.payee_id, amount)
    if raise_needed:
        (table, key, fields), = goal["changes"]
        goal["changes"] = ((table, key, {**fields, "transfer_limit": limit}),)
    lifted = (lift,) if raise_needed else ()
    return Piece(
        {"amount": _plain(amount), "limit": _plain(limit), "firm": payee.name},
        Goal(**goal),
        (call("list_accounts"), look, *((money[0], lift) if raise_needed else ()), *money, "Done."),
        confirms=True,
        routes=((look, call("list_accounts"), *lifted, _ASK, money[0], money[2], "It is paid."),),
    )


@family(
    "finance",
    "Move {amount} EUR from {account} to {account2}.",
    "Put {amount} EUR from my account {account} into {account2}.",
    "Shift {amount} EUR between my accounts, out of {account} and into {account2}.",
    "Take {amount} EUR off {account} and add them to {account2}.",
)
def own_accounts(draw: WideDraw) -> Piece:
    one = draw.main()
    other, amount = draw.account(), draw.amount()
    move = call("move_money", from_account_id=one.account_id, to_account_id=other.account_id, amount=amount)
    left, right = draw.moves(one, -amount), draw.moves(other, amount)
    return Piece(
        {"amount": _plain(amount), "account": one.name, "account2": other.name},
        Goal(
            changes=(("accounts", one.account_id, {"balance": left}), ("accounts", other.account_id, {"balance": right})),
            tells=(right,),
        ),
        (call("list_accounts"), move, "Done.", f"There are {right} on it."),
        checks=(f"How much is on {other.name} now?",),
        routes=((call("list_accounts"), move, call("get_account", account_id=other.account_id), f"{other.name} has {right}.", f"{right}."),),
    )


@family(
    "finance",
    "Freeze the card of my account {account}.",
    "I lost the card of {account}, block it.",
    "Please freeze the {account} card at once.",
    "The card for {account} is gone, have it frozen.",
)
def freeze(draw: WideDraw) -> Piece:
    draw.main()
    row = draw.account()
    act = call("freeze_card", account_id=row.account_id)
    return Piece(
        {"account": row.name},
        Goal(changes=(("accounts", row.account_id, {"card_frozen": True}),)),
        (call("list_accounts"), act, "Done."),
        routes=((call("list_accounts"), "Shall I freeze it?", act, "The card is frozen."),),
    )


@family(
    "finance",
    "I found my card again, unfreeze the one of {account}.",
    "Unblock the card of {account}.",
    "The {account} card may be used again, unfreeze it.",
    "Lift the freeze on the card of my account {account}.",
)
def unfreeze(draw: WideDraw) -> Piece:
    draw.main()
    row = draw.account()
    draw.accounts[-1] = replace(row, card_frozen=True)
    act = call("unfreeze_card", account_id=row.account_id)
    return Piece(
        {"account": row.name},
        Goal(changes=(("accounts", row.account_id, {"card_frozen": False}),)),
        (call("list_accounts"), act, "Done."),
        routes=((call("list_accounts"), act, call("get_account", account_id=row.account_id), "The card works again."),),
    )


@family(
    "finance",
    "Cancel the transfer to {firm} that is only prepared.",
    "There is a prepared payment to {firm}, take it back.",
    "Do not send the money to {firm}: cancel the draft.",
    "The draft transfer for {firm} is wrong, cancel it.",
)
def cancel_draft(draw: WideDraw) -> Piece:
    draw.main()
    payee = draw.payee()
    draw.paid(payee)
    row = draw.paid(payee, status="draft")
    look, show = call("search_payees", name=payee.name), call("list_transfers", payee_id=payee.payee_id)
    cancel = call("cancel_transfer", transfer_id=row.transfer_id)
    return Piece(
        {"firm": payee.name},
        Goal(changes=(("transfers", row.transfer_id, {"status": "cancelled"}),), tells=(row.amount,)),
        (look, show, cancel, "Done.", f"It was {row.amount}."),
        checks=("How much was it?",),
        routes=((call("list_transfers"), look, show, cancel, f"{row.amount} will not be sent.", f"It was {row.amount}."),),
    )


@family(
    "finance",
    "Split the bill: {firm}, {firm2} and {firm3} each get {amount} EUR.",
    "Pay {amount} EUR each to {firm}, {firm2} and {firm3}.",
    "Three payments of {amount} EUR: to {firm}, to {firm2} and to {firm3}.",
    "{firm}, {firm2} and {firm3} are to have {amount} EUR apiece, pay them.",
)
def split_bill(draw: WideDraw) -> Piece:
    account, amount = draw.main(), round(draw.amount() / 3, 2)
    payees = [draw.payee() for _ in range(3)]
    goals = [draw.pays(account, payee.payee_id, amount) for payee in payees]
    confirm = call("confirm_transfer", transfer_id=Found("prepare_transfer", "transfer_id"))
    steps: list[Plan] = []
    for payee in payees:
        prepare = call("prepare_transfer", account_id=account.account_id, payee_id=payee.payee_id, amount=amount)
        steps.append((call("search_payees", name=payee.name), prepare, confirm))
    return Piece(
        {"amount": _plain(amount), "firm": payees[0].name, "firm2": payees[1].name, "firm3": payees[2].name},
        Goal(adds=tuple(goal["adds"][0] for goal in goals), changes=goals[-1]["changes"]),
        (call("list_accounts"), _ASK, *steps[0], *steps[1], *steps[2], "Done."),
        confirms=True,
        routes=((_ASK, call("list_accounts"), *steps[2], *steps[1], *steps[0], "All three are paid."),),
    )


@family(
    "finance",
    "Pay the rent, {amount} EUR to {firm}; the bank has been unreliable today.",
    "Send {firm} {amount} EUR and see to it that it really goes through.",
    "{amount} EUR for {firm}, and do not stop at the first error of the bank.",
    "Transfer {amount} EUR to {firm}; try again if the bank does not answer.",
)
def flaky_bank(draw: WideDraw) -> Piece:
    account, payee, amount = draw.main(), draw.payee(), draw.amount()
    look, money = call("search_payees", name=payee.name), _transfer(account, payee.payee_id, amount, again=2)
    return Piece(
        {"amount": _plain(amount), "firm": payee.name},
        Goal(**draw.pays(account, payee.payee_id, amount)),
        (call("list_accounts"), look, *money, "Done."),
        confirms=True,
        failing=("confirm_transfer",),
        routes=((look, call("list_accounts"), *money[:3], call("list_transfers", payee_id=payee.payee_id), money[3], "It went through."),),
    )


@family(
    "finance",
    "Add {name} as a payee with the IBAN {iban}.",
    "Save {name}, {iban}, as a payee.",
    "New payee: {name} with {iban}.",
    "Put {name} on the list of payees, the IBAN is {iban}.",
)
def new_payee(draw: WideDraw) -> Piece:
    draw.main()
    name, iban = draw.person(), draw.iban()
    add = call("add_payee", name=name, iban=iban)
    return Piece(
        {"name": name, "iban": iban},
        Goal(adds=(("payees", {"name": name, "iban": iban}),)),
        (add, "Done."),
        routes=((call("search_payees", name=name), add, f"{name} is a payee now."),),
    )


@family(
    "finance",
    "Delete the payee {firm}.",
    "I pay nothing to {firm} any more, remove the payee.",
    "Take {firm} off my payees.",
    "Erase {firm} from the list of payees.",
)
def remove_payee(draw: WideDraw) -> Piece:
    draw.main()
    row = draw.payee()
    delete = call("delete_payee", payee_id=row.payee_id)
    return Piece(
        {"firm": row.name},
        Goal(removes=(("payees", row.payee_id),)),
        (call("search_payees", name=row.name), delete, "Done."),
        routes=((call("search_payees"), delete, f"{row.name} is no payee any more."),),
    )


@family(
    "finance",
    "Pay {amount} EUR to {first}.",
    "{first} is to get {amount} EUR from me.",
    "Transfer {amount} EUR to {first}, please.",
    "Send {first} {amount} EUR.",
)
def which_payee(draw: WideDraw) -> Piece:
    account, amount = draw.main(), draw.amount()
    name = draw.person()
    first = name.split()[0]
    row, other = draw.payee(name), draw.payee(draw.person(first))
    look, money = call("search_payees", name=first), _transfer(account, row.payee_id, amount)
    return Piece(
        {"amount": _plain(amount), "first": first},
        Goal(**draw.pays(account, row.payee_id, amount)),
        (call("list_accounts"), look, "Which one do you mean?", *money, "Done."),
        facts=(fact("which", WHICH + f" {other.name.split()[-1]}", f"I mean {row.name}."),),
        confirms=True,
        routes=((look, "What is the last name of the payee?", call("list_accounts"), *money, f"{row.name} is paid."),),
    )


@family(
    "finance",
    "Pay all my open bills: each payee gets {amount} EUR.",
    "Every one of my payees is to get {amount} EUR, do that.",
    "Send {amount} EUR to each payee on my list.",
    "It is the first of the month: {amount} EUR to all of my payees.",
)
def pay_everyone(draw: WideDraw) -> Piece:
    if draw.payees:
        raise Taken("payees")
    account, amount = draw.main(), float(10 + draw.below(30))
    payees = [draw.payee() for _ in range(4 + draw.below(3))]
    goals = [draw.pays(account, payee.payee_id, amount) for payee in payees]
    confirm = call("confirm_transfer", transfer_id=Found("prepare_transfer", "transfer_id"))
    steps = [
        (call("prepare_transfer", account_id=account.account_id, payee_id=payee.payee_id, amount=amount), confirm)
        for payee in payees
    ]
    draw.complete = True
    return Piece(
        {"amount": _plain(amount)},
        Goal(adds=tuple(goal["adds"][0] for goal in goals), changes=goals[-1]["changes"]),
        (call("list_accounts"), call("search_payees"), _ASK, *[turn for step in steps for turn in step], "Done."),
        confirms=True,
        routes=(
            (call("search_payees"), call("list_accounts"), _ASK, *[turn for step in reversed(steps) for turn in step], "All are paid."),
        ),
    )


@family(
    "finance",
    "I want to send money to {firm}.",
    "Please make a payment to {firm}.",
    "{firm} has to be paid.",
    "Start a transfer to {firm} for me.",
)
def ask_amount(draw: WideDraw) -> Piece:
    account, payee, amount = draw.main(), draw.payee(), draw.amount()
    look, money = call("search_payees", name=payee.name), _transfer(account, payee.payee_id, amount)
    return Piece(
        {"firm": payee.name},
        Goal(**draw.pays(account, payee.payee_id, amount), tells=(amount,)),
        ("How much is it?", call("list_accounts"), look, *money, "Done.", f"It was {amount}."),
        facts=(fact("amount", "much amount sum euro eur", f"{_plain(amount)} EUR."),),
        confirms=True,
        checks=("How much was sent?",),
        routes=((look, call("list_accounts"), "What amount do you want to send?", *money, f"{amount} are sent.", f"{amount}."),),
    )


@family(
    "finance",
    "How much is {amount} {currency} in {currency2}?",
    "Convert {amount} {currency} to {currency2} for me.",
    "What do I get in {currency2} for {amount} {currency}?",
    "Tell me how many {currency2} {amount} {currency} are.",
)
def how_much_in(draw: WideDraw) -> Piece:
    draw.main()
    source, target = draw.random.sample(tuple(RATES), 2)
    amount = draw.amount()
    value = converted(amount, source, target)
    return Piece(
        {"amount": _plain(amount), "currency": source, "currency2": target},
        Goal(tells=(value,)),
        (call("convert_currency", amount=amount, from_currency=source, to_currency=target), f"That is {value}."),
        wants_answer=True,
        routes=((call("get_exchange_rate", from_currency=source, to_currency=target), f"You get {value}."),),
    )


@family(
    "finance",
    "Set the transfer limit of {account} to {limit} EUR.",
    "My limit for transfers from {account} should be {limit} EUR.",
    "Change the limit of the account {account} to {limit} EUR.",
    "I want a transfer limit of {limit} EUR on {account}.",
)
def set_limit(draw: WideDraw) -> Piece:
    draw.main()
    row, limit = draw.account(), float(500 + 50 * draw.below(25))
    change = call("set_transfer_limit", account_id=row.account_id, limit=limit)
    return Piece(
        {"account": row.name, "limit": _plain(limit)},
        Goal(changes=(("accounts", row.account_id, {"transfer_limit": limit}),)),
        (call("list_accounts"), change, "Done."),
        routes=((call("list_accounts"), "Shall I go ahead?", change, "The limit is set."),),
    )
