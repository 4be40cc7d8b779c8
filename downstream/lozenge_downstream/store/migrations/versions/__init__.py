"""One script for each revision of the store, each named by its number."""
