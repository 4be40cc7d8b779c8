"""The stages of a notification in their order: grouping, muting, rate limits, rendering."""
