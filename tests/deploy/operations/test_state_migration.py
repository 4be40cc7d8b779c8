"""Which releases can keep the state of which, and what happens to it."""

from typing import Any

import pytest

from lozenge.contracts.detector_kind import DetectorKind
from lozenge.detector.manifest import Manifest
from lozenge.errors import UsageError
from lozenge_deploy.operations.state_migration import consequence, refused, rollback_policy
from lozenge_deploy.releases.release import Release
from tests.deploy.releases.test_release import release


def fold(expires: str = "10m", by: str = "card_id", **fields: str) -> Release:
    """A stateful release of this shape."""
    shape: dict[str, Any] = {"by": [by], "expires": expires, "fields": fields, "required": sorted(fields)}
    declaration = Manifest(kind=DetectorKind.STATEFUL, owner="me", title="Spotted")
    return release(declaration=declaration, state_shape=shape)


def test_a_state_of_the_same_shape_is_kept() -> None:
    assert refused(fold(n="int"), fold(n="int"), "keep") is None
    assert refused(None, fold(n="int"), "rebuild") is None


def test_another_key_cannot_be_kept_but_rebuilt_or_started_fresh() -> None:
    error = refused(fold(), fold(by="merchant_id"), "keep")
    assert error is not None
    assert "its keys were made of card_id and are now made of merchant_id" in error.message
    assert "--state rebuild" in error.hint
    assert refused(fold(), fold(by="merchant_id"), "rebuild") is None
    assert refused(fold(), fold(by="merchant_id"), "fresh") is None


def test_a_fold_cannot_keep_state_that_a_release_of_another_kind_never_had() -> None:
    error = refused(release(), fold(), "keep")
    assert error is not None
    assert "the previous release is of kind rule and has no state" in error.message
    assert refused(release(), fold(), "rebuild") is None
    assert refused(fold(), release(), "keep") is None


def test_state_is_not_rebuilt_beyond_the_retention_of_events() -> None:
    error = refused(fold(), fold(expires="30d"), "rebuild")
    assert error is not None
    assert "reaches back 30d, but events are retained for 7d" in error.message
    assert refused(fold(), fold(expires="7d"), "rebuild") is None


def test_an_unknown_policy_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="unknown state policy maybe"):
        refused(None, fold(), "maybe")


def test_a_rollback_rebuilds_state_that_the_earlier_release_cannot_read() -> None:
    assert rollback_policy(fold(n="int"), fold(n="int")) == "keep"
    assert rollback_policy(fold(n="int"), fold(n="str")) == "rebuild"


def test_the_consequence_for_the_state_is_named_for_every_kind_that_has_one() -> None:
    assert consequence(release(), release(), "keep") is None
    assert consequence(None, fold(), "rebuild") == "starts empty"
    texts = [consequence(fold(), fold(), policy) or "" for policy in ("keep", "rebuild", "fresh")]
    assert [text.split()[0] for text in texts] == ["keep:", "rebuild:", "fresh:"]
