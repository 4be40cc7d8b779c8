"""Errors of Spark and Kafka in one line: their full text contains the plan, and the plan the token key."""

from lozenge.errors import LozengeError, Retryable
from lozenge.spark.internals.errors import are_records_gone, is_timestamp_overflow


class UnreadableTimestamp(Retryable):
    """Spark's source cannot read the next raw records; Python can."""


def summary(error: Exception) -> str:
    """The innermost cause that the text of `error` names."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (causes or lines or [type(error).__name__])[-1 if causes else 0][:500]


def failed(error: Exception, app: str) -> LozengeError:
    """The error of a query of the normaliser `app`, for a person."""
    if isinstance(error, LozengeError):
        return error
    if is_timestamp_overflow(error):
        return UnreadableTimestamp(
            "normalising: a raw record has a Kafka timestamp that Spark cannot read: more than 9223372036854775 "
            "milliseconds, so its producer counts in nanoseconds",
            hint=f"nothing is lost. `lozenge peek TOPIC` shows time and offset, `lozenge offsets {app} --topic TOPIC "
            '--to "PARTITION:OFFSET"` resumes after it; set message.timestamp.after.max.ms on the topic',
        )
    if are_records_gone(error):
        return LozengeError(
            f"normalising: raw records to read next are gone: {summary(error)}",
            hint=f"the next start names their topic, partition and offsets; `lozenge offsets {app}` accepts the loss",
        )
    return LozengeError(
        f"normalising: the query failed: {summary(error)}", hint="a restart resumes at the last committed offsets"
    )
