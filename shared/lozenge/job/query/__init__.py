"""How `detect` becomes a query, and the checks of its plan."""
