"""The stages of a notification in their order: grouping, muting, notify policy, rendering."""
