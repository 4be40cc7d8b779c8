"""What a deploy says of the detectors that read the alerts of the new release."""

import pytest

from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.operations import deploy_plan
from lozenge_deploy.operations.deploy_plan import _losing
from lozenge_deploy.operations.release_diff import readers_row
from tests.alert_streams import LARGE
from tests.deploy.releases.test_release import release

KAFKA = KafkaSettings(bootstrap="127.0.0.1:1")


def test_another_key_loses_the_readers_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploy_plan, "readers_of", lambda kafka, name: [release(detector="series", stream=LARGE)])
    by_card = release(detector="large_amount")
    by_account = release(detector="large_amount", declaration=by_card.declaration.model_copy(update={"key": "account"}))
    assert _losing(KAFKA, by_card, by_account) == ("series",)
    assert _losing(KAFKA, by_account, by_card) == (), "they read by that key"
    assert _losing(KAFKA, by_card, by_card) == _losing(KAFKA, None, by_account) == ()


def test_readers_are_a_row_if_there_are_any() -> None:
    assert readers_row(["series", "others"], "lose") == [
        {"field": "read by", "current": "others, series", "new": "lose"}
    ]
    assert readers_row([], "lose") == []
