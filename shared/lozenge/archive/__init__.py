"""The archive: each topic as a Delta table, how rows get into it, and how they are read and checked."""
