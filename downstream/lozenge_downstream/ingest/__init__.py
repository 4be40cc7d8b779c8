"""Alerts in: the consumer, and the outcome of each record."""
