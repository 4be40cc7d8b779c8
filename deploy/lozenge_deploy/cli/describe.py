"""What `lozenge describe` tells: a declaration and the topics that follow from it, and what of it is live."""

from typing import TYPE_CHECKING, Any

from lozenge.contracts import topics
from lozenge.detector.manifest import Manifest, parse
from lozenge.errors import BrokerUnavailable, LozengeError, UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.cli.options import app_of, folder_of

if TYPE_CHECKING:
    from lozenge_deploy.control.deployments_view import Deployment

BROKER_SECONDS = 1.0


def facts_of(name: str) -> dict[str, Any]:
    """Of the folder, or else of the release that is deployed; raises UsageError if there is neither.

    Without a broker, which a folder does not need, `live` says so.
    """
    try:
        folder = folder_of(name)
    except UsageError as nowhere:
        return _released(app_of(name), nowhere)
    file = folder / "pyproject.toml"
    project, version, declared = parse(file.read_text("utf-8"), str(file))
    return {**_declared(project, version, declared), **_live(project)}


def _released(name: str, nowhere: UsageError) -> dict[str, Any]:
    from lozenge_deploy.control.deployments_view import Deployments
    from lozenge_deploy.releases.release_store import Releases

    kafka = KafkaSettings.load()
    try:
        with Deployments(kafka) as fleet:
            member = fleet.members().get(name)
    except BrokerUnavailable:
        raise nowhere from None
    if member is None:
        raise nowhere
    release = Releases(kafka).get(name, member.desired.release)
    return {**_declared(name, release.version, release.declaration), "defaults": release.settings, **_told(member)}


def _declared(name: str, version: str, declared: Manifest) -> dict[str, Any]:
    return {
        "name": name,
        "version": version,
        **declared.model_dump(mode="json", exclude_none=True),
        "reads": topics.events_by(declared.key),
        "alerts": topics.alerts(name),
        "dead letters": topics.dead_letters(name),
        "state topic": topics.state(name),
        "group": name,
    }


def _live(name: str) -> dict[str, Any]:
    """Which release is live and which settings it has been given; None for what was never deployed."""
    from lozenge.kafka.topic_admin import partitions
    from lozenge_deploy.control.deployments_view import Deployments

    try:
        kafka = KafkaSettings.load()
        partitions(kafka, timeout=BROKER_SECONDS)  # the one call that can be kept short
        with Deployments(kafka) as fleet:
            member = fleet.members().get(name)
    except LozengeError as error:
        return {"live": f"unknown: {error.message}"}
    return _told(member)


def _told(member: "Deployment | None") -> dict[str, Any]:
    if member is None:
        return {"live": None}
    live = member.observed.release if member.observed else ""
    digest = member.observed.digest if member.observed else ""
    given = member.desired.model_dump(mode="json", include={"max_batch", "trigger", "cores", "memory_mb"})
    if member.desired.instances > 1:
        given["instances"] = member.desired.instances
    overrides = {**member.desired.settings, **{name: value for name, value in given.items() if value is not None}}
    return {"live": live or None, "wanted": member.desired.release, "overrides": overrides} | (
        {"settings digest": digest} if digest else {}
    )
