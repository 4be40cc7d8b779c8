"""Commands that run in a detector's environment."""
