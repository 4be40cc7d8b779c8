"""Where a detector is placed, and what becomes of hosts: cases without processes."""

from typing import Any

import pytest

from lozenge_deploy.hosts.placement import (
    HostPhase,
    HostView,
    Limits,
    Need,
    below_start_limit,
    place,
    reason_to_drain,
    surplus,
    to_await,
    wants_spare,
    weight_of,
)

LIMITS = Limits(capacity=4, spare_from=3)
MUCH_MB = 10 * LIMITS.spare_free_mb


def host(name: str, *detectors: str, phase: HostPhase = HostPhase.READY, **fields: Any) -> HostView:
    return HostView(
        **{"name": name, "fingerprint": "f", "phase": phase, "detectors": dict.fromkeys(detectors, 1)} | fields
    )


def need(detector: str = "new", **fields: Any) -> Need:
    return Need(**{"detector": detector, "fingerprint": "f"} | fields)


@pytest.mark.parametrize(
    ("memory_mb", "cores", "weight"), [(512, 1, 1), (450, 1, 1), (513, 1, 2), (2048, 1, 4), (512, 4, 4), (1024, 3, 3)]
)
def test_a_detector_weighs_by_its_resources(memory_mb: int, cores: int, weight: int) -> None:
    assert weight_of(memory_mb, cores) == weight


def test_the_fullest_host_with_room_is_taken() -> None:
    hosts = [host("h1", "a"), host("h2", "a", "b", "c"), host("h3", "a", "b", "c", "d")]
    assert place(need(), hosts, {}, LIMITS) == "h2"
    assert place(need(weight=2), hosts, {}, LIMITS) == "h1"


@pytest.mark.parametrize(
    "unfit",
    [
        host("h1", phase=HostPhase.STARTING),
        host("h1", phase=HostPhase.DRAINING),
        host("h1", fingerprint="another"),
        host("h1", "a", "b", "c", "d"),
        host("h1", detectors={"a": 4}),
    ],
)
def test_a_host_that_does_not_fit_is_not_taken(unfit: HostView) -> None:
    assert place(need(), [unfit], {}, LIMITS) is None


def test_a_successor_starts_next_to_the_previous_instance_even_on_a_full_host() -> None:
    hosts = [host("h1", "a", "b", "c", "d"), host("h2")]
    assert place(need("a"), hosts, {}, LIMITS) == "h1"


def test_a_successor_does_not_start_on_a_draining_host() -> None:
    hosts = [host("h1", "a", phase=HostPhase.DRAINING), host("h2")]
    assert place(need("a"), hosts, {}, LIMITS) == "h2"


def test_only_a_host_of_the_same_version_is_awaited() -> None:
    starting = host("h1", phase=HostPhase.STARTING)
    assert to_await(need(), [starting], {}, LIMITS) == "h1"
    assert to_await(need(fingerprint="g"), [starting], {}, LIMITS) is None
    assert to_await(need(), [host("h1")], {}, LIMITS) is None


def test_a_host_is_awaited_by_no_more_than_it_takes() -> None:
    full = host("h1", phase=HostPhase.STARTING, awaited=dict.fromkeys("abcd", 1))
    assert to_await(need("a"), [full], {}, LIMITS) == "h1"
    assert to_await(need(), [full], {}, LIMITS) is None
    one = host("h2", phase=HostPhase.STARTING, awaited={"a": 1})
    assert to_await(need(), [full, one], {}, LIMITS) == "h2"
    assert to_await(need(), [full, one], {"a": 0}, LIMITS) is None


def test_so_many_hosts_start_at_once() -> None:
    starting = [host(name, phase=HostPhase.STARTING) for name in ("h1", "h2")]
    assert below_start_limit([*starting[:1], host("h3")], LIMITS)
    assert not below_start_limit(starting, LIMITS)


def test_a_suspect_has_no_more_neighbours_than_it_may() -> None:
    hosts = [host("h1", "a", "b"), host("h2", "c"), host("h3")]
    assert place(need(), hosts, {"new": 1}, LIMITS) == "h2"
    assert place(need(), hosts, {"new": 0}, LIMITS) == "h3"


def test_a_suspect_keeps_others_away() -> None:
    hosts = [host("h1", "suspect", "b"), host("h2")]
    assert place(need(), hosts, {"suspect": 1}, LIMITS) == "h2"
    assert place(need(), hosts, {"suspect": 2}, LIMITS) == "h1"


def test_a_host_that_is_old_or_had_many_processes_drains() -> None:
    assert not reason_to_drain(host("h1", "a", age_seconds=LIMITS.age_seconds), LIMITS)
    assert "7 days old" in reason_to_drain(host("h1", "a", age_seconds=LIMITS.age_seconds + 1), LIMITS)
    assert not reason_to_drain(host("h1", "a", placements=LIMITS.placements - 1), LIMITS)
    assert "1000 processes" in reason_to_drain(host("h1", "a", placements=LIMITS.placements), LIMITS)


USED = host("h1", "a", "b", "c", age_seconds=9)


def test_a_spare_is_wanted_once_enough_detectors_share() -> None:
    assert wants_spare([USED], MUCH_MB, LIMITS) == "f"
    assert wants_spare([host("h1", "a", "b")], MUCH_MB, LIMITS) is None
    assert wants_spare([host("h1", "a", "b"), host("h2", "c")], MUCH_MB, LIMITS) == "f"
    assert wants_spare([], MUCH_MB, LIMITS) is None


def test_a_host_waits_for_the_first_detector() -> None:
    assert wants_spare([], MUCH_MB, LIMITS, first="f") == "f"
    assert wants_spare([], LIMITS.spare_free_mb - 1, LIMITS, first="f") is None
    waiting = host("h1", idle_seconds=LIMITS.idle_seconds + 1)
    assert wants_spare([waiting], MUCH_MB, LIMITS, first="f") is None
    assert surplus([waiting], LIMITS, first="f") == set()
    assert surplus([waiting, host("h2", fingerprint="g", idle_seconds=LIMITS.idle_seconds + 1)], LIMITS, "f") == {"h2"}


def test_no_spare_is_started_without_memory_for_it() -> None:
    assert wants_spare([USED], LIMITS.spare_free_mb - 1, LIMITS) is None


@pytest.mark.parametrize("phase", [HostPhase.STARTING, HostPhase.READY])
def test_one_spare_is_enough(phase: HostPhase) -> None:
    assert wants_spare([USED, host("h2", phase=phase)], MUCH_MB, LIMITS) is None


def test_a_spare_has_the_version_of_the_newest_host_in_use() -> None:
    newer = host("h2", "d", fingerprint="g", age_seconds=1)
    assert wants_spare([USED, newer, host("h3")], MUCH_MB, LIMITS) == "g"


def test_a_host_without_detectors_ends_after_a_while_but_for_the_spare() -> None:
    idle = LIMITS.idle_seconds + 1
    assert surplus([host("h1", idle_seconds=LIMITS.idle_seconds)], LIMITS) == set()
    assert surplus([host("h1", idle_seconds=idle)], LIMITS) == {"h1"}
    old, new = (host(f"h{n}", idle_seconds=idle, age_seconds=10.0 - n) for n in (2, 3))
    assert surplus([USED, old, new], LIMITS) == {"h2"}


def test_a_draining_host_ends_with_its_last_detector() -> None:
    assert surplus([host("h1", "a", phase=HostPhase.DRAINING)], LIMITS) == set()
    assert surplus([host("h1", phase=HostPhase.DRAINING)], LIMITS) == {"h1"}


def test_a_host_that_starts_is_not_ended() -> None:
    assert surplus([host("h1", phase=HostPhase.STARTING, idle_seconds=10 * LIMITS.idle_seconds)], LIMITS) == set()
