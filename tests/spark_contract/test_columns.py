"""What PySpark sends to the JVM while it makes columns."""

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lozenge.spark.internals import python_api

MANY = [f"code {number}" for number in range(300)]
ODD = ["'", '"', "\\", "a,b", "é", "株🏧", " ", "\n", "$1", "null"]


@pytest.mark.parametrize(
    "words",
    [MANY, ODD, [*MANY, ""], [*MANY, "\x1f"], MANY[:2], []],
    ids=["many", "odd", "an empty one", "a separator within", "few", "none"],
)
def test_a_list_of_texts_has_just_these(spark: SparkSession, words: Sequence[str]) -> None:
    python_api.batch_isin_literals()
    asked = [*words, "another", "", "code", "\x1f", None]
    rows = spark.createDataFrame([(word,) for word in asked], "word string")
    given = (F.col("word").isin(list(words)), F.col("word").isin(set(words)), F.col("word").isin(*words))
    for row in rows.select("word", *given).collect():
        wanted = (None if words else False) if row.word is None else row.word in words
        assert tuple(row)[1:] == (wanted, wanted, wanted)


@pytest.mark.parametrize("numbers", [list(range(20)), [*map(str, range(20)), 20]])
def test_a_list_of_anything_else_is_that_of_spark(spark: SparkSession, numbers: list[object]) -> None:
    python_api.batch_isin_literals()
    [row] = spark.range(3, 4).select(F.col("id").isin(numbers)).collect()
    assert row[0]


def test_a_long_list_of_texts_takes_no_message_for_each(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    python_api.batch_isin_literals()
    column: Any = F.col("word")
    sent, client = list[str](), type(column._jc._gateway_client)
    send = client.send_command

    def counting(own: object, command: str, *arguments: object, **named: object) -> object:
        sent.append(command)
        return send(own, command, *arguments, **named)

    monkeypatch.setattr(client, "send_command", counting)
    column.isin(MANY)
    assert 0 < sum(not command.startswith("m") for command in sent) < 10
