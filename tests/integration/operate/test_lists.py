"""Reference lists by the command: changed as a whole or not at all, and each change is in the audit log."""

import json
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from lozenge.contracts.topics import reference_list
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import retained
from lozenge_deploy.operations.lists import changes, edit
from lozenge_deploy.operations.lists.entry_texts import from_values
from tests.deploy.command import invoke
from tests.deploy.operations.lists.test_changes import entries
from tests.deploy.operations.lists.test_entry_texts import GIVEN, PAN

pytestmark = pytest.mark.integration

Called = Callable[..., Any]


@pytest.fixture
def name() -> str:
    return f"cards_{uuid.uuid4().hex[:8]}"


@pytest.fixture
def called(kafka: KafkaSettings, tmp_path: Path) -> Called:
    """What a command answers as JSON; its refusal if it fails."""

    def call(*arguments: str) -> Any:
        run = invoke("list", *arguments, "-o", "json", cwd=tmp_path, **kafka.variables)
        return json.loads(run.stdout) if run.returncode == 0 else (run.returncode, run.stderr)

    return call


def audited(kafka: KafkaSettings, name: str) -> list[tuple[str, str, str, str]]:
    """Action, value, reason before and reason after of each change of the list."""
    topic = kafka.topics.control.audit.name
    records = [json.loads(message.value() or b"") for message in retained(kafka, topic, 1)]
    found = [record for record in records if record["target"].startswith(f"{name}: ")]
    assert all(record["by"] and record["host"] and record["at"] for record in found)

    def reason(entry: dict[str, str] | None) -> str:
        return entry["reason"] if entry else ""

    return [
        (r["action"], r["target"].partition(": ")[2], reason(r["detail"]["before"]), reason(r["detail"]["after"]))
        for r in found
    ]


def test_entries_are_added_changed_removed_and_listed_and_every_change_is_audited(
    kafka: KafkaSettings, name: str, called: Called
) -> None:
    code, refusal = called("add", name, "card_1", "--reason", "stolen")
    assert (code, "--new` creates it" in refusal) == (2, True)
    [made] = called("add", name, "card_1", "card_2", "--reason", "stolen", "--author", "ann", "--new")
    assert (made["done"], [row["change"] for row in made["changes"]]) == (True, ["added", "added"])
    [again] = called("add", name, "card_1", "--reason", "stolen")
    assert (again["kept"], again["changes"]) == (2, [])
    called("add", name, "card_1", "--reason", "lost", "--expires", "30d")
    called("remove", name, "card_2", "--reason", "found again")
    [row] = called("ls", name)
    assert (row["value"], row["reason"], row["expired"]) == ("card_1", "lost", False)
    assert row["expires_at"] > row["added_at"]
    assert audited(kafka, name) == [
        ("list entry added", "card_1", "", "stolen"),
        ("list entry added", "card_2", "", "stolen"),
        ("list entry changed", "card_1", "stolen", "lost"),
        ("list entry removed", "card_2", "stolen", ""),
    ]
    [summary] = [row for row in called("ls") if row["list"] == name]
    assert (summary["entries"], summary["expired"], summary["used_by"]) == (1, 0, [])


def test_what_is_refused_or_only_shown_leaves_the_list_as_it_was(
    kafka: KafkaSettings, name: str, called: Called, tmp_path: Path
) -> None:
    called("add", name, "card_1", "card_2", "--reason", "stolen", "--new")
    before = called("ls", name), audited(kafka, name)
    bad = tmp_path / "bad.csv"
    bad.write_text(f"value,reason\ncard_3,lost\n{PAN},lost\ncard_3,\n")
    code, refusal = called("import", name, str(bad), "--replace", "--yes")
    assert (code, "3 problem(s)" in refusal, PAN in refusal) == (2, True, False)
    assert called("remove", name, "card_1", "card_9")[0] == 2
    assert called("add", name, "card_4", "--reason", "lost", "--expires", "yesterday")[0] == 2
    assert called("add", "Bad-Name", "card_4", "--reason", "lost", "--new")[0] == 2
    good = tmp_path / "good.csv"
    good.write_text("value,reason\ncard_2,stolen\ncard_3,lost\n")
    for shown in (
        called("import", name, str(good), "--replace"),
        called("import", name, str(good), "--replace", "--yes", "--dry-run"),
    ):
        [plan] = shown
        assert (plan["done"], plan["kept"]) == (False, 1)
        assert [(row["change"], row["value"]) for row in plan["changes"]] == [
            ("removed", "card_1"),
            ("added", "card_3"),
        ]
    assert called("remove", name, "card_1", "--dry-run")[0]["done"] is False
    assert (called("ls", name), audited(kafka, name)) == before
    missing = f"{name}_other"
    assert called("add", missing, "card_1", "--reason", "x", "--new", "--dry-run")[0]["done"] is False
    assert reference_list(kafka.topics, missing).name not in partitions(kafka)


def test_an_import_adds_and_a_confirmed_replacement_makes_the_list_the_file(
    kafka: KafkaSettings, name: str, called: Called, tmp_path: Path
) -> None:
    called("add", name, "card_1", "--reason", "stolen", "--new")
    file = tmp_path / "cards.csv"
    file.write_text("value,reason\ncard_2,lost\n")
    assert called("import", name, str(file))[0]["kept"] == 1
    assert [row["value"] for row in called("ls", name)] == ["card_1", "card_2"]
    run = invoke("list", "import", name, str(file), "--replace", cwd=tmp_path, **kafka.variables)
    assert f"list {name}: would be 0 added, 0 changed, 1 removed, 1 kept" in run.stdout
    assert "the same command with --yes makes these changes" in run.stderr
    called("import", name, str(file), "--replace", "--yes")
    assert [row["value"] for row in called("ls", name)] == ["card_2"]


def test_a_list_that_there_is_not_is_answered_with_what_to_do(name: str, called: Called, kafka: KafkaSettings) -> None:
    called("add", name, "card_1", "--reason", "stolen", "--new")
    code, refusal = called("ls", f"{name}s")
    assert code == 2
    assert f"near to it: {name}" in refusal
    assert f"`lozenge list add {name}s VALUE --reason TEXT --new` creates it" in refusal


def test_of_two_writers_at_once_the_later_one_wins_and_both_are_audited(kafka: KafkaSettings, name: str) -> None:
    edit.edit(kafka, name, lambda present: changes.additions(name, present, entries("card_0")), create=True)

    def change(number: int) -> None:
        wanted = entries("both", f"card_{number}", reason=f"by {number}")
        edit.edit(kafka, name, lambda present: changes.additions(name, present, wanted))

    with ThreadPoolExecutor(2) as writers:
        for done in [writers.submit(change, number) for number in (1, 2)]:
            done.result(60)
    found = edit.present(kafka, name)
    assert [*found] == ["both", "card_0", "card_1", "card_2"]
    of_both = [line for line in audited(kafka, name) if line[1] == "both"]
    first, last = of_both
    assert (first[0], last[0], last[2]) == ("list entry added", "list entry changed", first[3])
    assert {first[3], last[3]} == {"by 1", "by 2"}
    assert found["both"].reason == last[3]


def test_junk_in_the_topic_of_a_list_is_no_entry(kafka: KafkaSettings, name: str, called: Called) -> None:
    called("add", name, "card_1", "--reason", "stolen", "--new")
    producer = Producer(kafka.client())
    [other] = from_values(["card_2"], GIVEN).values()
    for key, value in ((b"card_1", b"{"), (b"x", other.encoded()), (b"\xff", b"\xff"), (PAN.encode(), b"[]")):
        producer.produce(reference_list(kafka.topics, name).name, value, key, 0)
    assert producer.flush(30) == 0
    assert [row["value"] for row in called("ls", name)] == ["card_1"]
