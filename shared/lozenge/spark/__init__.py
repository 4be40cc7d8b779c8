"""Spark: the session, Kafka in and out of it, and the only module that touches its internals."""
