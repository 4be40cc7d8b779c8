"""What deploy says before anything is built further: the input exists, and no detector reads its own alerts."""

from typing import Any

import pytest

from lozenge.detector.manifest import Manifest
from lozenge.errors import UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.streams.alert_stream import alert_stream
from lozenge.streams.definition import StreamDefinition
from lozenge_deploy.control.records import DeploymentSpec
from lozenge_deploy.operations import input_check
from lozenge_deploy.operations.input_check import deployed_by, refuse_cycle, require_input
from lozenge_deploy.releases.release import Release
from tests.deploy.releases.test_release import release
from tests.merged_streams import BY_ACCOUNT
from tests.streams import AUTH

KAFKA = KafkaSettings(bootstrap="127.0.0.1:1")
CANONICAL = "pay.canonical.auth.v1"


def reading(name: str, stream: StreamDefinition, **declared: Any) -> Release:
    """A release that reads `stream`."""
    given = {"kind": "rule", "owner": "o", "title": "t", "alerts_of": stream.alerts_of, **declared}
    if stream.alerts_of:
        given["key"] = stream.primary
    return release(detector=name, declaration=Manifest.model_validate(given), stream=stream)


def deployed(*releases: Release) -> input_check.Deployed:
    return {each.detector: each for each in releases}.get


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The topics that exist."""
    found = {CANONICAL}
    monkeypatch.setattr(input_check, "partitions", lambda _: found)
    return found


@pytest.mark.parametrize(
    ("stream", "topic", "remedy"),
    [
        (AUTH, "pay.canonical.auth.by-account.v1", """LOZENGE_UPSTREAM_REKEYS='["account"]', then"""),
        (
            BY_ACCOUNT,
            "pay.merged.by-account.v1",
            """LOZENGE_UPSTREAM_MERGES='["account"]' for auth and sign_in, then""",
        ),
        (
            alert_stream("large_amount", "account"),
            "pay.alerts.large_amount.v1",
            "`lozenge deploy large_amount` makes it: deploy that detector first, then spotter",
        ),
    ],
    ids=["a copy", "a merged topic", "alerts"],
)
def test_an_input_that_does_not_exist_is_named_with_what_makes_it(
    stream: StreamDefinition, topic: str, remedy: str, there: set[str]
) -> None:
    require_input(reading("spotter", AUTH), KAFKA, deployed())
    wanted = reading("spotter", stream, key="account")
    with pytest.raises(UsageError, match=f"it reads {topic}, which does not exist") as refused:
        require_input(wanted, KAFKA, deployed())
    assert remedy in refused.value.hint
    there.add(topic)
    require_input(wanted, KAFKA, deployed())


def test_alerts_about_something_else_are_refused_with_the_key_to_declare(there: set[str]) -> None:
    there.add("pay.alerts.large_amount.v1")
    wanted = reading("spotter", alert_stream("large_amount", "account"))
    with pytest.raises(
        UsageError, match="the alerts of large_amount are by card, and it reads them by account"
    ) as refused:
        require_input(wanted, KAFKA, deployed(reading("large_amount", AUTH)))
    assert 'key = "card"' in refused.value.hint
    require_input(wanted, KAFKA, deployed(reading("large_amount", AUTH, key="account")))
    require_input(wanted, KAFKA, deployed(reading("large_amount", alert_stream("other", "account"))))


def test_a_cycle_of_deployed_detectors_is_refused_and_a_chain_is_not(there: set[str]) -> None:
    there |= {f"pay.alerts.{name}.v1" for name in ("a", "b", "c")}
    a, b, c = (reading(name, alert_stream(of, "card")) for name, of in (("a", "b"), ("b", "c"), ("c", "a")))
    require_input(a, KAFKA, deployed(b))
    require_input(a, KAFKA, deployed(b, reading("c", AUTH), reading("a", AUTH)))
    with pytest.raises(UsageError, match="a reads the alerts of b, b those of c, c those of a"):
        require_input(a, KAFKA, deployed(b, c, reading("a", AUTH)))
    with pytest.raises(UsageError, match="a cycle"):
        refuse_cycle(c, deployed(a, b))
    refuse_cycle(reading("c", AUTH), deployed(a, b, c))


def test_the_deployed_release_is_that_of_the_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = release(detector="large_amount")
    asked: list[dict[str, str]] = []

    class Kept:
        def __init__(self, kafka: KafkaSettings) -> None: ...

        def named(self, names: dict[str, str]) -> dict[str, Release]:
            asked.append(names)
            return {"large_amount": kept} if "large_amount" in names else {}

    monkeypatch.setattr(input_check, "Releases", Kept)
    specs = {name: DeploymentSpec(detector=name, revision="1", release="r7") for name in ("large_amount", "pruned")}
    found = deployed_by(KAFKA, specs.get)
    assert (found("large_amount"), found("pruned"), found("never")) == (kept, None, None)
    assert asked == [{"large_amount": "r7"}, {"pruned": "r7"}]
