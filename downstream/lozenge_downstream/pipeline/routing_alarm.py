"""The alarm about a routing file that is not used."""

from lozenge_downstream.model import PublishedAlert
from lozenge_downstream.pipeline.alarms import alarm, hourly_id


def routing_alarm(file: str, version: str, problem: str, used: str, now: float) -> PublishedAlert:
    """One alarm an hour for an invalid `version` of `file`; `used` is the version that stays active."""
    title = f"the routing file {file} is invalid"
    text = (
        f"{problem}\nVersion {used} of the file stays active.\n"
        "- fix the file, which is loaded when it changes; `lozenge routes history` shows its versions"
    )
    id = hourly_id(now, "routing", file, version)
    return alarm(id, "routing", file, "routing_invalid", title, text, now)
