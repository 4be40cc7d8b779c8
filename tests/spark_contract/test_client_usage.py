"""What the cost of a client in a shared JVM assumes of Spark; the client is another process."""

import json
import subprocess
import sys

from pyspark.sql import SparkSession

from lozenge.spark.internals.gateways import Gateway, gateways

PROGRAM = """
import json, sys, tempfile, time
from lozenge.spark.internals.client_usage import ClientUsage
from lozenge.spark.internals.gateways import connected, gateways

def read_until(read, more_than):
    deadline = time.monotonic() + 60
    while (found := read()) <= more_than and time.monotonic() < deadline:
        pass
    return found

spark = connected(int(sys.argv[1]), sys.argv[2], "client")
usage = ClientUsage(spark)
found = [gateways(spark), usage.task_seconds(), usage.planning_seconds()]
work = "reduce(sequence(1, 200000), 0L, (sum, each) -> sum + each)"
spark.range(4).repartition(3).selectExpr(f"sum({work})").collect()
found.append(read_until(usage.task_seconds, 0.0))
found.append(usage.task_seconds())
rows = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
writer = rows.writeStream.foreachBatch(lambda frame, _: frame.selectExpr(f"sum({work})").collect())
query = writer.option("checkpointLocation", tempfile.mkdtemp()).trigger(processingTime="50 milliseconds").start()
found.append(read_until(usage.task_seconds, found[-1]))
found.append(read_until(usage.planning_seconds, 0.0))
query.stop()
found.append(usage.planning_seconds())
found.append(usage.shuffle_bytes)
print(json.dumps(found))
"""


def test_tasks_and_planning_of_a_client_are_its_own_cost_and_count_once(spark: SparkSession) -> None:
    assert spark.range(1_000_000).selectExpr("sum(id)").collect()  # of somebody else
    gateway = Gateway(spark, "app")
    try:
        command = [sys.executable, "-c", PROGRAM, str(gateway.port), gateway.token]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stderr
        here, tasks, planning, of_a_job, again, of_a_query, planned, after, shuffled = json.loads(run.stdout)
        assert here == gateways(spark) == 1
        assert (tasks, planning) == (0, 0)
        assert of_a_query > again == of_a_job > 0
        assert after >= planned > 0
        assert shuffled > 0
    finally:
        gateway.close()
    assert gateways(spark) == 0
