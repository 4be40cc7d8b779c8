"""How commands print: what is printed, and the one way to a terminal."""
