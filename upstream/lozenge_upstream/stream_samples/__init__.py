"""The samples of a stream: raw records, and what must become of them. They are tests that travel with it."""
