"""The detector that ends hosts is found by halves, and one end of a host holds nobody back."""

from lozenge_deploy.hosts.suspicions import Suspicions

SECONDS = 600.0


def test_after_one_end_of_a_host_its_detectors_may_stay_together() -> None:
    suspicions = Suspicions(SECONDS)
    suspicions.host_ended("h1", "abcd", 0.0)
    assert suspicions.allowed(1.0) == {}
    assert suspicions.neighbours_at_end("h1") == 3
    assert suspicions.neighbours_at_end("h2") is None


def test_those_that_were_on_two_hosts_which_ended_are_parted_until_one_is_alone() -> None:
    suspicions = Suspicions(SECONDS)
    suspicions.host_ended("h1", "abcdefgh", 0.0)
    suspicions.host_ended("h2", "abcdefghnew", 10.0)
    assert suspicions.allowed(11.0) == dict.fromkeys("abcdefgh", 3)
    suspicions.host_ended("h3", "abcd", 20.0)
    assert suspicions.allowed(21.0) == dict.fromkeys("efgh", 3) | dict.fromkeys("abcd", 1)
    suspicions.host_ended("h4", "ab", 30.0)
    assert {name: suspicions.allowed(31.0)[name] for name in "abcd"} == {"a": 0, "b": 0, "c": 1, "d": 1}


def test_a_suspicion_ends_and_what_follows_later_is_a_first_end_again() -> None:
    suspicions = Suspicions(SECONDS)
    suspicions.host_ended("h1", "ab", 0.0)
    suspicions.host_ended("h2", "ab", SECONDS)
    assert suspicions.allowed(SECONDS + 1) == {}
    suspicions.host_ended("h3", "ab", 2 * SECONDS - 1)
    assert suspicions.allowed(2 * SECONDS) == {"a": 0, "b": 0}
    assert suspicions.allowed(3 * SECONDS) == {}
