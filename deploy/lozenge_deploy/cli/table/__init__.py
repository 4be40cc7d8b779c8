"""Commands for tables of the platform."""
