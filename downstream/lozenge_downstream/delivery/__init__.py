"""Out of the store: the outbox relay to Kafka, and the dispatcher to channels."""
