"""Sinks: which topics go into which tables or caches, as their folders declare it."""
