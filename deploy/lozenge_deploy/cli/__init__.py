"""The `lozenge` command. It starts at once: what a verb needs is imported when that verb runs, and Spark never."""
