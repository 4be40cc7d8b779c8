"""Kafka from Python: every client that more than one stage needs."""
