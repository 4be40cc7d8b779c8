"""The raw forms in which an authorisation is written, one `Form` each, and that of a login.

Hand-formatted, because every character is known to need no escape and this is the generator's hottest path.
"""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from lozenge_deploy.demo.feed.population import Card, Merchant

ISO_CHANNELS = {"pos": "051", "ecom": "812", "atm": "021", "recurring": "102"}
"""DE 22: chip read, electronic commerce, magnetic stripe (cash machines), credential on file."""


class Authorisation(NamedTuple):
    """One authorisation before it is written; `at` in microseconds since 1970, `minor` in minor units.

    `device` is that of an online payment, `place` where the card was: degrees north and east. Only JSON has them.
    """

    number: int
    at: int
    card: Card
    merchant: Merchant
    terminal: str
    minor: int
    approved: bool = True
    device: str = ""
    place: tuple[float, float] | None = None

    @property
    def txn_id(self) -> str:
        """The source's own transaction id: twelve characters, as a retrieval reference number has."""
        return f"{self.number:012x}"


class Login(NamedTuple):
    """Somebody tries to get into the account of a card, from a device in its country; `at` as that of a payment."""

    number: int
    at: int
    card: Card
    device: str
    succeeds: bool = True


class Form(NamedTuple):
    """How a raw topic writes an authorisation, and the fields that a malformed one breaks; `topic` has no prefix."""

    topic: str
    write: Callable[[Authorisation, datetime], bytes]
    card: str
    merchant: str
    amount: str
    time: str
    impossible_time: str


def _json(auth: Authorisation, when: datetime) -> bytes:
    merchant = auth.merchant
    category = merchant.category
    country = merchant.country
    time = when.isoformat(timespec="microseconds")[:-6]  # without +00:00
    amount = f"{auth.minor // 100}.{auth.minor % 100:02d}" if country.decimals else str(auth.minor)
    more = f',"device":"{auth.device}"' if auth.device else ""
    if auth.place is not None:
        more += f',"lat":{auth.place[0]},"lon":{auth.place[1]}'
    return (
        f'{{"txn_id":"{auth.number:012x}","ts":"{time}Z","pan":"{auth.card.pan}","account":"{auth.card.account}",'
        f'"merchant":"{merchant.id}","terminal":"{auth.terminal}","mcc":"{category.mcc}",'
        f'"country":"{country.code}","amount":"{amount}","currency":"{country.currency}",'
        f'"channel":"{category.channel}","result":"{"approved" if auth.approved else "declined"}"{more}}}'
    ).encode()


def _iso(auth: Authorisation, when: datetime) -> bytes:
    merchant = auth.merchant
    country = merchant.country
    return (
        f'{{"mti":"0100","de2":"{auth.card.pan}","de4":"{auth.minor:012d}","de7":"{when:%m%d%H%M%S}",'
        f'"de11":"{auth.number % 1_000_000:06d}","de18":"{merchant.category.mcc}","de19":"{country.number}",'
        f'"de22":"{ISO_CHANNELS[merchant.category.channel]}","de37":"{auth.number:012x}",'
        f'"de39":"{"00" if auth.approved else "05"}","de41":"{auth.terminal}","de42":"{merchant.id}",'
        f'"de49":"{country.currency_number}"}}'
    ).encode()


def login_json(login: Login, when: datetime) -> bytes:
    """A record of the login service."""
    time = when.isoformat(timespec="microseconds")[:-6]
    outcome = "SUCCESS" if login.succeeds else "FAILURE"
    return (
        f'{{"id":"{login.number:012x}","time":"{time}Z","event":"login","outcome":"{outcome}",'
        f'"method":"password","user":{{"account":"{login.card.account}"}},'
        f'"client":{{"type":"web","device":"{login.device}","country":"{login.card.home.code}"}}}}'
    ).encode()


STREAM, RAW_JSON, RAW_ISO = "auth", "AUTH-JSON", "AUTH-ISO"
"""The stream of payments, and its raw topics without the platform's prefix."""
LOGINS, RAW_LOGIN = "login", "LOGIN-JSON"
"""The stream of logins, and its raw topic."""
JSON = Form(RAW_JSON, _json, "pan", "merchant", "amount", "ts", "2026-02-31T12:00:00.000000Z")
ISO = Form(RAW_ISO, _iso, "de2", "de42", "de4", "de7", "0231120000")
FORMS = {"json": JSON, "iso": ISO}
