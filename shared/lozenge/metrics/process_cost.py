"""What a process costs, as metrics: the processor seconds and the memory of its process tree."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from lozenge.process.usage import Cost


class ProcessCost:
    """The cost of one process, in the metrics of its app. Thread-safe."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._cpu = Counter(
            "lozenge_cpu_seconds",
            "Processor seconds of the process tree; in a shared JVM also of its tasks, its planning and its workers",
            registry=registry,
        )
        self._memory = Gauge(
            "lozenge_memory_bytes",
            "Resident memory of the process tree; in a shared JVM also of its workers, and an equal share of the JVM's",
            registry=registry,
        )
        self._parts = Counter(
            "lozenge_cpu_part_seconds",
            "In a shared JVM: the processor seconds by what used them: process, tasks or planning",
            ["part"],
            registry=registry,
        )
        self._shuffle = Counter(
            "lozenge_shuffle_bytes",
            "In a shared JVM: bytes that its tasks have written and read between stages",
            registry=registry,
        )
        self._counted = Cost(0.0, 0)

    def set(self, cost: Cost) -> None:
        """Sets what the process has cost until now; a counter never falls."""
        before, self._counted = self._counted, cost
        self._cpu.inc(max(0.0, cost.cpu_seconds - before.cpu_seconds))
        self._memory.set(cost.memory_bytes)
        self._shuffle.inc(max(0, cost.shuffle_bytes - before.shuffle_bytes))
        for part, seconds in cost.parts.items():
            self._parts.labels(part).inc(max(0.0, seconds - before.parts.get(part, 0.0)))
