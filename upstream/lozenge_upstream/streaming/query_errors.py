"""Errors of Spark and Kafka in one line: their full text contains the plan, and the plan the token key."""

from lozenge.errors import LozengeError


def summary(error: Exception) -> str:
    """The innermost cause that the text of `error` names."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (causes or lines or [type(error).__name__])[-1 if causes else 0][:500]


def failed(error: Exception) -> LozengeError:
    """The error of a query, for a person."""
    if isinstance(error, LozengeError):
        return error
    return LozengeError(
        f"normalising: the query failed: {summary(error)}", hint="a restart resumes at the last committed offsets"
    )
