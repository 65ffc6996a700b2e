"""The tools of the bank: accounts, payees, transfers in two steps, limits, cards, currencies."""

from __future__ import annotations

import re
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from dynsteer_gym.envs.sandbox.state import Account, Device, Payee, Transfer, row_of
from dynsteer_gym.envs.sandbox.tooling import Id, Name, ToolError
from dynsteer_gym.envs.sandbox.tools.organiser import Page, cut
from dynsteer_gym.envs.sandbox.tools.phone import matching, needed
from dynsteer_gym.events import ErrorKind

__all__ = ["FUNCTIONS", "RATES", "converted"]

RATES = {"EUR": 1.0, "USD": 1.25, "GBP": 0.8, "JPY": 160.0, "CHF": 0.96, "SEK": 11.2}
"""How much of each currency one euro buys, in this world."""


def _iban(text: str) -> str:
    plain = re.sub(r"\s", "", text).upper()
    if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{8,28}", plain):
        raise ValueError("an IBAN such as DE44500105175407324931 is expected")
    return plain


Amount = Annotated[float, Field(gt=0, le=1_000_000)]
Iban = Annotated[str, Field(max_length=60), AfterValidator(_iban)]
Currency = Literal["EUR", "USD", "GBP", "JPY", "CHF", "SEK"]


def converted(amount: float, source: str, target: str) -> float:
    """An amount in another currency, to two decimals."""
    return round(amount / RATES[source] * RATES[target], 2)


def list_accounts(device: Device) -> list[Account]:
    """List the user's own accounts at the bank: name, currency, balance, transfer limit, and whether the card is frozen."""
    return [row_of(row) for row in device.state.accounts]  # type: ignore[misc]


def get_account(device: Device, account_id: Id) -> Account:
    """Get one of the user's own accounts with its balance.

    Args:
        account_id: Id of the account.
    """
    return row_of(needed(device, "accounts", account_id, "account"))  # type: ignore[return-value]


def search_payees(device: Device, name: Name | None = None) -> list[Payee]:
    """Search the payees to whom money can be sent by name.

    Args:
        name: Name or part of a name.
    """
    return matching(device.state.payees, name=name)  # type: ignore[return-value]


def add_payee(device: Device, name: Name, iban: Iban) -> Payee:
    """Add a new payee to whom money can be sent.

    Args:
        name: Name of the payee.
        iban: IBAN of the payee's account.
    """
    return row_of(device.insert("payees", "p", name=name, iban=iban))  # type: ignore[return-value]


def delete_payee(device: Device, payee_id: Id) -> bool:
    """Delete a payee. This cannot be undone.

    Args:
        payee_id: Id of the payee.
    """
    device.remove("payees", needed(device, "payees", payee_id, "payee"))
    return True


def prepare_transfer(device: Device, account_id: Id, payee_id: Id, amount: Amount) -> Transfer:
    """Prepare a transfer of money to a payee. Nothing is sent before it is confirmed.

    Args:
        account_id: Id of the account to pay from.
        payee_id: Id of the payee.
        amount: Amount in the account's currency.
    """
    account = needed(device, "accounts", account_id, "account")
    needed(device, "payees", payee_id, "payee")
    amount = round(amount, 2)
    if amount > account.transfer_limit:
        raise ToolError(ErrorKind.PRECONDITION, f"The amount is over the account's transfer limit of {account.transfer_limit}.")
    if amount > account.balance:
        raise ToolError(ErrorKind.PRECONDITION, f"The amount is over the account's balance of {account.balance}.")
    row = device.insert(
        "transfers", "t", account_id=account_id, payee_id=payee_id, amount=amount, status="draft", time=device.state.now
    )
    return row_of(row)  # type: ignore[return-value]


def _draft(device: Device, transfer_id: str) -> Transfer:
    row = needed(device, "transfers", transfer_id, "transfer")
    if row.status != "draft":
        raise ToolError(ErrorKind.PRECONDITION, f"The transfer is {row.status}; only a prepared one can be changed.")
    return row


def confirm_transfer(device: Device, transfer_id: Id) -> Transfer:
    """Confirm a prepared transfer: the money is sent. Ask the user before. This cannot be undone.

    Args:
        transfer_id: Id of the prepared transfer.
    """
    row = _draft(device, transfer_id)
    account = needed(device, "accounts", row.account_id, "account")
    if row.amount > account.balance:
        raise ToolError(ErrorKind.PRECONDITION, f"The amount is over the account's balance of {account.balance}.")
    device.change("accounts", account, balance=round(account.balance - row.amount, 2))
    return row_of(device.change("transfers", row, status="sent"))  # type: ignore[return-value]


def cancel_transfer(device: Device, transfer_id: Id) -> Transfer:
    """Cancel a prepared transfer that has not been sent.

    Args:
        transfer_id: Id of the prepared transfer.
    """
    return row_of(device.change("transfers", _draft(device, transfer_id), status="cancelled"))  # type: ignore[return-value]


class TransferPage(NamedTuple):
    """For the return schema of ``list_transfers``."""

    transfers: list[Transfer]
    page: int
    pages: int


def list_transfers(device: Device, payee_id: Id | None = None, page: Page = 1) -> TransferPage:
    """List transfers page by page, the latest first, ten a page.

    Args:
        payee_id: Id of a payee, to list the transfers to that payee only.
        page: Number of the page.
    """
    rows = [row for row in device.state.transfers if payee_id is None or row.payee_id == payee_id]
    rows.sort(key=lambda row: (row.time, row.transfer_id), reverse=True)
    return cut([row_of(row) for row in rows], page, "transfers")  # type: ignore[return-value]


def set_transfer_limit(device: Device, account_id: Id, limit: Amount) -> Account:
    """Set the transfer limit of an account.

    Args:
        account_id: Id of the account.
        limit: New limit in the account's currency.
    """
    row = needed(device, "accounts", account_id, "account")
    return row_of(device.change("accounts", row, transfer_limit=round(limit, 2)))  # type: ignore[return-value]


def move_money(device: Device, from_account_id: Id, to_account_id: Id, amount: Amount) -> bool:
    """Move money between two of the user's own accounts of the same currency.

    Args:
        from_account_id: Id of the account to take from.
        to_account_id: Id of the account to put into.
        amount: Amount in the accounts' currency.
    """
    source = needed(device, "accounts", from_account_id, "account")
    target = needed(device, "accounts", to_account_id, "account")
    amount = round(amount, 2)
    if source is target or source.currency != target.currency:
        raise ToolError(ErrorKind.PRECONDITION, "Two different accounts of the same currency are needed.")
    if amount > source.balance:
        raise ToolError(ErrorKind.PRECONDITION, f"The amount is over the account's balance of {source.balance}.")
    device.change("accounts", source, balance=round(source.balance - amount, 2))
    device.change("accounts", target, balance=round(target.balance + amount, 2))
    return True


def freeze_card(device: Device, account_id: Id) -> Account:
    """Freeze the card of an account.

    Args:
        account_id: Id of the account.
    """
    return row_of(device.change("accounts", needed(device, "accounts", account_id, "account"), card_frozen=True))  # type: ignore[return-value]


def unfreeze_card(device: Device, account_id: Id) -> Account:
    """Unfreeze the card of an account.

    Args:
        account_id: Id of the account.
    """
    return row_of(device.change("accounts", needed(device, "accounts", account_id, "account"), card_frozen=False))  # type: ignore[return-value]


def convert_currency(device: Device, amount: Amount, from_currency: Currency, to_currency: Currency) -> float:
    """Convert an amount of money from one currency to another.

    Args:
        amount: Amount in the first currency.
        from_currency: Code of the first currency.
        to_currency: Code of the second currency.
    """
    return converted(amount, from_currency, to_currency)


def get_exchange_rate(device: Device, from_currency: Currency, to_currency: Currency) -> float:
    """Get the exchange rate between two currencies: how much of the second one unit of the first buys.

    Args:
        from_currency: Code of the first currency.
        to_currency: Code of the second currency.
    """
    return round(RATES[to_currency] / RATES[from_currency], 6)


FUNCTIONS = (
    list_accounts,
    get_account,
    search_payees,
    add_payee,
    delete_payee,
    prepare_transfer,
    confirm_transfer,
    cancel_transfer,
    list_transfers,
    set_transfer_limit,
    move_money,
    freeze_card,
    unfreeze_card,
    convert_currency,
    get_exchange_rate,
)
"""These tools, in order."""
