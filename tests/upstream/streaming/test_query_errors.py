"""An error of Spark becomes one sentence: its full text contains the plan."""

import pytest

from lozenge.errors import BrokerUnavailable, LozengeError
from lozenge_upstream.streaming.query_errors import failed, summary

OF_SPARK = """[STREAM_FAILED] Query [id = 1] terminated with exception
Caused by: org.apache.spark.SparkException: Job aborted
  at org.apache.spark.Somewhere
Caused by: java.lang.IllegalStateException: no space left
=== Streaming Query ===
Project [hmac(pan, the-token-key)]"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (OF_SPARK, "java.lang.IllegalStateException: no space left"),
        ("\n  one line \nProject [hmac(pan, the-token-key)]", "one line"),
        ("", "ValueError"),
        ("x" * 501, "x" * 500),
    ],
)
def test_a_summary_is_the_innermost_cause_or_the_first_line(text: str, sentence: str) -> None:
    assert summary(ValueError(text)) == sentence


def test_a_failed_query_says_what_a_restart_does() -> None:
    error = failed(ValueError(OF_SPARK), "upstream")
    assert error.message == "normalising: the query failed: " + summary(ValueError(OF_SPARK))
    assert "last committed offsets" in error.hint
    assert "the-token-key" not in str(error)


@pytest.mark.parametrize(
    "cause",
    [
        "org.apache.kafka.clients.consumer.OffsetOutOfRangeException: Fetch position {offset=200} is out of range",
        "org.apache.spark.sql.kafka010.KafkaIllegalStateException: [KAFKA_DATA_LOSS.START_OFFSET_RESET] Kafka data",
        "java.lang.IllegalStateException: Some data may have been lost because they are not available in Kafka",
    ],
)
def test_records_that_are_gone_while_it_runs_lead_to_the_command_that_accepts_the_loss(cause: str) -> None:
    error = failed(
        ValueError(f"[STREAM_FAILED] terminated\nCaused by: {cause}\n at org.apache.spark"), "upstream-login"
    )
    assert error.message == f"normalising: raw records to read next are gone: {cause}"
    assert "`lozenge offsets upstream-login` accepts the loss" in error.hint


def test_an_error_for_a_person_stays_as_it_is() -> None:
    error: LozengeError = BrokerUnavailable("writing: no broker", hint="check it")
    assert failed(error, "upstream") is error


def test_a_timestamp_that_spark_cannot_read_is_named_with_the_way_out() -> None:
    error = failed(
        ValueError(
            "[STREAM_FAILED] terminated\nCaused by: java.lang.ArithmeticException: long overflow\n at org.apache.spark"
        ),
        "upstream",
    )
    assert "counts in nanoseconds" in error.message
    assert "`lozenge offsets upstream" in error.hint
