"""Which detectors read the alerts of another one, by their deployed releases."""

from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.control.deployments_view import Deployments
from lozenge_deploy.releases.release import Release
from lozenge_deploy.releases.release_store import Releases


def readers_of(kafka: KafkaSettings, detector: str) -> list[Release]:
    """The deployed releases that read the alerts of `detector`; a retired detector reads nothing.

    Raises BrokerUnavailable.
    """
    with Deployments(kafka) as deployments:
        running = {name: each.spec.release for name, each in deployments.all().items() if not each.retired}
    return [each for each in Releases(kafka).named(running).values() if each.stream.alerts_of == detector]
