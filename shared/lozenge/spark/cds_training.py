"""`python -m lozenge.spark.cds_training JVM_OPTION FOLDER`: a job that does a little of what jobs do.

`ClassDataArchive.make` runs it under the option that writes the archive. What it touches is then quick to load.
"""

import sys
from pathlib import Path

from lozenge.spark.internals import driver_jvm
from lozenge.spark.session import spark_session
from lozenge.spark.training import train


def main(jvm_option: str, folder: str) -> None:
    spark = spark_session("class-data archive", conf={"spark.driver.extraJavaOptions": jvm_option})
    train(spark, Path(folder))
    process = driver_jvm.jvm_process(spark)
    spark.stop()
    assert process.stdin is not None
    process.stdin.close()  # the JVM ends, and writes the archive as it does
    process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
