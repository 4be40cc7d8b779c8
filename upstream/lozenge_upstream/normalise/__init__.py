"""One raw record as a canonical event or a reason why not: pure."""
