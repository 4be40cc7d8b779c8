"""Loads tables of the platform: rows of a database or a lake into compacted topics, each version as a whole."""
