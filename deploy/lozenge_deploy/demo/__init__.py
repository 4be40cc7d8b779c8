"""The whole diamond on one machine: it is started, fed, watched, drained, and counted by a client of its own.

The tests use the webhook receiver too.
"""
