"""Two mappings on the same raw records: only what differs is found, with its values as texts."""

import tomllib

from pyspark.sql import SparkSession

from lozenge_upstream.normalise.mapping_files import mapping_of
from lozenge_upstream.releases.compared_records import UNREAD, differences, names_of, outcome
from tests.streams import AUTH, AUTH_MAPPINGS
from tests.upstream.samples import JSON, KEY, Raw, flat, frame

CHANGED = mapping_of(
    tomllib.loads((AUTH_MAPPINGS / "auth_json.toml").read_text("utf-8"))
    | {"skip": [{"name": "probe", "when": [{"path": "channel", "values": ["probe"]}]}]},
    AUTH,
)
NAMES = names_of((JSON, CHANGED))


def test_only_records_of_which_something_else_becomes_are_found(upstream_spark: SparkSession) -> None:
    fields = CHANGED.fields | {"merchant_id": CHANGED.fields["terminal_id"]}
    changed = CHANGED.model_copy(update={"fields": fields})
    raws = [
        Raw(flat(txn_id="same", merchant="x-1"), offset=0),
        Raw(flat(txn_id="other"), offset=1),
        Raw(flat(txn_id="dead", merchant=None), offset=2),
        Raw(b"{", offset=3),
        Raw(flat(txn_id="skipped", merchant="x-1", channel="probe"), offset=4),
    ]
    found = differences(frame(upstream_spark, raws, JSON), JSON, changed, NAMES, KEY)
    assert [(each.offset, *map(outcome, each.reasons)) for each in found] == [
        (1, "event", "event"),
        (2, "dead letter", "event"),
        (4, outcome(found[2].reasons[0]), "skipped"),
    ]
    before, after = (dict(zip(NAMES, values or (), strict=True)) for values in found[0].values)
    assert {name for name in NAMES if before[name] != after[name]} == {"merchant_id"}
    assert (before["merchant_id"], after["merchant_id"]) == ("m-1", "x-1")
    assert found[1].values[0] is None


def test_what_no_mapping_reads_is_unread(upstream_spark: SparkSession) -> None:
    raw = frame(upstream_spark, [Raw(flat(), offset=7)], JSON)
    [gone] = differences(raw, JSON, None, NAMES, KEY)
    [new] = differences(raw, None, JSON, NAMES, KEY)
    assert (gone.offset, gone.reasons) == (7, (None, UNREAD))
    assert (new.offset, new.reasons) == (7, (UNREAD, None))
