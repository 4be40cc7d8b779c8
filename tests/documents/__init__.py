"""Pages of `docs/` that are written by a program: `make docs`."""
