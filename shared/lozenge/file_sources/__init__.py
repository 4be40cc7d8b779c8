"""File sources: which files go into which raw topic, as their folders declare it."""
