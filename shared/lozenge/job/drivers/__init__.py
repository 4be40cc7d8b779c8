"""How Spark runs the query: in micro-batches or in Real-Time Mode."""
