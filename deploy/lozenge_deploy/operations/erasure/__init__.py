"""Erasure: the records of one person out of every place that keeps them, and a receipt of it."""
