"""Operators, one for each kind of detector: they turn the rows of a batch into alerts and state changes."""
