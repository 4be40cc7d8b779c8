"""What belongs to the JVM of a host, and is the same for all of its clients."""

STATIC_CONF = {
    # one client's backlog must not delay another client
    "spark.scheduler.mode": "FAIR",
    # what a client does without Kafka needs no more partitions
    "spark.default.parallelism": "2",
    "spark.driver.extraJavaOptions": " ".join(
        (
            # a heap without room makes every client slow and ends none: the clients start again elsewhere
            "-XX:+ExitOnOutOfMemoryError",
            # log lines name their thread and their client, which a thread inherits from the one that starts it
            "-Dlozenge.log=host",
            "-Dlog4j2.isThreadContextMapInheritable=true",
        )
    ),
}
