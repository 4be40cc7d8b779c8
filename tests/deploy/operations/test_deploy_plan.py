"""What deploy says before anything is built further: the input of a detector has to exist."""

from types import SimpleNamespace
from typing import Any

import pytest

from lozenge.detector.manifest import Manifest
from lozenge.errors import UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.streams.definition import StreamDefinition
from lozenge_deploy.operations import deploy_plan
from tests.merged_streams import BY_ACCOUNT
from tests.streams import AUTH

KAFKA = KafkaSettings(bootstrap="127.0.0.1:1")


def described(stream: StreamDefinition, **declared: str) -> Any:
    manifest = Manifest.model_validate({"kind": "rule", "owner": "o", "title": "t", **declared})
    return SimpleNamespace(stream=stream, declaration=manifest)


@pytest.mark.parametrize(
    ("stream", "topic", "setting"),
    [
        (AUTH, "pay.canonical.auth.by-account.v1", """LOZENGE_UPSTREAM_REKEYS='["account"]', then"""),
        (
            BY_ACCOUNT,
            "pay.merged.by-account.v1",
            """LOZENGE_UPSTREAM_MERGES='["account"]' for auth and sign_in, then""",
        ),
    ],
    ids=["a copy", "a merged topic"],
)
def test_an_input_that_does_not_exist_is_named_with_the_setting_that_makes_it(
    stream: StreamDefinition, topic: str, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {"pay.canonical.auth.v1": 4}
    monkeypatch.setattr(deploy_plan, "partitions", lambda _: there)
    deploy_plan._require_input("spotter", described(AUTH), KAFKA)
    with pytest.raises(UsageError, match=f"it reads {topic}, which does not exist") as refused:
        deploy_plan._require_input("spotter", described(stream, key="account"), KAFKA)
    assert f"make upstream write it: {setting}" in refused.value.hint
    there[topic] = 4
    deploy_plan._require_input("spotter", described(stream, key="account"), KAFKA)
