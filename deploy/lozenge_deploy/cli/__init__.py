"""The `lozenge` command. It starts quickly: a subcommand imports what it needs when it runs, and never Spark."""
