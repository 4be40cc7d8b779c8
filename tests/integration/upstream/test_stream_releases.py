"""The mappings of a stream change under traffic at exact raw offsets: no record is lost or repeated.

A bad release changes nothing, and an earlier one comes back in the same way.
"""

import json
import re
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.stream_releases import FollowedStream
from lozenge.metrics.app_metrics import UpstreamMetrics
from lozenge.metrics.reporter import Reporter
from lozenge.process.periodic import every
from lozenge.streams.project import STREAMS_VARIABLE
from lozenge.streams.release_files import files_of
from lozenge_deploy.control.client import ChangeFailed
from lozenge_deploy.observe.stream_history import Since, coverage_end
from lozenge_deploy.operations.raw_offset_reset import has_no_member
from lozenge_deploy.operations.streams import release_requests
from lozenge_deploy.operations.streams.await_taking import await_taking
from lozenge_upstream.releases.read_release import ReleaseReader
from lozenge_upstream.releases.stream_releases import StreamReleases
from lozenge_upstream.service import Instance, output_of
from lozenge_upstream.settings import UpstreamSettings
from tests.brokers import Broker, own_platform
from tests.deploy.command import invoke
from tests.integration.upstream.upstream_bench import KEY, Bench, assert_each_came_out_once, send_thousand, wait
from tests.streams import FOLDER, RAW_JSON, event_codec

MERCHANT = 'merchant_id = { transform = "text", path = "merchant" }'
CONSTANT = 'merchant_id = { transform = "constant", value = "another" }'
SECONDS = 120.0


class Scene:
    """A folder of streams, an instance of upstream that runs it, and what was sent to it."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench, self.kafka, self.streams = bench, bench.kafka, folder / "streams"
        shutil.copytree(FOLDER, self.streams)
        self.sent = 0
        self.metrics = UpstreamMetrics("upstream", "releases")

    @property
    def mapping(self) -> Path:
        return self.streams / "auth" / "mappings" / "auth_json.toml"

    def send(self, count: int = 1_000) -> None:
        """So many more raw records, of which each twentieth is broken."""
        send_thousand(self.bench, self.sent, count)
        self.sent += count

    def said(self, *arguments: str) -> Any:
        """What a command answers as JSON."""
        run = self.asked(*arguments)
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)

    def asked(self, *arguments: str) -> Any:
        """What becomes of a command that answers in JSON."""
        variables = {STREAMS_VARIABLE: str(self.streams), "LOZENGE_UPSTREAM_TOKEN_KEY": KEY}
        return invoke(*arguments, "-o", "json", cwd=self.streams, **variables, **self.kafka.variables)

    def requested(self, files: dict[str, str]) -> Since:
        """Since when a release of these files is in force, which no command has checked before; raises ChangeFailed."""
        covered = coverage_end(self.kafka, "upstream")
        wanted = release_requests.make(
            self.kafka, "auth", lambda state: release_requests.deployment_of(state, files, "a test")
        )
        return await_taking(self.kafka, wanted, "upstream", [self.kafka.topics.prefixed(RAW_JSON)], covered, SECONDS)

    def merchants(self) -> dict[tuple[int, int], str]:
        """The merchant of each event, by the partition and offset of its raw record."""
        decode = event_codec().decode
        events = (decode(record.value) for record in self.bench.written(self.bench.topics.events("auth")))
        return {(event["raw"]["partition"], event["raw"]["offset"]): event["merchant_id"] for event in events}

    @contextmanager
    def upstream(self, spark: SparkSession, **settings: Any) -> Iterator[None]:
        """Runs an instance on the worker's Spark; what ends it fails the test."""
        given = UpstreamSettings(token_key=KEY, **{"trigger_seconds": 0.2} | settings)  # type: ignore[arg-type]
        stop, failed = threading.Event(), list[BaseException]()
        reader = ReleaseReader(
            self.kafka,
            self.streams / "auth",
            lambda each: output_of(each, given.rekeys, given.merges, self.kafka.topics),
        )

        def run() -> None:
            try:
                with closing(FollowedStream(self.kafka, "auth")) as followed:
                    releases = StreamReleases(self.kafka, followed, reader, self.metrics.stream_release.refused)
                    starting = Future[SparkSession]()
                    starting.set_result(spark)
                    releases.begin(starting, 4 if given.mode == "realtime" else None, releases.first())
                    reporter = Reporter(self.metrics, self.kafka)
                    Instance(spark, self.kafka, given, releases, self.metrics, reporter).run(
                        lambda: stop.is_set() or bool(failed)
                    )
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run, name="upstream")
        thread.start()
        try:
            wait(lambda: bool(failed) or not has_no_member(self.kafka, "upstream"), "it to join its group")
            yield
        finally:
            stop.set()
            thread.join(SECONDS)
        assert not failed, failed[0]
        assert not thread.is_alive()


def traffic(scene: Scene) -> AbstractContextManager[None]:
    """Records are sent all the time within the block."""
    return every(0.5, lambda: scene.send(40), "traffic")


@pytest.fixture
def scene(broker: Broker, tmp_path: Path) -> Iterator[Scene]:
    """On a platform of its own: nothing was ever deployed there."""
    with own_platform(broker) as kafka:
        yield Scene(Bench(kafka), tmp_path)


def edit(scene: Scene) -> None:
    text = scene.mapping.read_text("utf-8")
    assert MERCHANT in text
    scene.mapping.write_text(text.replace(MERCHANT, CONSTANT), "utf-8")


def edit_samples(scene: Scene) -> None:
    """The one sample of the source expects the merchant that the edited mapping gives."""
    file = scene.streams / "auth" / "samples" / "auth_json.toml"
    head, first, *_ = file.read_text("utf-8").split("[[sample]]")
    first = re.sub(r"(?m)^(event_id|merchant_id) = .*$", "", first)
    file.write_text(f'{head}[[sample]]{first}merchant_id = "another"\n', "utf-8")


def json_offsets(kafka: KafkaSettings, since: Any) -> dict[int, int]:
    return {int(partition): offset for partition, offset in since[kafka.topics.prefixed(RAW_JSON)].items()}


@pytest.mark.nightly
def test_a_mapping_changes_under_traffic_and_back_and_a_bad_one_does_not(
    scene: Scene, upstream_spark: SparkSession
) -> None:
    bench, kafka = scene.bench, scene.kafka
    with scene.upstream(upstream_spark):
        with traffic(scene):
            wait(lambda: bench.processed() > 0, "the first batch")
            [first] = scene.said("stream", "deploy", "auth", "-m", "as it is")
            edit(scene)
            tested = scene.asked("stream", "deploy", "auth")
            assert (tested.returncode, "samples become something else" in tested.stderr) == (1, True), tested.stderr
            failed = [each["sample"] for each in json.loads(tested.stdout)["samples"] if each["failures"]]
            assert failed[0] == "a payment in a shop"
            edit_samples(scene)
            [dry] = scene.said("stream", "deploy", "auth", "--no-test", "--dry-run")
            assert [row["field"] for row in dry["changes"]] == ["release", "mappings/auth_json.toml", "offsets"]
            [second] = scene.said("stream", "deploy", "auth", "-m", "merchants are constant")
            wrong = files_of(scene.streams / "auth")
            wrong["mappings/auth_json.toml"] = wrong["mappings/auth_json.toml"].replace("[0-9]{4}", "(?P<x>[0-9]{4})")
            with pytest.raises(ChangeFailed, match=r"auth_json.toml line 13: fields.mcc.pattern") as refused:
                scene.requested(wrong)
            assert "r2 runs on" in refused.value.hint
            assert scene.metrics.snapshot()["samples"]["lozenge_stream_release_refused"] == 1
            rows = scene.said("stream", "releases", "auth")
            [shown] = [row for row in scene.said("status") if row["app"] == "upstream"]
            assert shown["reason"].startswith("r3 of the stream auth is refused, r2 runs on: mappings/auth_json.toml")
            assert [(row["release"], row["state"]) for row in rows] == [
                *(("r3", "refused"), ("r2", "in force"), ("r1", None), ("folder", None))
            ]
            [back] = scene.said("stream", "rollback", "auth", "-m", "they were not")
            assert scene.metrics.snapshot()["samples"]["lozenge_stream_release_refused"] == 0
            [planned] = scene.said("stream", "plan", "auth", "-n", "400", "--last", "30m")
        wait(bench.done, "everything that was sent")
    assert (planned["release"], planned["records"]) == ("r1", 400)
    assert planned["fields"] == {"merchant_id": planned["events_differ"]}
    assert planned["more_dead_letters"] == planned["more_skipped"] == 0
    assert planned["examples"][0]["new"] == "another"

    assert_each_came_out_once(bench, scene.sent, [bench.topics.events("auth"), bench.by_terminal])
    begins, ends = json_offsets(kafka, second["since"]), json_offsets(kafka, back["since"])
    assert all(begins[p] <= ends[p] for p in begins)
    assert any(begins[p] < ends[p] for p in begins)
    merchants = scene.merchants()
    assert merchants == {(p, offset): "another" if begins[p] <= offset < ends[p] else "m-1" for p, offset in merchants}

    covered = [row for row in scene.said("coverage", "upstream") if row["topic"] == kafka.topics.prefixed(RAW_JSON)]
    assert {row["kind"] for row in covered} == {"processed", "open"}
    starts = json_offsets(kafka, first["since"])
    for partition in begins:
        mine = [(row["release"], row["from"]) for row in covered if row["partition"] == partition and row["events"]]
        expected = [("r1", starts[partition]), ("r2", begins[partition]), ("r1", ends[partition])]
        assert [each for each in mine if each[0] != "folder"] == [
            each
            for each, end in zip(expected, [begins[partition], ends[partition], None], strict=True)
            if each[1] != end
        ]
    history = scene.said("stream", "history", "auth")
    assert [row["release"] for row in history if row["topic"] == kafka.topics.prefixed(RAW_JSON)] == [
        *("folder", "r1", "r2", "r1")
    ]


@pytest.mark.nightly
def test_what_real_time_mode_has_written_ahead_is_completed_by_the_release_that_wrote_it(
    scene: Scene, upstream_spark: SparkSession
) -> None:
    bench = scene.bench
    (scene.mapping.parent / "auth_iso8583.toml").unlink()  # the shared session has too few slots for two sources
    before = files_of(scene.streams / "auth")
    edit(scene)
    after = files_of(scene.streams / "auth")
    with scene.upstream(upstream_spark, mode="realtime", commit_seconds=3600, short_batches=0):
        scene.requested(before)
        scene.send()
        wait(lambda: len(bench.written(bench.topics.events("auth"))) > 500, "records ahead of the offsets")
        assert not bench.done(), "it was not to commit"
        since = json_offsets(scene.kafka, scene.requested(after))
        scene.send()
        written = [bench.topics.events("auth"), bench.dead]
        wait(lambda: sum(len(bench.written(topic)) for topic in written) == 2_000, "everything that was sent")
    assert_each_came_out_once(bench, scene.sent, [bench.topics.events("auth"), bench.by_terminal])
    merchants = scene.merchants()
    assert merchants == {(p, offset): "another" if offset >= since[p] else "m-1" for p, offset in merchants}
    assert set(merchants.values()) == {"another", "m-1"}
