"""Offsets that an operator moves under an agent; the job runs without Spark, what fills the gap with it."""

from lozenge.contracts.record import format_positions
from tests.integration.deploy.worlds import World
from tests.integration.harness import group_offsets, wait_for


def test_moved_offsets_are_in_history_and_coverage_and_what_they_skipped_is_filled(world: World) -> None:
    world.deploy(world.one, world.two)
    one, other = world.one, world.pid(world.two)
    world.assert_each_once(one, world.large(8))
    before = {p: offset for p, (offset, _) in group_offsets(world.kafka, one).items()}
    world.lozenge("pause", one)
    skipped = world.large(20)
    assert "skipped" in world.lozenge("offsets", one, "--latest", "--dry-run")
    assert "lag" in world.lozenge("offsets", one)
    world.lozenge("offsets", one, "--latest", "-m", "nobody waits for these")
    assert "is live" in world.lozenge("resume", one)
    ids = world.large(20)
    world.assert_each_once(one, ids)
    assert not world.alerts(one, skipped)
    assert "GAP" in world.lozenge("coverage", one)
    partition = next(p for p, (offset, _) in group_offsets(world.kafka, one).items() if offset > before[p])
    assert "in a gap" in world.lozenge("coverage", one, f"{partition}:{before[partition]}")
    assert "emitted 20 alerts" in world.lozenge("backfill", one)
    world.assert_each_once(one, skipped)
    assert "GAP" not in world.lozenge("coverage", one)

    then = format_positions(sorted(before.items()))
    assert "is live" in world.lozenge("offsets", one, "--to", then)
    wait_for(lambda: len(world.alerts(one, ids | skipped)) == 80, "all of these alerts once more")
    assert len({a["alert_id"] for a in world.alerts(one, ids | skipped)}) == 40
    assert "twice" in world.lozenge("coverage", one)
    history = world.lozenge("history", one, "-o", "json")
    assert "nobody waits for these" in history
    assert f"to {then}" in history
    assert "is not between" in world.lozenge("offsets", one, "--to", "0:999999999", code=2)
    assert "has no state" in world.lozenge("offsets", one, "--latest", "--state", "fresh", code=2)
    assert world.pid(world.two) == other
