"""Starts, watches, updates and stops the parts of Lozenge; they never import it."""
