"""Whether a release can be deployed with what it reads: the topic exists, and no cycle of detectors comes about."""

from collections.abc import Callable

from lozenge.detector.description import Description
from lozenge.errors import UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge_deploy.control.records import DeploymentSpec
from lozenge_deploy.releases.alert_chain import cycle_of, sentence
from lozenge_deploy.releases.release_store import Releases

Deployed = Callable[[str], Description | None]
"""The release of a detector that is deployed, whether it runs or not; None if it has never been, or is not kept."""


def deployed_by(kafka: KafkaSettings, spec_of: Callable[[str], DeploymentSpec | None]) -> Deployed:
    """The releases of the deployment specs `spec_of` detectors, read from their topic; raises BrokerUnavailable."""

    def deployed(detector: str) -> Description | None:
        spec = spec_of(detector)
        return Releases(kafka).named({detector: spec.release}).get(detector) if spec is not None else None

    return deployed


def require_input(described: Description, kafka: KafkaSettings, deployed: Deployed) -> None:
    """Raises UsageError if the input does not exist, or if the detector whose alerts it reads does not fit."""
    name, stream, key = described.detector, described.stream, described.declaration.key
    source = stream.events(kafka.topics, key)
    if source not in partitions(kafka):
        raise UsageError(f"deploying {name}: it reads {source}, which does not exist", hint=_remedy(described))
    refuse_cycle(described, deployed)
    watched = deployed(stream.alerts_of) if stream.alerts_of else None
    if watched is not None and watched.key != key:
        raise UsageError(
            f"deploying {name}: the alerts of {watched.detector} are by {watched.key}, and it reads them by {key}",
            hint=f'write key = "{watched.key}" in [tool.lozenge]',
        )


def refuse_cycle(described: Description, deployed: Deployed) -> None:
    """Raises UsageError if the detector would read its own alerts, be it through others.

    Those that are paused or retired count: they can be resumed.
    """

    def reads(detector: str) -> str:
        found = described if detector == described.detector else deployed(detector)
        return found.stream.alerts_of if found is not None else ""

    if cycle := cycle_of(described.detector, reads):
        raise UsageError(
            f"deploying {described.detector}: {sentence(cycle)}",
            hint="deploy another release of one of them, which reads something else",
        )


def _remedy(described: Description) -> str:
    """What makes the input exist."""
    stream, key = described.stream, described.declaration.key
    if stream.alerts_of:
        return f"`lozenge deploy {stream.alerts_of}` makes it: deploy that detector first, then {described.detector}"
    variable, of = "REKEYS", ""
    if stream.members:
        variable, of = "MERGES", f" for {' and '.join(each.name for each in stream.members)}"
    return f"make upstream write it: LOZENGE_UPSTREAM_{variable}='[\"{stream.key(key)}\"]'{of}, then deploy again"
