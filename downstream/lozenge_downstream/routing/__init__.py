"""The routing file: which alerts are notified to which channels, when, and grouped by what."""
