"""The class of an event that an author's editor completes and mypy checks."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mypy import api

from lozenge import Alert, Settings, State, fold
from lozenge.streams.definition import StreamDefinition
from lozenge_deploy.cli.stream.event_class import module_text
from lozenge_deploy.releases.build import CHECKOUT
from tests.alert_streams import LARGE
from tests.deploy.command import invoke
from tests.merged_streams import BY_ACCOUNT
from tests.streams import AUTH, FOLDER

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
ITEM = {"type": "record", "name": "Item", "fields": [{"name": "price", "type": DECIMAL, "doc": 'Says """so"""\\n".'}]}
KINDS: dict[str, Any] = {
    "user": "string",
    "count": ["null", "long"],
    "ratio": "float",
    "ok": "boolean",
    "blob": "bytes",
    "day": {"type": "int", "logicalType": "date"},
    "mode": {"type": "enum", "name": "Mode", "symbols": ["idle", "busy"]},
    "items": {"type": "array", "items": ITEM},
    "scores": ["null", {"type": "map", "values": "double"}],
    "literal": {"type": "record", "name": "Literal", "fields": [{"name": "town", "type": ["null", "string"]}]},
}
ORDERS = StreamDefinition(
    name="orders",
    title="Orders",
    owner="shop",
    keys={"user": "user"},
    avro={
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [{"name": name, "type": kind, "default": None} for name, kind in KINDS.items()]
        + [{"name": "channel", "type": "string", "values": [f'channel "{n}"' for n in range(12)]}],
    },
)
USE = """
from datetime import datetime
from decimal import Decimal

from orders_event import Order


def use(event: Order) -> Decimal:
    when: datetime = event.event_time
    total = sum((item["price"] for item in event.items), Decimal(0))
    if event.count is not None and event.mode == "busy" and event.channel == 'channel "3"':
        total += event.count
    town: str | None = event.literal["town"]
    score: float = (event.scores or {}).get("a", event.ratio)
    return total
"""
MISUSES = {
    "event.usr": '"Order" has no attribute "usr"',
    'event.items[0]["prize"]': 'TypedDict "Item" has no key "prize"',
    "event.count + 1": 'Unsupported operand types for + ("None" and "int")',
    'event.mode == "off"': "Non-overlapping equality check",
    'setattr_ = event.user; event.user = "x"': 'Property "user" defined in "Order" is read-only',
}


def checked(folder: Path, text: str) -> str:
    (folder / "orders_event.py").write_text(module_text(ORDERS), "utf-8")
    (folder / "use.py").write_text(text, "utf-8")
    options = ["--strict", "--no-error-summary", "--no-incremental", "--config-file=", str(folder / "use.py")]
    return api.run([*options, str(folder / "orders_event.py")])[0]


def test_mypy_accepts_what_is_right_and_names_what_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", str(tmp_path))
    wrong = "".join(f"\n\ndef wrong_{n}(event: Order) -> None:\n    {use}\n" for n, use in enumerate(MISUSES))
    said = checked(tmp_path, USE + wrong).splitlines()
    first = len(USE.splitlines())
    assert not [line for line in said if int(line.split(":")[1]) <= first or "orders_event" in line], said
    for use, error in MISUSES.items():
        assert any(error in line for line in said), (use, said)


def test_the_module_runs_and_an_event_can_be_made_of_it() -> None:
    namespace: dict[str, Any] = {"__name__": "generated"}
    exec(compile(module_text(AUTH), "auth_event.py", "exec"), namespace)
    values = {field.name: field.example for field in AUTH.fields}
    event = namespace["Authorisation"](event_id="e", event_time=None, **values)
    assert (event.card_id, event.channel) == ("card-1", "pos")
    exec(compile(module_text(ORDERS), "orders_event.py", "exec"), {"__name__": "generated"})


def test_the_command_prints_the_module_or_writes_it(tmp_path: Path) -> None:
    printed = invoke("stream", "types", "auth", cwd=tmp_path, LOZENGE_STREAMS=str(FOLDER))
    assert (printed.returncode, printed.stdout) == (0, module_text(AUTH))
    file = tmp_path / "auth_event.py"
    assert (
        invoke("stream", "types", "auth", "--to", str(file), cwd=tmp_path, LOZENGE_STREAMS=str(FOLDER)).returncode == 0
    )
    assert file.read_text("utf-8") == module_text(AUTH)
    nowhere = invoke("stream", "types", "auth", "--to", "no/where.py", cwd=tmp_path, LOZENGE_STREAMS=str(FOLDER))
    assert (nowhere.returncode, "No such file or directory" in nowhere.stderr) == (2, True)
    assert (
        "there is no stream claims"
        in invoke("stream", "types", "claims", cwd=tmp_path, LOZENGE_STREAMS=str(FOLDER)).stderr
    )


def test_the_event_of_several_streams_has_the_fields_of_each(tmp_path: Path) -> None:
    text = module_text(BY_ACCOUNT)
    namespace: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, "merged.py", "exec"), namespace)
    found = namespace["Merged"].__annotations__
    assert (found["account_id"], found["device"], found["amount"]) == (
        str | None,
        namespace["Device"] | None,
        Decimal | None,
    )
    assert "`lozenge stream types auth sign_in --key account`" in text
    run = invoke("stream", "types", "auth", "auth", "--key", "card", cwd=tmp_path, LOZENGE_STREAMS=str(FOLDER))
    assert (run.returncode, "auth is named twice" in run.stderr) == (2, True)


def test_the_event_of_alerts_has_their_fields(tmp_path: Path) -> None:
    text = module_text(LARGE)
    namespace: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, "alert_event.py", "exec"), namespace)
    found = namespace["AlertEvent"].__annotations__
    assert (found["entity"], found["evidence"], found["values"]) == (str, list[str], dict[str, str])
    assert "`lozenge stream types --alerts-of large_amount`" in text
    run = invoke("stream", "types", "--alerts-of", "large_amount", cwd=CHECKOUT)
    assert (run.returncode, run.stdout) == (0, text)
    run = invoke("stream", "types", "--alerts-of", "nobody", "--to", str(tmp_path / "event.py"), cwd=CHECKOUT)
    assert (run.returncode, "has no detector nobody" in run.stderr) == (2, True)
    assert "card_velocity, " in run.stderr
    assert not (tmp_path / "event.py").exists()
    for both in ([], ["auth", "--alerts-of", "large_amount"]):
        run = invoke("stream", "types", *both, cwd=tmp_path, LOZENGE_STREAMS=str(FOLDER))
        assert (run.returncode, "name a stream, or a detector by --alerts-of" in run.stderr) == (2, True)


class Seen(State):
    """Nothing."""


class Payment(SimpleNamespace):
    """What such a class is to a type checker: not an `Event` of Lozenge's."""

    card_id: str


def step(seen: Seen, event: Payment, settings: Settings) -> Iterator[Alert]:
    yield Alert(event.card_id)


def test_a_fold_takes_a_step_whose_event_is_of_such_a_class() -> None:
    made = fold(None, by="card_id", state=Seen, step=step, expires=timedelta(1))  # type: ignore[arg-type]
    assert made.step is step
