"""The processor seconds of a process are a counter, its memory is a gauge."""

from prometheus_client import CollectorRegistry

from lozenge.metrics.process_cost import ProcessCost
from lozenge.process.usage import Cost


def test_processor_seconds_never_fall_and_memory_may() -> None:
    registry = CollectorRegistry()
    cost = ProcessCost(registry)
    seen = []
    for cpu_seconds, memory_bytes in [(1.5, 100), (2.0, 90), (1.0, 80)]:
        cost.set(Cost(cpu_seconds, memory_bytes))
        seen.append(
            (registry.get_sample_value("lozenge_cpu_seconds_total"), registry.get_sample_value("lozenge_memory_bytes"))
        )
    assert seen == [(1.5, 100), (2.0, 90), (2.0, 80)]


def test_the_parts_of_a_shared_jvm_and_its_shuffled_bytes_are_counted() -> None:
    registry = CollectorRegistry()
    cost = ProcessCost(registry)
    cost.set(Cost(3.0, 1, {"tasks": 2.0, "planning": 1.0}, shuffle_bytes=10))
    cost.set(Cost(4.0, 1, {"tasks": 3.0, "planning": 1.0}, shuffle_bytes=15))
    parts = {
        part: registry.get_sample_value("lozenge_cpu_part_seconds_total", {"part": part})
        for part in ("process", "tasks", "planning")
    }
    assert parts == {"process": None, "tasks": 3.0, "planning": 1.0}
    assert registry.get_sample_value("lozenge_shuffle_bytes_total") == 15
