"""Upstream says what it needs and has not, before it starts Spark."""

import shutil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from lozenge.contracts.topics import Topics
from lozenge.errors import ConfigError
from lozenge.metrics.app_metrics import UpstreamMetrics
from lozenge_upstream.normalise.mapping_files import Mappings, RefusedMapping, read
from lozenge_upstream.releases.read_release import UpstreamRelease
from lozenge_upstream.service import checked_app, output_of, show_in_force
from tests.streams import AUTH, AUTH_MAPPINGS, RELEASE
from tests.upstream.samples import target


def release(mappings: Mappings) -> UpstreamRelease:
    return UpstreamRelease(1, RELEASE, target(), mappings, {})


def test_the_source_of_a_refused_mapping_waits_and_the_others_run(tmp_path: Path) -> None:
    shutil.copytree(AUTH_MAPPINGS, tmp_path, dirs_exist_ok=True)
    wrong = (AUTH_MAPPINGS / "auth_json.toml").read_text("utf-8")
    (tmp_path / "wallet.toml").write_text(
        wrong.replace("auth_json", "wallet")
        .replace("AUTH-JSON", "WALLET")
        .replace('card_id = { transform = "token"', 'card_id = { transform = "text"')
    )
    (tmp_path / "elsewhere.toml").write_text(wrong.replace("auth_json", "elsewhere").replace("AUTH-JSON", "NOWHERE"))
    (tmp_path / "broken.toml").write_text("[fields")
    found = read(tmp_path, AUTH).on(Topics("acme."), {"acme.AUTH-JSON": 4, "acme.AUTH-ISO": 4, "acme.WALLET": 4})
    metrics = UpstreamMetrics("upstream")
    with capture_logs() as lines:
        show_in_force(release(found), metrics)
    assert [(mapping.source, mapping.topic) for mapping in found.usable] == [
        ("auth_iso8583", "acme.AUTH-ISO"),
        ("auth_json", "acme.AUTH-JSON"),
    ]
    valid = {n: v for n, v in metrics.snapshot()["samples"].items() if n.startswith("lozenge_mapping_valid")}
    assert {name.partition("=")[2].rstrip("}"): value for name, value in valid.items()} == {
        "auth_json": 1,
        "auth_iso8583": 1,
        "wallet": 0,
        "elsewhere": 0,
        "broken.toml": 0,
    }
    said = {line["event"].split()[3]: line["problems"] for line in lines if line["log_level"] == "error"}
    assert "there is no topic acme.NOWHERE" in said["elsewhere"][0]
    assert "card_id" in said["wallet"][0]
    assert "not TOML" in said["broken.toml"][0]


def test_without_any_mapping_nothing_starts() -> None:
    refused = RefusedMapping("wallet", "WALLET", ("wallet.toml: not TOML",))
    with pytest.raises(ConfigError, match="not TOML"):
        show_in_force(release(Mappings([], [refused])), UpstreamMetrics("upstream"))


def test_a_release_of_another_normaliser_is_refused() -> None:
    assert checked_app(AUTH, "upstream") is AUTH
    with pytest.raises(ConfigError, match="its normaliser is upstream in one release and upstream-auth in its folder"):
        checked_app(AUTH, "upstream-auth")


def test_events_are_copied_and_merged_by_the_keys_of_their_stream_alone() -> None:
    topics = Topics("acme.")
    target = output_of(AUTH, None, ("card",), topics)
    assert target.keys == {
        topics.events("auth"): "card_id",
        topics.events("auth", "terminal"): "terminal_id",
        topics.merged("card"): "card_id",
    }
    with pytest.raises(ConfigError, match="LOZENGE_UPSTREAM_MERGES: wallet: the stream auth has card, terminal"):
        output_of(AUTH, (), ("card", "wallet"), topics)
    with pytest.raises(ConfigError, match="LOZENGE_UPSTREAM_REKEYS: card: the stream auth has terminal, merchant"):
        output_of(AUTH, ("card",), (), topics)
