"""The draft of a stream from real records: its schema, a mapping and samples, with what was guessed of them."""
