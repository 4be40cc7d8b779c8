"""Caches: the latest record of each key in a store that also owns how far its topic was read."""
