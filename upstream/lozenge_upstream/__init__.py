"""The normaliser of a stream: raw records in, canonical events out, dead letters for what cannot be understood."""
