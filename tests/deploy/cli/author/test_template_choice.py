"""A new detector's first code is about the fields that its stream has, whatever they are."""

import ast
from pathlib import Path

import pytest

from lozenge.contracts.detector_kind import DetectorKind
from lozenge.streams.definition import StreamDefinition
from lozenge_deploy.cli.author.scaffold import TEMPLATES, contents
from lozenge_deploy.cli.author.template_choice import choose_template
from lozenge_deploy.releases.lint.folder import problems
from tests.alert_streams import LARGE
from tests.deploy.command import invoke
from tests.made_up_streams import SHAPES, key_of, written
from tests.streams import AUTH


@pytest.fixture
def streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, StreamDefinition]:
    folder = tmp_path / "streams"
    found = written(folder)
    monkeypatch.setenv("LOZENGE_STREAMS", str(folder))
    return {stream.name: stream for stream in found.definitions}


@pytest.mark.parametrize(
    ("stream", "kind", "folder", "field"),
    [
        ("sensors", "rule", "rule_number", "temperature"),
        ("sensors", "stateful", "stateful_change", "status"),
        ("doors", "rule", "rule_text", "badge"),
        ("doors", "stateful", "stateful_change", "badge"),
        ("beats", "rule", "rule_time", None),
        ("beats", "stateful", "stateful_repeat", None),
        ("meters", "rule", "rule_number", "level"),
        ("meters", "stateful", "stateful_repeat", None),
        ("meters", "aggregate", "aggregate", None),
    ],
)
def test_the_field_is_chosen_by_its_type(
    streams: dict[str, StreamDefinition], stream: str, kind: str, folder: str, field: str | None
) -> None:
    chosen = choose_template(kind, streams[stream], "")
    assert (chosen.folder, chosen.words.get("field")) == (folder, field)


@pytest.mark.parametrize(
    ("kind", "folder", "field"),
    [("rule", "rule_text", "severity"), ("stateful", "alerts", None), ("aggregate", "aggregate", None)],
)
def test_of_alerts_a_rule_looks_at_the_severity_and_a_fold_counts_them(
    kind: str, folder: str, field: str | None
) -> None:
    chosen = choose_template(kind, LARGE, "")
    assert (chosen.folder, chosen.words.get("field"), chosen.words["key"]) == (folder, field, "card")


def test_an_amount_with_a_currency_is_shown_as_money() -> None:
    chosen = choose_template("rule", AUTH, "")
    assert (chosen.folder, chosen.words["field"], chosen.words["currency"]) == ("rule_money", "amount", "currency")
    assert (chosen.words["limit"], chosen.words["above"]) == ("Decimal(500)", '"500.01"')


def test_a_limit_is_within_what_the_field_holds(streams: dict[str, StreamDefinition]) -> None:
    words = choose_template("rule", streams["meters"], "").words
    assert (words["limit"], words["at_limit"], words["above"]) == ('Decimal("99.98")', '"99.98"', '"99.99"')
    words = choose_template("rule", streams["sensors"], "").words
    assert (words["limit"], words["at_limit"]) == ("1085.0", "21.7")


@pytest.mark.parametrize("kind", list(DetectorKind))
@pytest.mark.parametrize("name", SHAPES)
def test_the_folder_of_a_new_detector_of_any_stream_is_complete(
    streams: dict[str, StreamDefinition], tmp_path: Path, name: str, kind: str
) -> None:
    (tmp_path / "detectors").mkdir()
    (tmp_path / "pyproject.toml").touch()
    key = key_of(streams[name])
    run = invoke("new", "spotter", "--stream", name, "--key", key, "--kind", kind, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    folder = tmp_path / "detectors" / "spotter"
    assert problems(folder) == []
    for file in folder.glob("*.py"):
        ast.parse(file.read_text("utf-8"))
        assert max(map(len, file.read_text("utf-8").splitlines())) <= 120


def test_every_template_is_chosen_for_some_stream(streams: dict[str, StreamDefinition], tmp_path: Path) -> None:
    of = [AUTH, LARGE, *streams.values()]
    chosen = {choose_template(kind, stream, "").folder for stream in of for kind in DetectorKind}
    assert chosen == {folder.name for folder in TEMPLATES.iterdir()} - {"common", "merged"}
    assert contents(tmp_path, "spotter", "rule", "you", streams["beats"])
