"""Several notifiers of one PostgreSQL store: they share the work, and the last one does all of it."""

from collections.abc import Iterator

import pytest

from lozenge.kafka.settings import KafkaSettings
from tests.integration.downstream.notifying import STOP_SECONDS, World, world_of
from tests.postgres import database, server

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def world(kafka: KafkaSettings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("shared")
    with server(folder / "postgres") as running, world_of(kafka, folder, database(running, "notifier")) as world:
        yield world


def test_three_share_the_work_while_they_are_killed_and_started(world: World) -> None:
    running = [world.start() for _ in range(3)]
    try:
        for lap in range(6):
            world.send("one", range(lap * 200, lap * 200 + 200))
            world.send("two", range(lap * 200, lap * 200 + 200))
            killed = running.pop(0)
            assert killed.exit_code is None, killed.errors
            killed.kill()
            running.append(world.start())
        world.settle()
        for process in running:
            assert process.exit_code is None, process.errors
            process.stop()
            assert process.ends(STOP_SECONDS) == 0, process.errors
    finally:
        for process in running:
            process.kill()


def test_one_continues_alone_at_once_when_the_other_stops_regularly(world: World) -> None:
    first = world.start()
    try:
        world.send("one", range(5_000, 5_010))
        world.settle()
        with world.notifier():
            world.send("one", range(5_010, 5_020))
            world.settle()
            first.stop()
            assert first.ends(STOP_SECONDS) == 0, first.errors
            world.send("two", range(5_010, 5_030))
            world.settle()
    finally:
        first.kill()
