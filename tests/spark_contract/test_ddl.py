"""The reader of DDL accepts what Spark's parser accepts, and reads the same types in it."""

import importlib
import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from lozenge import ddl
from lozenge.spark.internals import python_api

COLUMNS = (
    "mcc string, mcc_limit decimal(18,4)",
    "mcc string, mcc_limit decimal(18, 4)",
    "mcc string,mcc_limit decimal(18,4)",
    "MCC STRING",
    "a INT, a2 Integer, b BigInt, c long, d smallint, e SHORT, f tinyint, g byte",
    "a float, b real, c double, d boolean, e binary, f date, g timestamp, h timestamp_ntz, i timestamp_ltz",
    "a void, b variant, c time, d time(3), e interval",
    "f interval day to second, g interval year, h interval hour to minute",
    "a dec, b dec(5), c numeric(7,2), d decimal",
    "a decimal(38,38)",
    "`a b` string, `a``b` int, `größe` double",
    "`` int, `größe` int",
    "2a int, _ string, a_1 int",
    "a\tint,\n\tb\r\nstring",
    "a string COMMENT 'a, b', b int comment \"it's\"",
    "a string COMMENT 'it''s', b int comment 'it\\'s'",
    "a int not null, b string NOT NULL COMMENT 'x'",
    "a array<int>, b ARRAY<array<string>>, c map<string, decimal(5, 2)>",
    "a struct<b int, c string>, d struct<b: int, c: string>, e struct<>",
    "a struct<b: int NOT NULL COMMENT 'x', `c d`: map<string,int>>",
    "a int -- a remark\n, b string /* another */",
    "select int, from string, date date, null int, not int, comment string comment 'x'",
    "a int, a string",
    "decimal decimal(5, 2)",
)
NOT_COLUMNS = (
    "",
    " ",
    "a",
    "a,",
    ",",
    "a int,",
    "a int b string",
    "a decimall(18,4)",
    "a decimal(18,4",
    "a decimal(39,2)",
    "a decimal(5,6)",
    "a decimal(1,2,3)",
    "a decimal(-1,2)",
    "a decimal(x)",
    "a decimal()",
    "a string(5)",
    "a int(5)",
    "a str",
    "a text",
    "a number",
    "a varchar",
    "a char",
    "a object",
    "a uuid",
    "a-b int",
    "a.b int",
    "'a' int",
    "a int comment x",
    "a int comment",
    "a int not",
    "a int null",
    "mcc: string",
    "a array",
    "a array<>",
    "a array<int",
    "a map<int>",
    "a struct",
    "a struct<b>",
    "a interval second to day",
    "größe int",
    "2 int",
    "1e5 int",
    "2L int",
    "`a int",
    "a int;",
    "double",
    "struct<a:int>",
)
TYPES = (
    "a char(3), b varchar(5), c character(4)",
    "double",
    " Double ",
    "decimal(18, 4)",
    "array<string>",
    "map<string, array<int>>",
    "struct<a: int, b: string>",
    "a int, b string",
    "a: int, b: string",
    "a: int",
    "a: array<int>",
    "interval",
    "",
)
NO_TYPES = ("doubl", "int comment", "decimal(", "array<>", "a: b", "int int int", "a: int,", "double,")
OF_CSV = (
    "string",
    "int",
    "decimal(18,4)",
    "date",
    "timestamp",
    "double",
    "boolean",
    "binary",
    "interval day to second",
)
NOT_OF_CSV = ("array<int>", "map<string,int>", "struct<a:int>", "time(6)", "void", "interval", "char(3)", "varchar(3)")


def by_spark(text: str) -> Any:
    """What Spark reads in `text` without comments, None if it refuses it."""
    try:
        return json.loads(DataType.fromDDL(text).json(), object_hook=without_comment)
    except PySparkException:
        return None


def without_comment(values: dict[str, Any]) -> dict[str, Any]:
    return values | {"metadata": {}} if "metadata" in values else values


def by_reader(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except ddl.DdlError:
        return None


@pytest.fixture(scope="module")
def spark_columns(spark: SparkSession) -> Callable[[str], Any]:
    """The columns that Spark's reader of files takes from a text, None if it refuses it."""

    def read(text: str) -> Any:
        try:
            spark.read.schema(text)
        except PySparkException:
            return None
        return by_spark(text)

    return read


@pytest.mark.parametrize("text", COLUMNS)
def test_columns_are_read_as_spark_reads_them(spark_columns: Callable[[str], Any], text: str) -> None:
    assert by_reader(ddl._struct, text) == spark_columns(text) is not None


@pytest.mark.parametrize("text", NOT_COLUMNS)
def test_what_spark_refuses_is_refused(spark_columns: Callable[[str], Any], text: str) -> None:
    assert by_reader(ddl._struct, text) is spark_columns(text) is None


@pytest.mark.parametrize("text", [*TYPES, *NO_TYPES])
def test_a_declared_type_is_read_as_spark_reads_it(spark: SparkSession, text: str) -> None:
    read = by_spark(text)
    assert by_reader(ddl.data_type, text) == read
    assert (read is None) == (text in NO_TYPES)


@pytest.mark.parametrize("text", [text for text in TYPES if not re.search("char|interval", text)])
def test_a_function_declares_the_same_type_before_there_is_a_session(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(importlib.import_module("pyspark.sql.udf"), "_parse_datatype_string", None)
    python_api.read_types_without_session()
    with_session = F.udf(text)(str).returnType
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    assert F.udf(text)(str).returnType == with_session


def test_random_columns_are_read_as_spark_reads_them(spark_columns: Callable[[str], Any]) -> None:
    """Columns of the list above in parts: mostly not what anybody would write, and refused by both."""
    texts = (*COLUMNS, *NOT_COLUMNS)
    parts = sorted({part for text in texts for part in ddl._TOKEN.split(text) if part and part.strip()})
    source = random.Random(7)
    usual = [part for part in parts if "char" not in part.lower()] + [",", ",", "int", "string"]
    mixed = [" ".join(source.choices(usual, k=source.randint(2, 6))) for _ in range(600)]
    differ = [text for text in mixed if by_reader(ddl._struct, text) != spark_columns(text)]
    assert not differ, "; ".join(map(repr, differ))
    for text in mixed:  # the reader of columns also names what is there twice, and takes a colon
        fields = by_reader(ddl._fields, text)
        if fields is not None and len({field["name"] for field in fields}) == len(fields):
            assert ddl.columns(text) == {field["name"]: field["type"] for field in fields}
            assert ddl.not_null(text) == {field["name"] for field in fields if not field["nullable"]}
