"""Releases of a stream: what a folder would change, and changes that a running upstream takes at exact raw offsets."""
