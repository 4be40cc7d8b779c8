"""Releases of declarations: of file sources, of sinks and of tables of the platform."""
