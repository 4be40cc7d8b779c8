"""How `detect` becomes a Spark query: reading events, checks of the plan, bounded evaluation."""
