"""Spark: the session, Kafka in and out of it, and the only package that touches its internals."""
