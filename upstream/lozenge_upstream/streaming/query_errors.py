"""One line of what Spark or Kafka raised: the full text holds the plan, and the plan the token key."""


def gist(error: Exception) -> str:
    """The innermost cause that the text of `error` names."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (causes or lines or [type(error).__name__])[-1 if causes else 0][:500]
