"""The demo: the whole platform on one machine, with generated traffic, a live view and a reconciliation at the end.

The tests use the webhook receiver too.
"""
