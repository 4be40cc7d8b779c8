"""The normaliser: raw authorisations in, canonical events out, what cannot be understood set aside."""
