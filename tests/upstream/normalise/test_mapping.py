"""A mapping is data: every problem of every file is reported at once, and a further format needs no code."""

import shutil
from pathlib import Path

import pytest

from lozenge.contracts.money import MINOR_DIGITS
from lozenge.errors import ConfigError
from lozenge_upstream.normalise import countries
from lozenge_upstream.normalise import mapping_files as mapping
from lozenge_upstream.settings import DEMO_TOKEN_KEY, UpstreamSettings
from tests.streams import AUTH, AUTH_MAPPINGS

NESTED = """
source = "wallet"
topic = "WALLET"
keyed_by = ""

[fields]
event_time = { transform = "timestamp_iso", path = "meta.at", offset_default = "+01:00" }
card_id = { transform = "token", path = "card.number" }
merchant_id = { transform = "text", path = "shop" }
terminal_id = { transform = "constant", value = "wallet" }
mcc = { transform = "constant", value = "4829" }
country = { transform = "constant", value = "SE" }
amount = { transform = "decimal", path = "sum.value" }
currency = { transform = "currency", path = "sum.currency", code = "alpha" }
channel = { transform = "constant", value = "ecom" }
auth_result = { transform = "constant", value = "approved" }
"""


DEVICE = {
    "name": "device",
    "type": ["null", {"type": "record", "name": "Device", "fields": [
        {"name": "os", "type": "string"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["phone", "desk"]}},
    ]}],
    "default": None,
}  # fmt: skip


def test_the_packaged_mappings_are_valid() -> None:
    assert {m.source: m.topic for m in mapping.load(AUTH_MAPPINGS, AUTH)} == {
        "auth_json": "AUTH-JSON",
        "auth_iso8583": "AUTH-ISO",
    }


def test_a_file_in_the_folder_adds_a_format(tmp_path: Path) -> None:
    (tmp_path / "wallet.toml").write_text(NESTED)
    (tmp_path / "notes.txt").write_text("not a mapping")
    wallet = {m.source: m for m in mapping.load(tmp_path, AUTH)}["wallet"]
    assert wallet.keyed_by == ""
    assert wallet.paths == ["card.number", "meta.at", "shop", "sum.currency", "sum.value"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('path = "shop"', 'path = "card.number"', "merchant_id would copy the card number card.number"),
        ('path = "shop"', 'path = "card"', "fields.merchant_id: card cannot be a value and hold further fields"),
        ('path = "shop"', 'path = ""', "fields.merchant_id.path: '' is no path"),
        ('"text", path', '"shout", path', "there is no transform 'shout'; there are 'text', 'join'"),
        ('"token"', '"text"', "card_id"),
        ('value = "ecom"', 'value = "pigeon"', "fields.channel: pigeon is none of its values"),
        ('value = "SE"', 'value = "Sweden"', "fields.country: Sweden is none of its values"),
        ('keyed_by = ""', "", "keyed_by: it is missing"),
        ('keyed_by = ""', 'keyed_by = "wallet"', "keyed_by: the stream has no key wallet; it has card, terminal"),
        ('"+01:00"', '"Europe/Berlin"', "offset_default"),
        ('source = "wallet"', 'source = "auth_json"', "the source auth_json is declared by an earlier file"),
        *(
            ('topic = "WALLET"', f'topic = "{topic}"', f"topic: {topic} is a topic that the platform writes")
            for topic in ("pay.canonical.auth.v1", "lozenge.logs.v1", "pay.dlq.upstream.v1")
        ),
        ('topic = "WALLET"', 'topic = "AUTH-ISO"', "the topic AUTH-ISO is declared by an earlier file"),
        ('path = "shop"', 'path = "shop", pattern = "[[:alpha:]]+"', r"write \p{Alpha}"),
        *(
            (f'path = "{path}"', f"path = {new}", "is no path. Names of nested fields are joined by dots")
            for path, new in (
                ("shop", "'$.shop'"),
                ("shop", "'/shop'"),
                ("shop", "'shop[-1]'"),
                ("shop", "'shop[*]'"),
                ("shop", "'[0].shop'"),
                ("shop", "'shop.[0].id'"),
                ("shop", "'`shop`'"),
                ("shop", "'[\"shop\"]'"),
                ("card.number", r"'card\.number'"),
                ("sum.value", "'$[\"sum\"].value'"),
            )
        ),
        ('value = "4829"', 'value = "482"', "fields.mcc: 482 has not the form [0-9]{4}"),
        (
            '"constant", value = "4829"',
            '"lookup", path = "kind", table = { transfer = "4829", food = "groceries" }',
            "fields.mcc: groceries has not the form [0-9]{4}",
        ),
        (
            'path = "sum.value"',
            'path = "sum.value", sign = { path = "kind", plus = ["BUY", "VOID"], minus = ["VOID"] }',
            "VOID cannot be payments and reversals at once",
        ),
        ('"+01:00"', '"+19:00"', "offset_default"),
        ('"+01:00"', '"+01:60"', "offset_default"),
        ("[fields]", "[fields", "not TOML"),
        ('path = "shop"', 'path = "card[0].number"', "card cannot be a list and an object at once"),
        ('path = "meta.at", offset_default = "+01:00"', 'path = "at", zone = "Berlin"', "zone"),
        ('offset_default = "+01:00"', 'offset_default = "Z", zone = "Europe/Berlin"', "not both"),
        ('"text", path = "shop"', '"join", parts = [{ path = "shop" }, { path = "till" }]', "needs a separator"),
        (
            '"text", path = "shop"',
            '"join", separator = "-", parts = [{ path = "shop", value = "x" }]',
            "a path or a value",
        ),
        ('"token", path = "card.number"', '"token", path = "card.number", copied = true', "needs the pattern"),
        ('"token", path = "card.number"', '"token"', "a path or parts"),
        ('"token", path = "card.number"', '"token", path = "card.number", lower = true', "lower is for a token"),
        ('path = "sum.value"', 'path = "sum.value", decimal_mark = ",", thousands = ","', "thousands and decimals"),
        (
            "[fields]",
            '[[skip]]\nname = "probe"\nwhen = [{ path = "kind" }]\n[fields]',
            "one of values, other_than, pattern and blank",
        ),
        (
            "[fields]",
            '[[skip]]\nname = "a"\nwhen = [{ path = "k", blank = true }]\n' * 2 + "[fields]",
            "skip 2.name: a is declared twice",
        ),
    ],
)
def test_a_wrong_mapping_is_refused(old: str, new: str, problem: str, tmp_path: Path) -> None:
    assert old in NESTED
    shutil.copytree(AUTH_MAPPINGS, tmp_path, dirs_exist_ok=True)
    (tmp_path / "wallet.toml").write_text(NESTED.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        mapping.load(tmp_path, AUTH)
    assert problem in str(caught.value)


@pytest.mark.parametrize("name", ["$oid", '"$"', '"a[0]"', '"/shop"', "Errors?", "Use Chip", "größe"])
def test_any_name_can_be_a_path(tmp_path: Path, name: str) -> None:
    (tmp_path / "wallet.toml").write_text(NESTED.replace('path = "shop"', f"path = '{name}'"))
    assert name in {m.source: m for m in mapping.load(tmp_path, AUTH)}["wallet"].paths


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_a_mapping_may_begin_with_a_byte_order_mark(tmp_path: Path, line_end: bytes) -> None:
    (tmp_path / "wallet.toml").write_bytes(b"\xef\xbb\xbf" + NESTED.encode().replace(b"\n", line_end))
    assert "wallet" in {m.source for m in mapping.load(tmp_path, AUTH)}


def test_a_mapping_in_another_encoding_is_named_with_its_line_like_every_other_problem(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(f"{NESTED}# é\n".encode("latin-1"))
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(ConfigError) as caught:
        mapping.load(tmp_path, AUTH)
    line = len(NESTED.splitlines()) + 1
    assert f"latin.toml: not UTF-8: line {line} has the byte 0xe9" in str(caught.value)
    assert "folder.toml: Is a directory" in str(caught.value)


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(NESTED.replace("token", "text").replace("wallet", "one", 1))
    (tmp_path / "two.toml").write_text("source = 5")
    with pytest.raises(ConfigError) as caught:
        mapping.load(tmp_path, AUTH)
    text = str(caught.value)
    assert "mappings/one.toml line 8: fields.card_id: text does not make it; token does" in text
    assert "mappings/two.toml line 1: source: " in text
    assert "mappings/two.toml: fields: it is missing" in text


SEVERAL = """\
source = "wallet"
topic = "lozenge.logs.v1"
keyed_by = "wallet"
stream = "auth"

[fields]
event_time = { transform = "timestamp_iso", path = "meta.at", offset_default = "+19:00" }
card_id = { transform = "token", path = "card.number" }
merchant_id = { transform = "text", path = "card.number" }
terminal_id = { transform = "shout", value = "wallet" }
mcc = { transform = "constant", value = "482" }
country = { transform = "constant", value = "Sweden", size = 2 }
amount = { transform = "decimal", path = "sum.value" }
currency = { transform = "currency", path = "sum.currency" }
channel = { transform = "case", default = "pigeon", of = [
    { value = "pos", when = [{ path = "a", values = ["1"] }] },
    { value = "ecom", when = [{ path = "a" }] },
] }
colour = { transform = "constant", value = "red" }

[[skip]]
name = "Probe"
when = [{ path = "kind", blank = true }]

[[skip]]
name = "test"
when = [{ path = "sum", values = ["x"] }]

[[skip]]
name = "test"
when = [{ path = "kind", values = ["x"] }]
"""


def test_a_problem_of_form_hides_none_of_meaning_and_each_has_its_line(tmp_path: Path) -> None:
    (tmp_path / "wallet.toml").write_text(SEVERAL)
    with pytest.raises(ConfigError) as caught:
        mapping.load(tmp_path, AUTH)
    found = [problem.removeprefix("mappings/wallet.toml") for problem in caught.value.problems]
    assert [": ".join(problem.split(": ")[:2]) for problem in found] == [
        " line 2: topic",
        " line 3: keyed_by",
        " line 4: stream",
        " line 6: fields.auth_result",
        " line 7: fields.event_time.offset_default",
        " line 9: fields.merchant_id",
        " line 10: fields.terminal_id",
        " line 11: fields.mcc",
        " line 12: fields.country.size",
        " line 14: fields.currency.code",
        " line 17: fields.channel.of 2.when 1",
        " line 19: fields.colour",
        " line 22: skip 1.name",
        " line 27: skip 2.when 1",
        " line 30: skip 3.name",
    ], "no field is missing that is only wrong, and the amount has its currency"


def test_a_wrong_part_of_a_record_hides_none_of_the_other_parts(tmp_path: Path) -> None:
    stream = AUTH.model_copy(update={"avro": {**AUTH.avro, "fields": [*AUTH.avro["fields"], DEVICE]}})
    device = """
[fields.device]
transform = "record"
fields.os = { transform = "text", path = "" }
fields.kind = { transform = "constant", value = "car" }
fields.ram = { transform = "number", path = "ram" }
"""
    (tmp_path / "wallet.toml").write_text(NESTED + device)
    with pytest.raises(ConfigError) as caught:
        mapping.load(tmp_path, stream)
    places = [problem.split(": ")[1] for problem in caught.value.problems]
    assert places == [f"fields.device.fields.{place}" for place in ("os.path", "kind", "ram")]


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        mapping.load(tmp_path / "nowhere", AUTH)


def test_a_copied_mapping_needs_another_name(tmp_path: Path) -> None:
    shutil.copy(AUTH_MAPPINGS / "auth_json.toml", tmp_path / "auth_json.toml")
    shutil.copy(AUTH_MAPPINGS / "auth_json.toml", tmp_path / "mine.toml")
    with pytest.raises(ConfigError, match="the source auth_json is declared by an earlier file"):
        mapping.load(tmp_path, AUTH)


def test_the_tables_of_currencies_and_countries_are_complete() -> None:
    assert len(countries.ALPHABETIC) == 249
    assert countries.ALPHABETIC["276"] == "DE"
    assert len(MINOR_DIGITS) == 170


def test_settings_name_every_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOZENGE_UPSTREAM_TOKEN_KEY", "secret")
    monkeypatch.setenv("LOZENGE_UPSTREAM_REKEYS", "terminal")
    monkeypatch.setenv("LOZENGE_UPSTREAM_MAX_OFFSETS", "0")
    with pytest.raises(ConfigError) as caught:
        UpstreamSettings.load()
    text = str(caught.value)
    for name in ("TOKEN_KEY", "REKEYS", "MAX_OFFSETS"):
        assert f"LOZENGE_UPSTREAM_{name}: " in text
    assert "'secret'" not in text


def test_the_demo_key_is_known_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOZENGE_UPSTREAM_TOKEN_KEY", raising=False)
    assert UpstreamSettings.load().is_demo_key
    monkeypatch.setenv("LOZENGE_UPSTREAM_TOKEN_KEY", "k" * 32)
    settings = UpstreamSettings.load()
    assert not settings.is_demo_key
    assert DEMO_TOKEN_KEY not in repr(settings)
    assert "k" * 32 not in repr(settings)
