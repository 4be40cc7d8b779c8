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
