"""Alerts in: the consumer and what becomes of each record."""
