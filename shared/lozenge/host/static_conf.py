"""What belongs to the JVM of a host, and is the same for all of its clients."""

STATIC_CONF = {
    # one client's backlog must not delay another client
    "spark.scheduler.mode": "FAIR",
    # what a client does without Kafka needs no more partitions
    "spark.default.parallelism": "2",
    # a heap without room makes every client slow and ends none: the clients start again elsewhere
    "spark.driver.extraJavaOptions": "-XX:+ExitOnOutOfMemoryError",
}
