"""The alarm about a routing file that is not used."""

from lozenge.contracts.ids import uuid5
from lozenge_downstream.model import HOUR, PublishedAlert
from lozenge_downstream.pipeline.alarms import alarm


def routing_alarm(file: str, version: str, problem: str, used: str, now: float) -> PublishedAlert:
    """One alarm an hour for an invalid `version` of `file`; `used` is the version that stays active."""
    title = f"the routing file {file} is invalid"
    text = (
        f"{problem}\nVersion {used} of the file stays active.\n"
        "- fix the file, which is loaded when it changes; `lozenge routes history` shows its versions"
    )
    id = uuid5("routing", file, version, str(int(now // HOUR)))
    return alarm(id, "routing", file, "routing_invalid", title, text, now)
