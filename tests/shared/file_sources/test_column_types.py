import json

import pyarrow as pa
import pytest

from lozenge.file_sources.column_types import is_arrow_type, is_avro_type


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.null(), pa.bool_(), pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()),
        *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary(4)),
        *(pa.decimal32(5, 2), pa.decimal128(18, 2), pa.decimal256(40, -2)),
        *(pa.date32(), pa.date64(), pa.time32("ms"), pa.time64("us"), pa.duration("s")),
        *(pa.timestamp("ns"), pa.timestamp("us", tz="UTC"), pa.timestamp("ms", tz="+01:00")),
        *(
            pa.list_(pa.field("element", pa.int32(), nullable=False)),
            pa.large_list(pa.string()),
            pa.list_(pa.int8(), 3),
        ),
        *(
            pa.struct([("a >b", pa.int32()), ("x", pa.list_(pa.string()))]),
            pa.struct([]),
            pa.map_(pa.string(), pa.int64()),
        ),
        *(pa.dictionary(pa.int32(), pa.string()), pa.month_day_nano_interval(), pa.uuid()),
    ],
    ids=str,
)
def test_what_arrow_writes_is_a_type(kind: pa.DataType) -> None:
    assert is_arrow_type(str(kind))


@pytest.mark.parametrize(
    "text", ["", "decimal(18", "decimal128(18", "decimal128(18,2)", "int", "text", "timestamp", "list<int32", " string"]
)
def test_what_arrow_never_writes_is_no_type(text: str) -> None:
    assert not is_arrow_type(text)


@pytest.mark.parametrize(
    ("text", "is_type"),
    [
        ("long", True),
        ("com.bank.Currency", True),
        (json.dumps({"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}), True),
        ('["null", "string"]', True),
        ("decimal(18", False),
        ('["null", ', False),
        ("12", False),
        ("", False),
    ],
)
def test_a_type_of_avro_is_a_name_or_json(text: str, is_type: bool) -> None:
    assert is_avro_type(text) is is_type
