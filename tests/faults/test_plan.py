"""The plan of a campaign: the same seed gives the same plan, with every kind of fault."""

from tests.faults.plan import ON_REQUEST, TARGETS, plan

ALL = tuple(TARGETS)


def test_the_same_seed_gives_the_same_plan_and_another_one_another() -> None:
    assert plan(7, 60, ALL) == plan(7, 60, ALL)
    assert plan(7, 60, ALL) != plan(8, 60, ALL)


def test_a_longer_plan_begins_as_the_shorter_one_does() -> None:
    assert plan(7, 90, ALL)[:30] == plan(7, 60, ALL)[:30]


def test_it_has_as_many_faults_as_were_requested() -> None:
    for count in range(1, 40):
        assert sum(len(incident.faults) for incident in plan(3, count, ALL)) == count


def test_every_kind_of_harm_comes_to_every_target() -> None:
    struck = {(fault.kind, fault.target) for incident in plan(1, 120, ALL) for fault in incident.faults}
    assert struck >= {(kind, target) for kind, targets in TARGETS.items() for target in targets}


def test_some_faults_come_in_pairs_and_excluded_kinds_never() -> None:
    incidents = plan(5, 100, ["kill", "deploy"])
    assert {len(incident.faults) for incident in incidents} == {1, 2}
    assert {fault.kind for incident in incidents for fault in incident.faults} == {"kill", "deploy"}


def test_kills_may_come_in_volleys() -> None:
    assert [len(incident.faults) for incident in plan(2, 20, ["kill"], together=5)] == [5, 5, 5, 5]
    for incident in plan(2, 20, ["kill"], together=5):
        assert [fault.after for fault in incident.faults] == sorted(fault.after for fault in incident.faults)


def test_sinks_and_sources_are_struck_early_where_they_run_and_never_where_they_do_not() -> None:
    on_request = {card for cards in ON_REQUEST.values() for card in cards}
    alone = {(fault.kind, fault.target) for incident in plan(3, 200, ALL) for fault in incident.faults}
    assert not alone & on_request
    early = plan(3, 36, ALL, extras=tuple(ON_REQUEST))
    assert {(fault.kind, fault.target) for incident in early for fault in incident.faults} >= on_request
    kills = plan(3, 40, ["kill"], extras=["cache"])
    assert {fault.target for incident in kills for fault in incident.faults} >= {
        "sink-last_authorisation",
        "cache server",
    }
    assert "sink-archive" not in {fault.target for incident in kills for fault in incident.faults}
