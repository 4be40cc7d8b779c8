"""The normaliser: raw authorisations in, canonical events out, dead letters for what cannot be understood."""
